"""The package as an index gets it: links that lead somewhere, versions that were tested, sources that can be tested."""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import ROOT
from tools.readme_links import with_absolute_links

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, built and unpacked."""
    directory = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = directory.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(directory, filter="data")
    return directory / f"{PROJECT['name']}-{PROJECT['version']}"


def test_the_links_of_the_readme_were_relative_on_an_index(sdist: Path) -> None:
    metadata = email.message_from_string((sdist / "PKG-INFO").read_text("utf-8"))
    readme = metadata.get_payload()
    assert isinstance(readme, str)
    links = LINK.findall(readme)
    assert len(links) > 20
    for link in links:
        assert link.startswith(("https://", "http://")), link
        if link.startswith(f"{SOURCE}/"):
            view, branch, path = urlsplit(link).path.removeprefix(urlsplit(SOURCE).path + "/").split("/", 2)
            assert (ROOT / path).exists(), link
            assert (view in ("blob", "raw"), branch) == (True, "main")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", readme)
    assert pictures
    assert all("/raw/" in picture for picture in pictures)
    named = dict(value.split(", ") for value in metadata.get_all("Project-URL", ()))
    assert named == PROJECT["urls"]


def test_only_links_are_changed() -> None:
    text = "[a](docs/a.md#b) ![p](p.png) [o](https://o.example) [t](#top)\n```md\n[a](docs/a.md)\n```\n`[x] (y)`\n"
    base = "https://s.example/r"
    assert with_absolute_links(text, f"{base}/") == (
        f"[a]({base}/blob/main/docs/a.md#b) ![p]({base}/raw/main/p.png) [o](https://o.example) "
        f"[t]({base}/blob/main/README.md#top)\n```md\n[a](docs/a.md)\n```\n`[x] (y)`\n"
    )


def test_the_sources_lacked_what_their_tests_read(sdist: Path) -> None:
    for name in ("docs", "deploy", "bench", "requirements", "Makefile", "CONTRIBUTING.md", "tools/readme_links.py"):
        assert (sdist / name).exists(), name
    kept = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        assert set(listed.stdout.split("\n")) - {""} <= kept


@pytest.mark.timeout(600)
def test_the_sources_can_run_their_tests(sdist: Path) -> None:
    chosen = ["tests/docs/test_readme.py", "tests/test_identifiers.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(sdist / "src"), str(sdist / "packages/frontdesk-testing/src")]),
    }
    done = subprocess.run(command, cwd=sdist, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]


def test_a_version_of_python_was_named_and_not_tested() -> None:
    named = set(re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
    (others,) = re.findall(r"^PYTHONS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert named == {PROJECT["requires-python"].removeprefix(">="), *others.split()}


def test_make_pythons_set_up_no_environment_where_sh_is_dash(tmp_path: Path) -> None:
    """`[ new -nt missing ]` is false there. The interpreter of this test notes what it is asked to do."""
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/dev.txt").write_text("", "utf-8")
    notes, fake = tmp_path / "notes", tmp_path / "python3.99"
    fake.write_text(
        f'#!/bin/sh\necho "$*" >> {notes}\n[ "$2" != venv ] || {{ mkdir -p "$4/bin" && cp "$0" "$4/bin/python"; }}\n'
    )
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = ["make", "pythons", "PYTHONS=3.99", "JOBS=1", "ARGS=tests/some"]
    for runs in (1, 2):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        asked = notes.read_text("utf-8")
        assert asked.count("-m venv --clear .venv-py3.99") == 1
        assert asked.count("-m pip install") == 2
        assert asked.count("-m pytest -q -n 1 --dist loadfile tests/some") == runs
