"""What the documents and messages say about installing is what pip can do."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from frontdesk.errors.extras import install_hint
from tests.docs.pages import PAGES, ROOT, blocks, tables

PAGE = ROOT / "docs/how-to/install.md"
CHANNEL_PAGE = ROOT / "docs/how-to/write-a-channel.md"
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the command of the page."""
    directory = tmp_path_factory.mktemp("dist")
    lines = [line for block in blocks("sh") if block.page == PAGE for line in block.text.splitlines()]
    (command,) = [line for line in lines if line.startswith("pip wheel ")]
    words = command.replace("--wheel-dir dist", f"--wheel-dir {directory}").split()[1:]
    # What builds it is here already: nothing is fetched.
    run_pip(*words, "--no-build-isolation")
    (path,) = directory.iterdir()
    return path


def run_pip(*words: str) -> None:
    options = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *words, *options], cwd=ROOT, check=True, capture_output=True)


def test_a_wheel_is_built_under_the_name_that_the_page_has(wheel: Path) -> None:
    assert WHEEL in PAGE.read_text("utf-8")
    assert wheel.name == WHEEL
    metadata = zipfile.ZipFile(wheel).read(f"{PROJECT['name']}-{PROJECT['version']}.dist-info/METADATA").decode()
    assert set(re.findall(r"^Provides-Extra: (\w+)", metadata, re.MULTILINE)) == EXTRAS


@pytest.fixture
def fresh_python(wheel: Path, tmp_path: Path) -> Path:
    """Make an environment in which only the wheel was installed, beside the dependencies that are here."""
    home = tmp_path / "fresh"
    venv.create(home, symlinks=True)
    python = home / "bin/python"
    run_pip("--python", str(python), "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
    (site,) = home.glob("lib/python*/site-packages")
    # The .pth files of a directory that is named by one are not read, so that the checkout stays out.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    return python


PACKAGE_OF_ONE_S_OWN = """
import frontdesk
from frontdesk.testing import ChatContract
from their_channel import PostboxChannel
from their_platform import SECRET, TOKEN, postbox


def test_the_package_is_that_of_the_wheel():
    assert "/fresh/" in frontdesk.__file__


class TestPostbox(ChatContract):
    def platform(self):
        return postbox()

    def channel(self, platform, **settings):
        return PostboxChannel(url=platform.url, token=TOKEN, secret=SECRET, allow_private=True, **settings)
"""
ASKED = "of_the_wheel or answered_once_and_in_order or button_answers or file_comes_in or has_signed"


def test_a_channel_of_one_s_own_passes_its_contract_with_the_wheel(fresh_python: Path, tmp_path: Path) -> None:
    place = tmp_path / "theirs"
    place.mkdir()
    channel = next(block.text for block in blocks("python") if block.page == CHANNEL_PAGE)
    platform = (ROOT / "tests/kit/chat/postbox/platform.py").read_text("utf-8")
    (place / "their_channel.py").write_text(channel, "utf-8")
    (place / "their_platform.py").write_text(platform, "utf-8")
    (place / "test_theirs.py").write_text(PACKAGE_OF_ONE_S_OWN, "utf-8")
    (place / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", "utf-8")
    command = [
        str(fresh_python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "no:cacheprovider",
        "-k",
        ASKED,
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    asked = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert asked.returncode == 0, asked.stdout
    assert "5 passed" in asked.stdout, asked.stdout
