"""The files of the page: what is not ours is unchanged, all is small, and every sentence is there in every language."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from frontdesk.channels.web.pages import LANGUAGES, STATIC, assets

VENDOR = STATIC / "vendor"
OWN = sorted(STATIC.glob("*.js"))
NOT_LOADED = ("chat.de.js", "embed.js")
"""Files that the page does not load: another language, and what other sites load."""
LICENSES = {"lit-html": "BSD-3-Clause", "marked": "MIT"}


def test_modules_of_others_are_unchanged_and_have_a_licence() -> None:
    noted = json.loads((VENDOR / "VENDORED.json").read_text())
    assert {name: one["license"] for name, one in noted.items()} == LICENSES
    for name, package in noted.items():
        files = {
            path.relative_to(VENDOR / name).as_posix(): path for path in (VENDOR / name).rglob("*") if path.is_file()
        }
        found = {place: hashlib.sha256(path.read_bytes()).hexdigest() for place, path in files.items()}
        assert found == package["files"]
        assert "LICENSE" in found
        assert package["integrity"].startswith("sha512-")
        assert package["version"] in package["source"]


def test_the_first_load_is_small() -> None:
    loaded = {name: len(file.zipped) for name, file in assets().files.items() if name not in NOT_LOADED}
    assert sum(loaded.values()) < 60_000, loaded


def test_nothing_is_loaded_from_elsewhere_and_nothing_becomes_code() -> None:
    for path in [*OWN, STATIC / "chat.css"]:
        text = path.read_text()
        # The name of SVG is no address.
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")", text), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|unsafe", text), (
            path
        )


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_is_there(language: str) -> None:
    catalogue = json.loads((STATIC / f"{language}.json").read_text())
    assert catalogue.keys() == json.loads((STATIC / "en.json").read_text()).keys()
    said = {key for path in OWN for key in re.findall(r'\bsay\("(\w+)"', path.read_text())}
    assert said
    assert said <= catalogue.keys()
    holes = {key: sorted(re.findall(r"\{(\w+)\}", text)) for key, text in catalogue.items()}
    english = json.loads((STATIC / "en.json").read_text())
    assert holes == {key: sorted(re.findall(r"\{(\w+)\}", text)) for key, text in english.items()}


def test_every_module_that_is_imported_is_a_file() -> None:
    made = "./catalogue.js"
    for path in OWN:
        for name in re.findall(r'from "(\./[^"]+)"', path.read_text()):
            assert name == made or (Path(path).parent / name).is_file(), (path, name)
