"""Two hosts on one Postgres, behind one name: a visitor is known to both, and two devices of a person stay in step."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx

from frontdesk import AgentFrameworkHost, OneTimeCodeIdentityLinker, PostgresStateStore
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import EchoAgent, serving
from tests.channels.web.test_account import account, answer
from tests.channels.web.visiting import DEADLINE, Visitor

# As a balancer in front of both shows it.
NAME = {"host": "127.0.0.1", "origin": "http://127.0.0.1"}


@contextlib.asynccontextmanager
async def two_hosts(conninfo: str) -> AsyncIterator[list[str]]:
    async with contextlib.AsyncExitStack() as stack:
        urls: list[str] = []
        for _ in range(2):
            host = AgentFrameworkHost(
                EchoAgent(),
                channels=[WebChatChannel()],
                store=PostgresStateStore(conninfo),
                linker=OneTimeCodeIdentityLinker(),
            )
            urls.append((await stack.enter_async_context(serving(host))).base_url)
        yield urls


@contextlib.asynccontextmanager
async def browser(url: str) -> AsyncIterator[Visitor]:
    """A browser whose requests go to one of the hosts."""
    async with httpx.AsyncClient(base_url=url, headers=NAME, timeout=60, trust_env=False) as http:
        yield Visitor(url, http)


async def test_the_first_visitors_of_two_hosts_are_known_to_both(postgres_tables: str) -> None:
    async with two_hosts(postgres_tables) as (here, there), browser(here) as one, browser(there) as other:
        # Both make the secret of the cookies at the same time, and one of them counts.
        await asyncio.gather(*(visitor.http.get("/chat") for visitor in (one, other)))
        for url, visitor in ((there, one), (here, other)):
            cookie = "; ".join(f"{name}={value}" for name, value in visitor.http.cookies.items())
            async with browser(url) as moved:
                moved.http.headers["cookie"] = cookie
                assert (await moved.get("account"))["you"] == (await visitor.get("account"))["you"]


async def test_two_devices_on_two_hosts_stay_in_step(postgres_tables: str) -> None:
    async with two_hosts(postgres_tables) as (here, there), browser(here) as desk, browser(there) as phone:
        for visitor in (desk, phone):
            await visitor.http.get("/chat")
        await desk.say("said at the desk")
        await desk.wait_for_messages(2)
        me = await phone.get("me")
        place = {"after": me["cursor"], "box": me["box"]}
        await account(phone, "code", code=(await account(desk, "link"))["code"])
        await answer(phone)
        assert (await answer(desk))["outcome"] == "linked"
        async with asyncio.timeout(DEADLINE):
            # The phone is answered as who it was, until its host has heard of the link.
            while (frame := await phone.http.get("/chat/api/poll", params=place)).json().get("box") == place["box"]:
                place["after"] = frame.json()["cursor"]
        assert (await phone.get("me"))["box"] == (await desk.get("me"))["box"]
        # The ids of messages are a page's own.
        phone.count = 100
        await phone.say("said on the phone")
        await desk.say("and at the desk again")

        async def all_said() -> list[str] | None:
            texts = await desk.texts()
            wanted = ("said at the desk", "said on the phone", "and at the desk again")
            return texts if all(texts.count(text) == 2 for text in wanted) else None

        texts = await desk.until(all_said)
        assert await phone.texts() == texts
        assert (await account(phone, "unlink"))["outcome"] == "parted"
        assert "said at the desk" not in await phone.texts()
