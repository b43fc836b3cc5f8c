"""Every command and every kind of person: who may give it, who must link first, and who is refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk import OneTimeCodeIdentityLinker
from frontdesk.errors import RequestError
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.reply import Reply, as_reply
from frontdesk.models.request import ChannelRequest
from tests.access_matrix.doors import EveryDoorHost, open_house
from tests.access_matrix.issuer import serve_issuers

# What each command is for. One that is not here fails the test: whoever adds a command says who may give it.
COMMANDS: dict[str, str] = {
    **dict.fromkeys(("new", "sessions", "resume", "name", "cancel", "help", "safe"), "plain"),
    **dict.fromkeys(("link", "connect", "unlink", "whoami"), "linking"),
}
ANYBODY = "u-1"

# What each kind of person is told: whether the command runs, or the code of the refusal.
PEOPLE: dict[str, tuple[str, dict[str, str]]] = {
    "verified": ("open", {"plain": "runs", "linking": "runs"}),
    "unlinked": ("linked", {"plain": "link_required", "linking": "runs"}),
    "denied": ("listed", {"plain": "denied", "linking": "denied"}),
}


class Call:
    """One call of a command, and what was replied."""

    def __init__(self, context: ChannelContext, who: str = ANYBODY, text: str = "", *, group: bool = False) -> None:
        identity = ChannelIdentity(channel="messages", native_id=who, attributes={"name": "Ada"})
        self.caller = Caller(identity=identity)
        chat = "group-1" if group else f"direct-{who}"
        self.request = ChannelRequest(
            channel="messages", operation="command", input=text, identity=identity, conversation_id=chat, group=group
        )
        self.session: Any = None
        self.state: Any = None
        self.raw_event: Any = None
        self.event: Any = None
        self.said: list[str] = []
        self._context = context

    async def reply(self, reply: Reply | str, /) -> None:
        self.said.append(as_reply(reply).full_text)

    async def run(self, request: ChannelRequest) -> Any:
        return await self._context.run(request, self.caller)

    async def give(self, name: str) -> str:
        """Gives the command; `runs`, `unknown`, or the code of the refusal."""
        try:
            return "runs" if await self._context.run_command(name, self) else "unknown"
        except RequestError as error:
            return error.code


@asynccontextmanager
async def _house(rules: str, place: Path, **settings: Any) -> AsyncIterator[EveryDoorHost]:
    async with serve_issuers() as issuers, open_house(rules, issuers, place, **settings) as house:
        yield house


@pytest.mark.parametrize("group", [False, True], ids=["direct", "group"])
@pytest.mark.parametrize("kind", PEOPLE)
async def test_every_command_says_what_it_must(kind: str, group: bool, tmp_path: Path) -> None:
    rules, wanted = PEOPLE[kind]
    async with _house(rules, tmp_path) as house:
        for command in house.chat.commands():
            before = house.rows()
            call = Call(house.chat, group=group)
            assert await call.give(command.name) == wanted[COMMANDS[command.name]], command.name
            if wanted[COMMANDS[command.name]] != "runs":
                assert (call.said, house.rows()) == ([], before), command.name
    assert house.agent.seen == []


async def test_every_command_has_a_purpose_and_every_purpose_a_command(tmp_path: Path) -> None:
    async with _house("open", tmp_path) as house:
        assert {command.name for command in house.chat.commands()} == set(COMMANDS)


@pytest.mark.parametrize("kind", PEOPLE)
async def test_a_command_that_is_not_there_tells_nobody_anything(kind: str, tmp_path: Path) -> None:
    async with _house(PEOPLE[kind][0], tmp_path) as house:
        told = await Call(house.chat).give("nosuch")
        assert told == ("unknown" if kind == "verified" else PEOPLE[kind][1]["plain"])


async def test_nothing_of_linking_is_said_in_a_group(tmp_path: Path) -> None:
    async with _house("linked", tmp_path, linker=OneTimeCodeIdentityLinker()) as house:
        for name in ("link", "connect", "whoami", "unlink"):
            call = Call(house.chat, group=True)
            assert await call.give(name) == "runs"
            (said,) = call.said
            assert "direct chat" in said
            assert "code is" not in said


async def test_a_code_of_anothers_opens_nothing(tmp_path: Path) -> None:
    async with _house("open", tmp_path, linker=OneTimeCodeIdentityLinker()) as house:
        asked = Call(house.chat, "alice")
        await asked.give("link")
        code = asked.said[0].partition("code is ")[2].partition(".")[0]
        for text in (code, code.lower().replace("-", "")):
            await Call(house.chat, "bob", text).give("link")
        for name, text in (("link", "confirm"), ("connect", "confirm"), ("link", "reject"), ("unlink", "")):
            await Call(house.chat, "bob", text).give(name)
        for who in ("alice", "bob"):
            call = Call(house.chat, who)
            await call.give("whoami")
            assert "Not linked" in call.said[0]
        assert house.rows()["links"] == 0


async def test_whoami_tells_no_key_and_no_claim(tmp_path: Path) -> None:
    async with _house("open", tmp_path) as house:
        call = Call(house.chat)
        await call.give("whoami")
        assert "key_" not in call.said[0]
        assert "claim" not in call.said[0].lower()
