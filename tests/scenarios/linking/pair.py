"""One host on two platforms, each a process of its own, and a person who is on both."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from frontdesk import AgentFrameworkHost, OneTimeCodeIdentityLinker
from frontdesk_testing import serving
from frontdesk_testing.messages import MessageChannel, MessagePlatform
from tests.scenarios.messages.chat import SECRET, new_platform
from tests.scenarios.stores import new_store

_CODE = re.compile(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{2}")


@dataclass
class Side:
    """A platform, and one person's account there."""

    platform: MessagePlatform
    person: Any

    async def says(self, text: str, *, by: Any = None, chat_id: str | None = None) -> str:
        """What the host answers first to what somebody says."""
        who = by or self.person
        place = chat_id or who.chat_id
        before = len(await self.all(place))
        await self.platform.say(who, text, chat_id=place)
        return (await self.platform.wait_for_answers(place, before + 1))[before].text

    async def all(self, chat_id: str | None = None) -> list[str]:
        """All that the host has said in a chat."""
        return [one.text for one in await self.platform.wait_for_answers(chat_id or self.person.chat_id, 0)]

    async def next(self, count: int) -> str:
        """What the host says as the so-manieth in the person's direct chat."""
        return (await self.platform.wait_for_answers(self.person.chat_id, count))[count - 1].text


@dataclass
class Pair:
    """The host, and the two sides."""

    host: AgentFrameworkHost
    red: Side
    blue: Side

    async def link(self) -> None:
        """The whole ceremony, begun on red."""
        code = code_in(await self.red.says("/link"))
        said = len(await self.red.all())
        assert "If that is you, answer /link confirm" in await self.blue.says(f"/link {code}")
        assert (await self.blue.says("/link confirm")).startswith("Now go back to")
        assert "has entered your code" in await self.red.next(said + 1)
        told = len(await self.blue.all())
        assert await self.red.says("/link confirm") == "Done: your accounts share one conversation now."
        assert (await self.blue.next(told + 1)).startswith("This account is now linked with")


def code_in(text: str) -> str:
    """The code that a text shows."""
    found = _CODE.search(text)
    assert found is not None, text
    return found.group()


Accounts = Sequence[tuple[MessagePlatform, Any]]
"""A platform, and Ann's account there; two of these."""


@asynccontextmanager
async def two_accounts() -> AsyncIterator[Accounts]:
    """Two platforms, and Ann on each."""
    async with new_platform() as red, new_platform() as blue:
        yield [(one, await one.user("Ann")) for one in (red, blue)]


@asynccontextmanager
async def open_pair(
    target: Any, *, store: Any = None, accounts: Accounts | None = None, **options: Any
) -> AsyncIterator[Pair]:
    """A host on two platforms; new ones, if none are given."""
    settings: dict[str, Any] = {"linker": OneTimeCodeIdentityLinker(), "store": store or new_store(), **options}
    async with AsyncExitStack() as stack:
        if accounts is None:
            accounts = await stack.enter_async_context(two_accounts())
        channels = [
            MessageChannel(platform_url=one.url, token=one.token, secret=SECRET, name=name, path=f"/{name}")
            for (one, _), name in zip(accounts, ("red", "blue"), strict=True)
        ]
        host = AgentFrameworkHost(target, channels=channels, **settings)
        client = await stack.enter_async_context(serving(host))
        for (platform, _), channel in zip(accounts, channels, strict=True):
            await channel.client.use_webhook(f"{client.base_url}{channel.path}/events", SECRET)
            await platform.wait_for_webhook()
        yield Pair(host, *(Side(*account) for account in accounts))
