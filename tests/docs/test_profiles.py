"""The page about profiles: each example lets in whom it says, and nobody else."""

import re
from pathlib import Path

import pytest

from frontdesk_testing import serving
from tests.channels.web.visiting import Visitor, open_visitor
from tests.docs.pages import ROOT, tables
from tests.docs.running import example

PAGE = ROOT / "docs/guides/profiles.md"
ALICE, BOB = {"x-api-key": "alice-key-for-the-laptop"}, {"x-api-key": "bob-key-for-everything"}
STAFF, GUEST = {"x-badge": "badge-of-alice-0001"}, {"x-badge": "badge-of-bob-000002"}
PORTER, ROBOT = {"x-api-key": "the-night-porters-key"}, {"x-api-key": "the-key-of-the-robot"}

# Who comes to each example, and what they are told.
CALLERS: dict[str, list[tuple[dict[str, str], int]]] = {
    "profile_open": [(ALICE, 200), (BOB, 200), ({}, 401)],
    "profile_native": [(ALICE, 200), (BOB, 403), ({}, 401)],
    "profile_claim": [(STAFF, 200), (GUEST, 403), ({"x-badge": "no-badge-at-all"}, 401), ({}, 401)],
    "profile_mixed": [(STAFF, 200), (GUEST, 403), (PORTER, 200), (ROBOT, 403), ({}, 401)],
}


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", CALLERS)
async def test_a_profile_lets_in_whom_it_says(name: str) -> None:
    async with serving(example(ROOT / f"docs/examples/{name}.py")) as client:
        for headers, status in CALLERS[name]:
            answer = await client.http.post("/invocations", json={"message": "hello"}, headers=headers)
            assert answer.status_code == status, headers
            if status == 403:
                assert answer.json()["error"]["code"] == "denied"


def test_every_profile_has_an_example() -> None:
    named = [re.findall(r"\((.+)\)", row[3])[0] for row in tables(PAGE)[_first()]]
    assert sorted(Path(one).stem for one in named) == sorted([*CALLERS, "profile_link"])


def _first() -> str:
    return next(iter(tables(PAGE)))


class Guest:
    """Somebody on a page, who reads what is answered."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._shown = 0

    async def say(self, text: str) -> str:
        """What is answered to a message."""
        await self._visitor.say(text)
        self._shown += 1
        return await self.hear()

    async def hear(self) -> str:
        """The next thing that is said."""
        self._shown += 1
        return (await self._visitor.wait_for_messages(self._shown))[self._shown - 1]["text"]


async def test_the_five_steps_of_a_link() -> None:
    async with (
        serving(example(ROOT / "docs/examples/profile_link.py")) as client,
        open_visitor(client.base_url, "/work") as at_work,
        open_visitor(client.base_url, "/chat") as at_home,
    ):
        work, chat = Guest(at_work), Guest(at_home)
        assert "link" in (await chat.say("hello")).lower()
        assert await work.say("I am here") == "message 1"
        code = re.search(r"code is ([A-Z0-9-]+)", await work.say("/link"))
        assert code is not None
        assert "work" in await chat.say(f"/link {code.group(1)}")
        assert "work" in await chat.say("/link confirm")
        assert "entered your code" in await work.hear()
        assert "one conversation" in await work.say("/link confirm")
        await chat.hear()
        assert await chat.say("do you remember?") == "message 3"
        assert "Linked with work" in await chat.say("/whoami")
