"""An environment of its own for each peer, below `.bench`, which git ignores."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from bench.machine import package_versions
from bench.process import ROOT
from bench.subjects.base import Subject

CACHE = ROOT / ".bench"
SHARED = ("agent-framework-core", "httptools", "starlette", "uvicorn", "uvloop")
"""What everybody runs on, at the versions that are installed here."""
INSTALL_TIMEOUT = 600
ASK_VERSIONS = (
    "import sys; from importlib.metadata import version; print(', '.join(f'{n} {version(n)}' for n in sys.argv[1:]))"
)


class InstallFailed(Exception):
    """The packages of a peer could not be installed; the message is what pip said last."""


def find_python(subject: Subject, *, renew: bool = False) -> str:
    """The interpreter of a peer's environment, which is made when it is missing or asks for something else now."""
    folder = CACHE / subject.name
    python = folder / "bin" / "python"
    wanted = requirements(subject)
    stamp, told = folder / "installed.txt", "\n".join([platform.python_version(), *wanted])
    if renew or not stamp.exists() or stamp.read_text() != told:
        print(f"  installing {' and '.join(subject.requires)} into {folder.relative_to(ROOT)} ...", file=sys.stderr)
        call(sys.executable, "-m", "venv", "--clear", str(folder))
        call(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
        stamp.write_text(told)
    return str(python)


def requirements(subject: Subject) -> list[str]:
    versions = package_versions()
    return [*subject.requires, *(f"{name}=={versions[name]}" for name in SHARED if versions[name] != "none")]


def list_installed(subject: Subject) -> str:
    """The names and versions of a peer's own packages."""
    names = [requirement.split(">=")[0] for requirement in subject.requires]
    return subprocess.check_output([subject.python, "-c", ASK_VERSIONS, *names], text=True).strip()


def call(*command: str) -> None:
    try:
        subprocess.run(command, check=True, cwd=CACHE.parent, capture_output=True, text=True, timeout=INSTALL_TIMEOUT)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.startswith("ERROR")] or error.stderr.splitlines()
        raise InstallFailed(lines[-1] if lines else f"{Path(command[0]).name} failed") from error
    except subprocess.TimeoutExpired as error:
        raise InstallFailed(f"nothing was installed within {INSTALL_TIMEOUT} s") from error
