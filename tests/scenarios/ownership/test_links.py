"""Whatever people do with codes, nobody hears what somebody has said with whom they were never linked."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_framework import Message
from hypothesis import Phase, given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost, OneTimeCodeIdentityLinker
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.reply import Reply, as_reply
from frontdesk.models.request import ChannelRequest
from frontdesk_testing.messages import MessageChannel
from tests.examples import examples
from tests.scenarios.stores import new_store

Who = tuple[str, str]
PEOPLE: list[Who] = [("here", "1"), ("here", "2"), ("there", "1"), ("there", "2")]
WORD = re.compile(r"<\d+>")
CODE = re.compile(r"Your code is ([^.]+)\.")
RETURN = re.compile(r"Now go back to .*?\(id (\d)\) on (\w+)")
ENTERED = re.compile(r"\(id (\d)\) on (\w+) has entered your code")


class OfflineChat(MessageChannel):
    """A chat whose platform is away; what it could call is shown."""

    def __init__(self, name: str) -> None:
        secret = "the-secret-of-the-platform"
        url = "http://127.0.0.1:1"
        super().__init__(name=name, path=f"/{name}", platform_url=url, token="a-token", secret=secret)


class Call:
    """A command that somebody gives, and what is replied."""

    def __init__(self, caller: Caller, text: str) -> None:
        self.caller = caller
        self.request = ChannelRequest(
            channel=caller.identity.channel,
            operation="command",
            input=text,
            identity=caller.identity,
            conversation_id=f"direct-{caller.identity.native_id}",
        )
        self.session: Any = None
        self.state: Any = None
        self.raw_event: Any = None
        self.event: Any = None
        self.said: list[str] = []

    async def reply(self, reply: Reply | str, /) -> None:
        self.said.append(as_reply(reply).full_text)

    async def run(self, request: ChannelRequest) -> Any:
        raise NotImplementedError


class Village:
    """Four accounts on two chats, and what is known of each: codes, ceremonies, and the words under each key."""

    def __init__(self, chats: dict[str, OfflineChat], store: Any) -> None:
        self._chats = chats
        self._store = store
        self._said = 0
        self._codes: list[str] = []
        self._agreed: set[tuple[Who, Who]] = set()
        """Who has confirmed a code that they entered, and whose it was."""
        self._shown: dict[Who, Who] = {}
        """Who was shown to the one whose code it is."""
        self._linked: dict[Who, set[Who]] = {one: {one} for one in PEOPLE}
        self._words: dict[str, set[str]] = {}
        self.links = 0

    async def step(self, what: str, who: Who, number: int) -> None:
        if what == "say":
            await self._say(who)
        elif what == "enter" and self._codes:
            await self._command(who, "link", self._codes[number % len(self._codes)])
        elif what == "agree":
            await self._agree(who, PEOPLE[number % len(PEOPLE)])
        elif what == "link":
            if code := await self._code(who):
                self._codes.append(code)
        elif what == "confirm":
            await self._confirm(who)
        elif what in ("unlink", "new", "whoami"):
            await self._command(who, what, "")
        elif what == "reject":
            await self._command(who, "link", what)
        await self._judge()

    async def _agree(self, who: Who, other: Who) -> None:
        """The whole ceremony, between two who both want it."""
        if code := await self._code(who):
            await self._command(other, "link", code)
            await self._confirm(other)
            await self._confirm(who)
            await self._confirm(who)

    async def _code(self, who: Who) -> str:
        found = CODE.search(await self._command(who, "link", ""))
        return found[1] if found else ""

    async def _confirm(self, who: Who) -> None:
        told = await self._command(who, "link", "confirm")
        if found := RETURN.search(told):
            self._agreed.add((who, (found[2], found[1])))
        elif "one conversation" in told:
            other = self._shown[who]
            assert (other, who) in self._agreed
            both = self._linked[who] | self._linked[other]
            for one in both:
                self._linked[one] = both
            self.links += 1

    async def _command(self, who: Who, name: str, text: str) -> str:
        call = Call(_caller(who), text)
        assert await self._chats[who[0]].context.run_command(name, call)
        assert not [one for one in call.said if "key_" in one]
        told = "\n".join(call.said)
        if found := ENTERED.search(told):
            self._shown[who] = (found[2], found[1])
        return told

    async def _say(self, who: Who) -> None:
        self._said += 1
        word = f"<{self._said}>"
        request = ChannelRequest(channel=who[0], input=word, conversation_id=f"direct-{who[1]}")
        hosted = await self._chats[who[0]].context.run(request, _caller(who))
        known = self._words.setdefault(await self._key(who), set())
        known.add(word)
        heard = set(WORD.findall(hosted.result.text))
        assert heard <= known, (who, heard - known)

    async def _key(self, who: Who) -> str:
        found = await self._store.identities.find(_caller(who).identity)
        return "" if found is None else found.isolation_key

    async def _judge(self) -> None:
        """Whoever has one key with somebody has gone through a ceremony with them, or with others who have."""
        keys = {who: await self._key(who) for who in PEOPLE}
        for one in PEOPLE:
            for other in PEOPLE:
                if keys[one] and keys[one] == keys[other]:
                    assert other in self._linked[one], (one, other)


def _caller(who: Who) -> Caller:
    return Caller(identity=ChannelIdentity(channel=who[0], native_id=who[1], attributes={"name": "Ada"}))


async def _repeat(messages: list[Message]) -> str:
    return " ".join(message.text for message in messages)


@asynccontextmanager
async def open_village() -> AsyncIterator[Village]:
    """A started host."""
    chats, store = {name: OfflineChat(name) for name in ("here", "there")}, new_store()
    linker = OneTimeCodeIdentityLinker(max_attempts_per_identity=900)
    host = AgentFrameworkHost(_repeat, channels=list(chats.values()), store=store, linker=linker)
    async with host.app.router.lifespan_context(host.app):
        yield Village(chats, store)


KINDS = [
    "agree",
    "agree",
    "say",
    "say",
    "link",
    "link",
    "enter",
    "enter",
    "enter",
    "confirm",
    "confirm",
    "unlink",
    "new",
    "reject",
    "whoami",
]
steps = st.tuples(st.sampled_from(KINDS), st.sampled_from(PEOPLE), st.integers(0, 9))


@pytest.mark.timeout(300)
@examples(
    60,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(story=st.lists(steps, min_size=8, max_size=40))
def test_codes_open_nothing_that_was_not_agreed_to(story: list[tuple[str, Who, int]]) -> None:
    async def play() -> None:
        async with open_village() as village:
            for one in story:
                await village.step(*one)

    asyncio.run(play())


async def test_two_who_agree_hear_each_other_and_nobody_else_does() -> None:
    async with open_village() as village:
        first, second, third, _ = PEOPLE[0], PEOPLE[2], PEOPLE[1], PEOPLE[3]
        for what, who in [
            *(("say", one) for one in PEOPLE),
            ("link", first),
            ("enter", second),
            ("confirm", third),
            ("confirm", second),
            # Nobody could be told who has entered the code, so the first answer is that question.
            ("confirm", first),
            ("confirm", first),
            *(("say", one) for one in PEOPLE),
            ("unlink", second),
            *(("say", one) for one in PEOPLE),
        ]:
            await village.step(what, who, 0)
        assert village.links == 1
