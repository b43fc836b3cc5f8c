"""What the documents and messages say about installing is what pip can do."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from frontdesk.errors.extras import install_hint
from tests.docs.pages import PAGES, ROOT, blocks, tables

PAGE = ROOT / "docs/how-to/install.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
WHEEL = f"{PROJECT['name']}-{PROJECT['version']}-py3-none-any.whl"
SOURCES = sorted((ROOT / "src/frontdesk").rglob("*.py"))


def _extras_in(text: str) -> set[str]:
    named = re.findall(r"(?:\.|\.whl|frontdesk)\[([a-z,]+)\]", text)
    return {extra for names in named for extra in names.split(",")}


def test_every_extra_is_documented() -> None:
    assert {name.strip("`") for name, _ in tables(PAGE)["Extras"]} == EXTRAS


def test_nobody_is_sent_to_an_index() -> None:
    # What was said in earlier versions stays as it was.
    for path in [*(page for page in PAGES if page.name != "CHANGELOG.md"), *SOURCES]:
        text = path.read_text("utf-8")
        assert not re.search(r"pip install [\"']?frontdesk", text), path
        assert path.suffix != ".md" or _extras_in(text) <= EXTRAS, path


def test_messages_name_extras_that_there_are() -> None:
    used = {extra for path in SOURCES for extra in re.findall(r"install_hint\('(\w+)'", path.read_text("utf-8"))}
    assert used <= EXTRAS
    assert used >= EXTRAS - {"otel"}
    assert install_hint("seal") == (
        'pip install ".[seal]" in a checkout of Frontdesk, or pip install "the-wheel.whl[seal]"'
    )
    assert install_hint("seal", "/bin/python").startswith('/bin/python -m pip install ".[seal]"')


def test_a_wheel_is_built_under_the_name_that_the_page_has(tmp_path: Path) -> None:
    lines = [line for block in blocks("sh") if block.page == PAGE for line in block.text.splitlines()]
    (command,) = [line for line in lines if line.startswith("pip wheel ")]
    assert WHEEL in PAGE.read_text("utf-8")
    words = command.replace("--wheel-dir dist", f"--wheel-dir {tmp_path}").split()[1:]
    # What builds it is here already: nothing is fetched.
    options = ["--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *words, *options], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.iterdir()
    assert wheel.name == WHEEL
    metadata = zipfile.ZipFile(wheel).read(f"{PROJECT['name']}-{PROJECT['version']}.dist-info/METADATA").decode()
    assert set(re.findall(r"^Provides-Extra: (\w+)", metadata, re.MULTILINE)) == EXTRAS
