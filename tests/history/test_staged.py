"""The host keeps the history, unless the operator's agent brings something that does."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    executor,
)

from frontdesk.errors import ChannelConfigurationError
from frontdesk.history.staged import HostedHistory, install_history
from frontdesk.models.delivery import Route
from frontdesk.models.run import RunRecord
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent
from tests.sessions.admitted import Room
from tests.targets.turns import turn_of


class OwnHistory(HistoryProvider):
    """A provider of the operator's own."""

    def __init__(self, *, load: bool = True) -> None:
        super().__init__("own", load_messages=load)
        self.kept: list[Message] = []

    async def get_messages(self, session_id: str | None, *, state: Any = None, **kwargs: Any) -> list[Message]:
        return list(self.kept)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: Any = None, **kwargs: Any
    ) -> None:
        self.kept.extend(messages)


def agent(*providers: Any, replies: Any = ()) -> Agent:
    return Agent(ScriptedChatClient(replies), name="clerk", context_providers=list(providers))


class TestInstall:
    def test_an_agent_without_history_gets_the_hosts(self) -> None:
        clerk = agent()
        assert install_history(clerk) == "provider"
        assert [type(one) for one in clerk.context_providers] == [HostedHistory]

    def test_the_frameworks_own_memory_counts_as_none(self) -> None:
        clerk = agent(InMemoryHistoryProvider())
        assert install_history(clerk) == "provider"
        assert [type(one) for one in clerk.context_providers] == [HostedHistory]

    def test_installing_twice_is_installing_once(self) -> None:
        clerk = agent()
        assert [install_history(clerk), install_history(clerk)] == ["provider", "provider"]
        assert len(clerk.context_providers) == 1

    def test_a_provider_of_the_operators_own_stays_alone(self) -> None:
        own = OwnHistory()
        clerk = agent(own)
        assert install_history(clerk) == "own"
        assert clerk.context_providers == [own]

    def test_a_provider_that_only_writes_along_keeps_nothing_for_us(self) -> None:
        audit = OwnHistory(load=False)
        clerk = agent(audit)
        assert install_history(clerk) == "provider"
        assert [type(one) for one in clerk.context_providers] == [OwnHistory, HostedHistory]

    def test_a_memory_of_the_operators_own_kind_is_the_operators(self) -> None:
        class Encrypted(InMemoryHistoryProvider):
            pass

        clerk = agent(Encrypted())
        assert install_history(clerk) == "own"

    def test_around_anything_else_the_host_keeps_it_itself(self) -> None:
        assert install_history(EchoAgent()) == "host"

    def test_an_agent_of_the_frameworks_other_packages_keeps_its_session(self) -> None:
        kind = type("A2AAgent", (EchoAgent,), {"__module__": "agent_framework_a2a._agent"})
        mine = type("Mine", (kind,), {})
        assert [install_history(one()) for one in (kind, mine)] == ["agent", "agent"]
        assert install_history(mine(), "host") == "host"

    def test_an_agent_that_is_let_keeps_its_own_and_not_the_hosts_too(self) -> None:
        clerk = agent()
        assert [install_history(clerk), install_history(clerk, "agent")] == ["provider", "agent"]
        assert clerk.context_providers == []

    def test_two_keepers_are_one_too_many(self) -> None:
        clerk = agent(OwnHistory())
        assert install_history(clerk, "agent") == "own"
        with pytest.raises(ChannelConfigurationError, match="leave one of them out"):
            install_history(clerk, "host")

    def test_a_workflow_as_an_agent_gets_the_hosts(self) -> None:
        @executor(id="step")
        async def step(said: list[Message], context: WorkflowContext[str, str]) -> None:
            await context.yield_output(said[-1].text)

        talk = WorkflowBuilder(name="talk", start_executor=step).build().as_agent()
        assert install_history(talk) == "provider"
        assert [type(one) for one in talk.context_providers] == [HostedHistory]


class TestHosted:
    async def test_in_a_turn_it_loads_from_the_host_and_stages(self) -> None:
        remaining, clerk = Room(), agent(replies=["re: two"])
        install_history(clerk)
        await remaining.say("one", key="mine")
        async with turn_of("two", remaining=remaining, key="mine") as turn:
            assert turn.session is not None
            await clerk.run(turn.messages, session=turn.session)
            assert turn.staged is not None
            assert [message.text for message in turn.staged] == ["two", "re: two"]
            assert not any("one" in str(value) for value in turn.session.state.values())

    async def test_equal_turns_are_all_staged(self) -> None:
        remaining, clerk = Room(), agent(replies=["yes"] * 4)
        install_history(clerk)
        for number in range(4):
            async with turn_of("again", remaining=remaining, key="mine") as turn:
                await clerk.run(turn.messages, session=turn.session)
                history = await remaining.texts(turn)
                assert history == ["again", "yes"] * number
                await remaining.finish(turn, "yes")

    async def test_the_stored_messages_are_not_changed_by_a_run(self) -> None:
        remaining, clerk = Room(), agent(replies=["re: two"])
        install_history(clerk)
        await remaining.say("one", key="mine")
        async with turn_of("two", remaining=remaining, key="mine") as turn:
            before = [_plain(message) for message in await turn.history()]
            await clerk.run(turn.messages, session=turn.session)
            assert [_plain(message) for message in await turn.history()] == before

    async def test_another_session_inside_a_turn_is_not_the_turns(self) -> None:
        remaining, clerk = Room(), agent(replies=["inner answer"])
        install_history(clerk)
        await remaining.say("one", key="mine")
        inner = AgentSession(session_id="inner")
        async with turn_of("two", remaining=remaining, key="mine") as turn:
            await clerk.run("inner question", session=inner)
            assert turn.staged is None
        assert [message.text for message in clerk.client.seen[0]] == ["inner question"]  # type: ignore[attr-defined]

    async def test_outside_a_turn_the_agent_works_as_it_did(self) -> None:
        clerk = agent(replies=["one", "two"])
        install_history(clerk)
        session = clerk.create_session()
        await clerk.run("first", session=session)
        await clerk.run("second", session=session)
        seen = clerk.client.seen[1]  # type: ignore[attr-defined]
        assert [message.text for message in seen] == ["first", "one", "second"]


class TestHandedOver:
    """The agent gets the very messages that are stored, so nobody may change them."""

    async def _talk(self, clerk: Agent, turns: int) -> tuple[Room, list[list[Any]]]:
        remaining, seen = Room(), []
        install_history(clerk)
        for number in range(turns):
            async with turn_of(f"question {number}", remaining=remaining, key="mine", run_id=f"run_{number}") as turn:
                before = [_plain(message) for message in await turn.history()]
                result = await clerk.run(turn.messages, session=turn.session)
                assert [_plain(message) for message in await turn.history()] == before
                await remaining.recorder.record_completed(turn, RUN, result, Route(originating=True), ())
            seen.append(before)
        return remaining, seen

    async def test_a_run_with_tools_leaves_the_stored_messages_as_they_were(self) -> None:
        call = Content.from_function_call("call", "tell_time", arguments="{}")
        replies: list[Any] = [[call], "it is noon", "as I said", [call], "still noon", "good night"]
        clerk = Agent(ScriptedChatClient(replies), name="clerk", tools=[tell_time])
        _, seen = await self._talk(clerk, 4)
        for earlier, later in pairwise(seen):
            assert later[: len(earlier)] == earlier
        assert [len(one) for one in seen] == [0, 4, 6, 10]

    async def test_the_framework_can_tell_them_from_what_is_said_now(self) -> None:
        clerk = agent(replies=["one", "two"])
        await self._talk(clerk, 2)
        seen = clerk.client.seen[1]  # type: ignore[attr-defined]
        assert ["_attribution" in message.additional_properties for message in seen] == [True, True, False]


def tell_time() -> str:
    """Tells the time."""
    return "noon"


RUN = RunRecord(run_id="run_0", owner="alice", channel="web", status="running", created_at=1.0)


def _plain(message: Message) -> Any:
    told = message.to_dict()
    told["additional_properties"] = {**message.additional_properties}
    told["additional_properties"].pop("_attribution", None)
    return told
