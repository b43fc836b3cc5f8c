"""Checkouts of other commits, below `.bench`, which git ignores."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.process import ROOT

CACHE = ROOT / ".bench" / "checkouts"


@dataclass(frozen=True, slots=True)
class Checkout:
    """A version of the package. The bench itself is always that of this checkout."""

    commit: str
    root: Path

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that imports this version, and the bench of ours."""
        sources = [self.root / "src", *sorted(self.root.glob("packages/*/src")), ROOT]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}


def current_checkout() -> Checkout:
    """Return the working tree, with `+` behind its commit if it has changes."""
    changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    return Checkout(_git("rev-parse", "--short", "HEAD") + ("+" if changed else ""), ROOT)


def find_checkout(commit: str) -> Checkout:
    """Return a checkout of a commit, and make it if it is missing."""
    short = _git("rev-parse", "--short", f"{commit}^{{commit}}")
    root = CACHE / short
    if not root.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", "--quiet", str(root), short)
    return Checkout(short, root)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
