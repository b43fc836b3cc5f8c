"""A person talks while a run of theirs goes on: it works on a branch, and both conversations are one at its end."""

from contextlib import nullcontext
from typing import Any

import pytest
from agent_framework import AgentSession, ContextProvider, Message, tool

from frontdesk import Caller, ChannelCommand, ChannelIdentity, ChannelRequest, ChannelSession, ResponseTarget
from frontdesk.delivery.proactive import WORK_GOES_ON
from frontdesk.errors import InvalidRequestError
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.identity import IsolationKeys
from frontdesk.models.session import SessionName
from frontdesk_testing.internals import get_components
from tests.scenarios.cast import build_scripted, call, voices
from tests.scenarios.delivery.chats import OWNER, Chats, Holding, open_chats
from tests.scenarios.desk import until

ANN = Caller(identity=ChannelIdentity(channel="a", native_id="ann"))


async def nothing(context: Any) -> None:
    """Does nothing."""


async def test_a_person_had_to_wait_until_their_run_had_ended() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        await chats.a.say("count the rooms")
        await agent.begins("count the rooms")
        await chats.a.hears(WORK_GOES_ON)
        await chats.b.say("hello")
        await chats.b.hears("hello")
        agent.release("count the rooms")
        await chats.b.hears("hello", "count the rooms")
        assert chats.a.texts() == [WORK_GOES_ON]
        # What was said meanwhile comes first, and the run has not heard it.
        assert await chats.list_said() == ["hello", "hello", "count the rooms", "count the rooms"]
        assert agent.list_heard("count the rooms") == ["count the rooms"]
        await chats.b.say("and now?")
        await chats.b.hears("hello", "count the rooms", "and now?")
        assert agent.list_heard("and now?") == ["hello", "hello", "count the rooms", "count the rooms", "and now?"]


async def test_a_branch_begins_with_what_was_said_before() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        await chats.a.say("hello")
        await chats.a.hears("hello")
        agent.release("count the rooms")
        await chats.a.say("count the rooms")
        await chats.a.hears("hello", WORK_GOES_ON, "count the rooms")
        assert agent.list_heard("count the rooms") == ["hello", "hello", "count the rooms"]


async def test_the_run_names_the_tracked_session_and_no_other_is_kept() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        await chats.b.say("hello")
        await chats.b.hears("hello")
        agent.release("count")
        await chats.a.say("count")
        await chats.a.hears(WORK_GOES_ON, "count")
        session = await chats.store.sessions.find(SessionName(owner=OWNER, kind="tracked"))
        (run_id,) = {one.run_id for one in await chats.host.deliveries.list(channel="a")}
        run = await chats.store.runs.get(OWNER, run_id)
        assert session is not None
        assert run is not None
        assert (run.session_id, run.messages, session.messages, session.turns) == (session.session_id, 4, 4, 2)
        # An ordinary turn can continue it, and goes on where the session stands.
        more = ChannelRequest(channel="probe", input="more", previous_run_id=run_id)
        ann = Caller(identity=ChannelIdentity(channel="probe", native_id="ann"))
        answered = await chats.door.context.run(more, ann)
        assert answered.run.session_id == session.session_id


async def test_two_runs_of_one_person_go_on_at_once() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        for text in ("count one", "count two"):
            await chats.a.say(text)
            await agent.begins(text)
        agent.release("count two")
        await chats.a.hears(WORK_GOES_ON, WORK_GOES_ON, "count two")
        agent.release("count one")
        await chats.a.hears(WORK_GOES_ON, WORK_GOES_ON, "count two", "count one")
        assert await chats.list_said() == ["count two", "count two", "count one", "count one"]


async def test_a_run_goes_back_to_the_session_that_it_began_in() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        name = SessionName(owner=OWNER, kind="tracked")
        before = await chats.store.sessions.reserve(name, "another")
        await chats.host.reset_session(OWNER)
        await chats.a.say("hello")
        await chats.a.hears(WORK_GOES_ON, "hello")
        agent.release("count")
        await chats.a.hears(WORK_GOES_ON, "hello", "count")
        assert await chats.list_said() == ["hello", "hello"]
        assert [one.text for one in await chats.store.sessions.history(OWNER, before)] == ["count", "count"]


async def test_a_run_that_fails_leaves_its_question_and_says_so() -> None:
    class Failing(Holding):
        async def speak(self, words: list[str]) -> Any:
            async for update in super().speak(words):
                if words[0].startswith("count"):
                    raise RuntimeError("no")
                yield update

    agent = Failing()
    async with open_chats(agent) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        await chats.a.say("hello")
        await chats.a.hears(WORK_GOES_ON, "hello")
        agent.release("count")
        await until(lambda: len(chats.a.texts()) == 3)
        question = (await chats.read_tracked())[-1]
        assert (question.text, question.additional_properties["hosting"]["status"]) == ("count", "failed")


async def cancel(chats: Chats) -> Any:
    (queued,) = {one.run_id for one in await chats.host.deliveries.list(channel="a")}
    return await chats.a.context.runs.cancel(ANN, queued)


async def test_a_run_is_cancelled_and_its_question_stays() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        assert (await cancel(chats)).status == "cancelled"
        question = (await chats.read_tracked())[-1]
        assert (question.text, question.additional_properties["hosting"]["status"]) == ("count", "cancelled")


def waits_for_its_session(chats: Chats) -> bool:
    return any(get_components(chats.host).turns._locks._waiting.values())


async def test_a_run_that_waits_for_its_session_can_be_cancelled() -> None:
    agent = Holding()
    async with open_chats(agent, cancel_grace_seconds=0) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        # An ordinary turn holds the session.
        await chats.b.say("count slowly")
        await agent.begins("count slowly")
        agent.release("count")
        await until(lambda: waits_for_its_session(chats))
        assert (await cancel(chats)).status == "cancelled"
        agent.release("count slowly")
        await chats.b.hears("count slowly")
        assert await chats.list_said() == ["count slowly", "count slowly"]
        assert chats.a.texts() == [WORK_GOES_ON]
        await chats.b.say("hello")
        await chats.b.hears("count slowly", "hello")


class Counting(ContextProvider):
    """Counts in the session's state how often it was asked."""

    def __init__(self) -> None:
        super().__init__("counting")
        self.counts: list[int] = []

    async def before_run(self, *, session: AgentSession, **_: Any) -> None:
        session.state["count"] = session.state.get("count", 0) + 1
        self.counts.append(session.state["count"])


async def test_the_state_of_a_branch_is_a_copy_and_is_dropped() -> None:
    counting = Counting()
    agent = build_scripted(lambda messages: [f"re: {messages[-1].text}"], context_providers=[counting])
    async with open_chats(agent) as chats:
        await chats.a.say("hello")
        await chats.a.hears("re: hello")
        await chats.a.say("count")
        await chats.a.hears("re: hello", WORK_GOES_ON, "re: count")
        await chats.a.say("again")
        await chats.a.hears("re: hello", WORK_GOES_ON, "re: count", "re: again")
        assert counting.counts == [1, 2, 2]
        assert await chats.list_said() == ["hello", "re: hello", "count", "re: count", "again", "re: again"]


async def test_a_branch_was_another_chat_to_context_providers() -> None:
    chat_keys: list[str | None] = []

    class Bound(ContextProvider):
        def bind_request_context(self, *, isolation: IsolationKeys) -> Any:
            chat_keys.append(isolation.chat_key)
            return nullcontext()

    agent = build_scripted(lambda messages: [f"re: {messages[-1].text}"], context_providers=[Bound("bound")])
    async with open_chats(agent) as chats:
        await chats.a.say("hello")
        await chats.a.hears("re: hello")
        await chats.a.say("count")
        await chats.a.hears("re: hello", WORK_GOES_ON, "re: count")
        session = await chats.store.sessions.find(SessionName(owner=OWNER, kind="tracked"))
        assert session is not None
        assert chat_keys == [session.session_id] * 2


async def test_a_question_of_a_branch_is_answered_in_the_tracked_session() -> None:
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    def script(messages: list[Message]) -> Any:
        last = messages[-1]
        if last.role == "tool":
            return ["it is paid"]
        return [call("pay", amount=5)] if last.text.startswith("pay") else [f"re: {last.text}"]

    async with open_chats(build_scripted(script, tools=[pay])) as chats:
        await chats.a.say("pay it")
        await until(lambda: chats.a.context.approvals.pending(ANN))
        (question,) = await chats.a.context.approvals.pending(ANN)
        session = await chats.store.sessions.find(SessionName(owner=OWNER, kind="tracked"))
        assert session is not None
        assert question.session_id == session.session_id
        await chats.b.say("hello")
        await chats.b.hears("re: hello")
        answer = ApprovalAnswer(approval_id=question.approval_id, approved=True)
        going_on = await chats.a.context.approvals.build_request(ANN, [answer])
        answered = await chats.a.context.run(going_on, ANN)
        assert (answered.result.text, answered.run.session_id, paid) == ("it is paid", session.session_id, [5])


@pytest.mark.parametrize("commands", [(), (ChannelCommand("cancel", "Stop it", nothing),)], ids=["without", "with"])
async def test_the_asker_is_told_how_to_cancel_where_that_is_possible(commands: Any) -> None:
    agent = Holding()
    agent.release("count")
    async with open_chats(agent, commands=commands) as chats:
        await chats.a.say("count")
        told = f"{WORK_GOES_ON} /cancel stops it." if commands else WORK_GOES_ON
        await chats.a.hears(told, "count")


async def test_a_workflow_is_refused_and_told_what_to_do() -> None:
    async with open_chats(voices) as chats:
        request = ChannelRequest(channel="a", input="tell", response_target=ResponseTarget.channel("b"))
        with pytest.raises(InvalidRequestError) as refused:
            await chats.host.run_in_background(request, identity=ANN.identity)
        assert (refused.value.code, refused.value.param) == ("branch_not_possible", "response_target")
        assert "name a session" in refused.value.message
        # In a session that has a name of its own, it holds that one.
        named = request.replace(session=ChannelSession(key="rooms"))
        assert (await chats.host.run_in_background(named, identity=ANN.identity)).run_id
        # And so does one whose answer goes back to where it was asked.
        back = request.replace(response_target=ResponseTarget.originating)
        assert (await chats.host.run_in_background(back, identity=ANN.identity)).run_id


async def test_an_agent_that_keeps_its_conversations_is_refused() -> None:
    async with open_chats(build_scripted([["hi"]]), history="agent") as chats:
        request = ChannelRequest(channel="a", input="tell", response_target=ResponseTarget.none)
        with pytest.raises(InvalidRequestError) as refused:
            await chats.host.run_in_background(request, identity=ANN.identity)
        assert refused.value.code == "branch_not_possible"


async def test_ordinary_turns_never_branch() -> None:
    agent = Holding()
    async with open_chats(agent, ResponseTarget.originating) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        await chats.b.say("hello")
        agent.release("count")
        await chats.b.hears("hello")
        # It waited for the run, whose answer goes back to where it was asked, and has heard it.
        assert agent.list_heard("hello") == ["count", "count", "hello"]
