"""Found by an attacker: tiny requests on a wide history took 2 s of processor time and 400 MiB each.

A history is charged to its caller before it is parsed. Memory is not measured here but counted: what turns hold at a
time is exactly what `HistoryMemory` and the limits of the channel allow.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Message

from frontdesk import AgentFrameworkHost, ApiKeyAuth, HttpLimits, InMemoryStateStore, SqliteStateStore
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import HistoryTooLargeError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.json_size import VALUE_BYTES
from frontdesk.sessions.memory import HistoryMemory
from frontdesk_testing import EchoAgent, GatedAgent, serving
from frontdesk_testing.internals import get_components
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import open_chat

PARTS = 400
LEAST = 2 * PARTS * VALUE_BYTES
"""What a message of so many parts counts at least."""
KEYS = {"alice": "alice-key-for-the-laptop", "bob": "bob-key-for-the-laptop-2"}


def wide_input() -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "input_text", "text": "a"}] * PARTS}]


class Gated(GatedAgent):
    """Waits with what follows a first message, and counts how much histories hold meanwhile."""

    memory: HistoryMemory
    most_held = 0
    waits = False

    async def speak(self, words: list[str]) -> AsyncIterator[Any]:
        self.most_held = max(self.most_held, self.memory.held)
        async for update in super().speak(words) if self.waits else EchoAgent.speak(self, words):
            yield update


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> HostStateStore:
    return InMemoryStateStore() if request.param == "memory" else SqliteStateStore(str(tmp_path / "frontdesk.db"))


class TestRequests:
    async def test_many_tiny_requests_on_wide_histories_were_all_let_in(self, store: HostStateStore) -> None:
        agent = Gated()
        limits = HttpLimits(max_bytes_per_caller=2 * LEAST, max_bytes=2 * LEAST)
        auth = ApiKeyAuth(KEYS)
        host = AgentFrameworkHost(agent, channels=[ResponsesChannel(auth=auth, limits=limits)], store=store)
        agent.memory = get_components(host).turns.memory
        async with serving(host) as client:

            async def ask(who: str, **body: Any) -> Any:
                headers = {"x-api-key": KEYS[who], "content-type": "application/json"}
                return await client.http.post("/v1/responses", content=json.dumps(body), headers=headers)

            names = ["alice"] * 6 + ["bob"]
            first = [(who, (await ask(who, input=wide_input())).json()["id"]) for who in names]
            agent.waits = True
            tiny = [
                asyncio.create_task(ask(who, input="hi", previous_response_id=earlier)) for who, earlier in first[:6]
            ]
            # One is let in, because two are more than a caller may have. The others are refused at once.
            refused, _ = await asyncio.wait(tiny, return_when=asyncio.FIRST_COMPLETED)
            while len(refused) < 5:
                more, _ = await asyncio.wait(set(tiny) - refused, return_when=asyncio.FIRST_COMPLETED)
                refused |= more
            for answer in (task.result() for task in refused):
                assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
                assert answer.json()["error"]["code"] == "too_many_requests"
            await agent.started.wait()
            assert agent.running == 1
            bob = await ask("bob", input="hi", previous_response_id=first[6][1])
            assert (bob.status_code, bob.headers["retry-after"]) == (503, "1")
            agent.release.set()
            assert {task.result().status_code for task in tiny if await asyncio.wait([task])} == {200, 429}
            # All is given back.
            for who, earlier in first[5:]:
                assert (await ask(who, input="hi", previous_response_id=earlier)).status_code == 200
            # Nothing is left of the turns that were refused: their session goes on.
            assert agent.most_held == 0

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_history_above_the_maximum_is_refused_with_what_to_do(
        self, store: HostStateStore, stream: bool
    ) -> None:
        host = AgentFrameworkHost(EchoAgent(), channels=[ResponsesChannel()], store=store, max_history_bytes=LEAST)
        async with serving(host) as client:
            first = await client.http.post("/v1/responses", json={"input": wide_input()})
            tiny = {"input": "hi", "previous_response_id": first.json()["id"], "stream": stream}
            refused = await client.http.post("/v1/responses", json=tiny)
            assert refused.status_code == 413
            assert refused.json()["error"]["code"] == "history_too_large"
            assert "begin a new conversation" in refused.json()["error"]["message"]


class TestWaiting:
    async def test_background_runs_on_wide_histories_wait_for_room_and_all_complete(
        self, store: HostStateStore
    ) -> None:
        agent = Gated()
        host = AgentFrameworkHost(agent, channels=[ResponsesChannel()], store=store)
        memory = agent.memory = get_components(host).turns.memory
        memory._max = 2 * LEAST
        async with serving(host) as client:
            post = client.http.post
            first = [(await post("/v1/responses", json={"input": wide_input()})).json()["id"] for _ in range(6)]
            agent.waits = True
            tiny = [{"input": "hi", "background": True, "previous_response_id": earlier} for earlier in first]
            ids = [(await post("/v1/responses", json=body)).json()["id"] for body in tiny]
            await until(lambda: len(memory._waiting) == 5)
            assert agent.running == agent.most_at_once == 1
            assert 0 < memory.held <= memory._max
            agent.release.set()

            async def status(name: str) -> str:
                while (found := (await client.http.get(f"/v1/responses/{name}")).json()["status"]) != "completed":
                    assert found in ("queued", "in_progress")
                    await asyncio.sleep(0.01)
                return found

            assert [await status(name) for name in ids] == ["completed"] * 6
            assert agent.most_held <= memory._max
            assert memory.held == 0

    async def test_chat_messages_on_wide_histories_wait_for_room_and_are_answered(self) -> None:
        agent, wide_words = Gated(), "x" * 1_000_000
        store = InMemoryStateStore()
        async with open_chat(agent, store=store) as chat:
            memory = agent.memory = get_components(chat.host).turns.memory
            memory._max = 3_000_000
            people = [await chat.platform.user(f"Person {number}") for number in range(4)]
            for person in people:
                await chat.platform.say(person, "hello")
            await until(lambda: len(agent.seen) == 4)
            for record in [kept for _, kept in store.sessions.kept.items()]:
                record.messages.append(Message("user", [wide_words * 2]))
            agent.waits = True
            for person in people:
                await chat.platform.say(person, "hello")
            await until(lambda: len(memory._waiting) == 3)
            assert agent.running == 1
            agent.release.set()
            await until(lambda: len(agent.seen) == 8)
            assert agent.most_held <= memory._max
            await until(lambda: memory.held == 0)


class TestHistoryMemory:
    async def test_an_owner_at_their_limit_holds_up_nobody_else(self) -> None:
        memory = HistoryMemory(max_bytes=10, max_bytes_per_owner=4)
        first = await memory.take("a", 3)
        own = asyncio.create_task(memory.take("a", 3))
        await asyncio.sleep(0)
        other = await memory.take("b", 3)
        assert not own.done()
        assert memory.held == 6
        first()
        (await own)()
        other()
        assert (memory.held, memory._held) == (0, {})

    async def test_whoever_waits_for_much_room_is_not_passed_by_those_who_need_little(self) -> None:
        memory = HistoryMemory(max_bytes=10, max_bytes_per_owner=10)
        first = await memory.take("a", 8)
        much = asyncio.create_task(memory.take("b", 9))
        await asyncio.sleep(0)
        little = asyncio.create_task(memory.take("c", 1))
        await asyncio.sleep(0)
        assert not little.done()
        first()
        await much
        await little
        assert memory.held == 10

    async def test_a_cancelled_one_gives_back_its_place_or_its_room(self) -> None:
        memory = HistoryMemory(max_bytes=10, max_bytes_per_owner=10)
        first = await memory.take("a", 8)
        waiting = [asyncio.create_task(memory.take(name, 8)) for name in ("b", "c", "d")]
        await asyncio.sleep(0)
        waiting[0].cancel()
        # It is given room before it notices.
        first()
        waiting[1].cancel()
        (await waiting[2])()
        await asyncio.gather(*waiting[:2], return_exceptions=True)
        assert (memory.held, len(memory._waiting)) == (0, 0)

    async def test_one_that_is_larger_than_all_room_is_read_alone(self) -> None:
        memory = HistoryMemory(max_bytes=10, max_bytes_per_owner=5)
        alone = await memory.take("a", 100)
        waiting = asyncio.create_task(memory.take("b", 1))
        await asyncio.sleep(0)
        assert not waiting.done()
        alone()
        await waiting

    async def test_the_maximum_is_an_error_that_says_both_sizes(self) -> None:
        with pytest.raises(HistoryTooLargeError, match=r"2\.8 MB.*1 MB"):
            await HistoryMemory(1_048_576).take("a", 3_000_000)
