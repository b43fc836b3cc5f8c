"""Whatever is done to a conversation, its pages lead through its items in order, and the agent hears what they say."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost, InMemoryStateStore
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.examples import examples

STORES: dict[str, Callable[[str], Any]] = {
    "memory": lambda _: InMemoryStateStore(),
    # It forgets all but the last session, so that conversations outlive theirs.
    "forgetful": lambda _: InMemoryStateStore(limit=1),
    "sqlite": lambda place: SqliteStateStore(Path(place) / "frontdesk.db"),
}

_steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 3)),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("ask"), st.sampled_from(["stored", "streamed", "unstored", "failing"])),
        st.tuples(st.just("elsewhere"), st.just(0)),
        st.tuples(st.just("page"), st.integers(1, 4)),
    ),
    max_size=14,
)


class Story:
    """A conversation, and what it should say."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.heard: list[str] = []
        self.said: list[str] = []
        self.count = 0

    async def answer(self, messages: list[Any]) -> str:
        """The agent: annotated so that it hears the whole conversation."""
        self.heard = [message.text for message in messages]
        if self.heard[-1].startswith("fail"):
            raise RuntimeError(self.heard[-1])
        return f"{len(messages)} heard"

    def word(self, kind: str) -> str:
        self.count += 1
        return f"{kind} {self.count}"

    async def begin(self) -> None:
        made = await self.http.post("/conversations", json={})
        self.path = f"/conversations/{made.json()['id']}"

    async def add(self, many: int) -> None:
        words = [self.word("added") for _ in range(many)]
        items = [{"role": "user", "content": one} for one in words]
        assert (await self.http.post(f"{self.path}/items", json={"items": items})).status_code == 200
        self.said += words

    async def delete(self, place: int) -> None:
        items = await self.list_pages(100, "asc")
        if items:
            one = place % len(items)
            assert (await self.http.delete(f"{self.path}/items/{items[one]['id']}")).status_code == 200
            del self.said[one]

    async def ask(self, how: str) -> None:
        word = self.word("fail" if how == "failing" else "asked")
        body = {"input": word, "conversation": self.path.rpartition("/")[2], "stream": how == "streamed"}
        answered = await self.http.post("/responses", json={**body, "store": how != "unstored"})
        assert answered.status_code == 200, answered.text
        assert ('"status":"failed"' in answered.text) == (how == "failing")
        assert self.heard == [*self.said, word]
        if how != "unstored":
            self.said += [word] if how == "failing" else [word, f"{len(self.said) + 1} heard"]

    async def elsewhere(self, _: int) -> None:
        await self.http.post("/responses", json={"input": "apart"})

    async def page(self, limit: int) -> None:
        for order in ("asc", "desc"):
            found = [item["content"][0]["text"] for item in await self.list_pages(limit, order)]
            assert found == (self.said if order == "asc" else self.said[::-1])

    async def list_pages(self, limit: int, order: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            query = f"limit={limit}&order={order}{after}"
            page = (await self.http.get(f"{self.path}/items?{query}")).json()
            assert len(page["data"]) <= limit
            found += page["data"]
            if not page["has_more"]:
                return found
            after = f"&after={page['last_id']}"


async def _play(store: Any, steps: list[tuple[str, Any]]) -> None:
    story: Story

    async def answer(messages: list[Any]) -> str:
        return await story.answer(messages)

    host = AgentFrameworkHost(answer, channels=[ResponsesChannel(), ConversationsChannel()], store=store)
    async with (
        host.app.router.lifespan_context(host.app),
        httpx.AsyncClient(transport=httpx.ASGITransport(host.app), base_url="http://127.0.0.1") as http,
    ):
        story = Story(http)
        await story.begin()
        for name, value in [*steps, ("ask", "stored"), ("page", 2)]:
            await getattr(story, name)(value)


@pytest.mark.parametrize("kind", STORES)
@given(steps=_steps)
@examples(25)
def test_the_agent_hears_what_the_items_say(kind: str, steps: list[tuple[str, Any]]) -> None:
    with TemporaryDirectory() as place:
        asyncio.run(_play(STORES[kind](place), steps))
