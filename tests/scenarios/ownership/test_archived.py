"""What somebody made before they were linked stays theirs alone: they can read it, and nobody can change it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from frontdesk import AgentFrameworkHost, ApiKeyAuth, OneTimeCodeIdentityLinker
from frontdesk.access.links import Links
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkProof
from frontdesk_testing.internals import get_components
from tests.scenarios.cast import PlainAgent
from tests.scenarios.ledger import Ledger
from tests.scenarios.ownership.town import PEOPLE
from tests.scenarios.stores import new_store

ITEMS = [{"type": "message", "role": "user", "content": "mine"}]
MADE = {
    "response": ("/v1/responses", {"input": "mine"}),
    "conversation": ("/v1/conversations", {"items": ITEMS}),
    "run": ("/invocations", {"message": "mine"}),
}


class Pair:
    """Alice and Bob, each at all doors."""

    def __init__(self, client: httpx.AsyncClient, links: Links, ledger: Ledger) -> None:
        self._client = client
        self._links = links
        self.ledger = ledger

    async def link(self) -> None:
        """Bob's accounts become Alice's, door by door."""
        for channel in ("responses", "invocations"):
            alice, bob = (ChannelIdentity(channel=channel, native_id=name) for name in ("alice", "bob"))
            await self._links.join(LinkProof(linker="by hand", identity=bob, survivor=alice))

    async def part(self) -> None:
        """And their own again."""
        for channel in ("responses", "invocations"):
            await self._links.part(ChannelIdentity(channel=channel, native_id="bob"))

    async def ask(self, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
        return await self._client.request(method, path, json=body, headers={"x-api-key": PEOPLE[who]})

    async def make(self, who: str) -> dict[str, str]:
        """Something of every kind."""
        return {name: (await self.ask(who, "POST", *call)).json()["id"] for name, call in MADE.items()}

    async def read(self, who: str, things: dict[str, str]) -> list[int]:
        return [(await self.ask(who, "GET", path)).status_code for path in _homes(things)]

    async def change(self, who: str, things: dict[str, str]) -> list[int]:
        """Everything that would change one of them."""
        response, conversation, run = things["response"], f"/v1/conversations/{things['conversation']}", things["run"]
        calls: list[tuple[str, str, Any]] = [
            ("POST", "/v1/responses", {"input": "more", "previous_response_id": response}),
            ("POST", "/v1/responses", {"input": "more", "previous_response_id": response, "background": True}),
            ("POST", "/v1/responses", {"input": "more", "conversation": things["conversation"]}),
            ("POST", f"/v1/responses/{response}/cancel", None),
            ("DELETE", f"/v1/responses/{response}", None),
            ("POST", conversation, {"metadata": {"a": "b"}}),
            ("POST", f"{conversation}/items", {"items": ITEMS}),
            ("DELETE", conversation, None),
            ("POST", f"/invocations/{run}/cancel", None),
        ]
        return [(await self.ask(who, *call)).status_code for call in calls]


def _homes(things: dict[str, str]) -> list[str]:
    response, conversation = f"/v1/responses/{things['response']}", f"/v1/conversations/{things['conversation']}"
    return [response, f"{response}/input_items", conversation, f"{conversation}/items", f"/invocations/{things['run']}"]


@asynccontextmanager
async def open_pair() -> AsyncIterator[Pair]:
    """A started host."""
    auth, ledger = ApiKeyAuth(PEOPLE), Ledger(new_store())
    store: Any = ledger
    channels = [ResponsesChannel(auth=auth), ConversationsChannel(auth=auth), InvocationsChannel(auth=auth)]
    host = AgentFrameworkHost(PlainAgent(), channels=channels, store=store, linker=OneTimeCodeIdentityLinker())
    async with host.app.router.lifespan_context(host.app):
        links = get_components(host).links
        assert links is not None
        transport = httpx.ASGITransport(app=host.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            yield Pair(client, links, ledger)


async def test_what_was_made_before_a_link_is_read_by_its_maker_and_changed_by_nobody() -> None:
    async with open_pair() as pair:
        bobs, alices = await pair.make("bob"), await pair.make("alice")
        await pair.link()
        assert set(await pair.read("bob", bobs)) == {200}
        assert set(await pair.read("alice", bobs)) == {404}
        # What is alice's is the memory of both from now on.
        assert set(await pair.read("bob", alices)) == {200}
        written = len(pair.ledger.writes)
        for who in PEOPLE:
            assert set(await pair.change(who, bobs)) <= {400, 404}
        assert len(pair.ledger.writes) == written
        assert set(await pair.read("bob", bobs)) == {200}


async def test_after_the_end_of_a_link_everybody_has_their_own_again_and_nothing_else() -> None:
    async with open_pair() as pair:
        bobs, alices = await pair.make("bob"), await pair.make("alice")
        await pair.link()
        shared = await pair.make("bob")
        await pair.part()
        assert set(await pair.read("bob", bobs)) == {200}
        for things in (alices, shared):
            assert set(await pair.read("bob", things)) == {404}
            assert set(await pair.read("alice", things)) == {200}
            assert set(await pair.change("bob", things)) <= {400, 404}
        assert set(await pair.read("alice", bobs)) == {404}
        assert set(await pair.change("bob", bobs)) == {200}
