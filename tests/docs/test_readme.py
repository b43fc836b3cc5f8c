"""The first page is short, and what it says is there can be used by that name and read about on that page."""

import pkgutil
import re

import pytest

import frontdesk
import frontdesk.channels
import frontdesk_testing as testing
from frontdesk.chat import channel as chat_channel
from tests.docs import pages
from tests.docs.pages import ROOT, links, tables

README = ROOT / "README.md"
FEATURES = tables(README)["What is there"]
NAMES = {name for _, names, _ in FEATURES for name in re.findall(r"`(\w+)`", names)}
PARTS_WITH_KINDS = ("StateStore", "TaskRunner", "IdentityLinker")
"""How the names end of parts of which an operator chooses one."""


def test_it_is_short() -> None:
    assert len(README.read_text("utf-8").split()) <= 700


def test_it_installs_as_the_guide_does() -> None:
    commands = [command for page, command in pages.commands("pip") if page == "README.md"]
    assert commands
    assert set(commands) <= {command for page, command in pages.commands("pip") if page == "docs/guides/install.md"}


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature[0])
def test_a_feature_is_on_a_page_that_it_leads_to(feature: list[str]) -> None:
    _, names, page = feature
    text = "".join((ROOT / target).read_text("utf-8") for target in re.findall(r"\]\(([^)#]+)", page))
    assert [name for name in re.findall(r"`(\w+)`", names) if name not in text] == []


@pytest.mark.parametrize("name", sorted(name for name in NAMES if name[0].isupper()))
def test_a_feature_can_be_used_by_its_name(name: str) -> None:
    rooms = (pkgutil.resolve_name(f"frontdesk.channels.{room}") for room in _rooms())
    homes = [frontdesk, testing, chat_channel, *rooms]
    assert any(hasattr(home, name) for home in homes)


def test_every_channel_is_among_the_features() -> None:
    channels = {name for room in _rooms() for name in _channels_in(room)}
    assert channels <= NAMES


def test_every_kind_of_store_runner_and_linker_is_among_the_features() -> None:
    kinds = {
        name
        for name in frontdesk.__all__
        for end in PARTS_WITH_KINDS
        if name.endswith(end)
        and name not in ("HostStateStore", "InMemoryHostStateStore", "DurableTaskRunner", "IdentityLinker")
    }
    assert kinds <= NAMES


def test_what_is_not_there_is_not_there() -> None:
    (missing,) = re.findall(r"Not there yet: ([^.]+)\.", README.read_text("utf-8"))
    rooms = {room.replace("_", "") for room in _rooms()}
    assert {re.sub(r"\W", "", name).lower() for name in missing.split(",")}.isdisjoint(rooms)


def test_every_guarantee_names_a_test() -> None:
    text = README.read_text("utf-8").partition("## Guarantees")[2].partition("\n## ")[0]
    guarantees = re.findall(r"^- \*\*.*?(?=^- \*\*|^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(guarantees) == 3
    assert all("](tests/" in guarantee for guarantee in guarantees)


def test_contributing_is_short_and_names_the_titles_of_commits() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert len(text.split()) <= 1000
    (title,) = re.findall(r"```text\n +(.+)\n", text)
    assert len(title) <= 72
    assert title.split()[0] in ("Add", "Fix", "Remove", "Rename", "Speed")


def test_every_example_is_listed() -> None:
    listed = {ROOT / "docs" / link for link in links(ROOT / "docs/README.md") if link.startswith("examples/")}
    assert listed == {one for one in (ROOT / "docs/examples").rglob("*") if one.suffix in (".py", ".rest", ".conf")}


def _rooms() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(frontdesk.channels.__path__)]


def _channels_in(room: str) -> list[str]:
    return [name for name in pkgutil.resolve_name(f"frontdesk.channels.{room}").__all__ if name.endswith("Channel")]
