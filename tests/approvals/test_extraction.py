"""Questions in a result, and the answers that the framework resumes with."""

import json
from typing import Any

import pytest
from agent_framework import Agent, AgentResponse, Content, Message, tool
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.approvals.extraction import answer, digest, questions
from frontdesk.errors import ApprovalIdError
from frontdesk.scripted import ScriptedChatClient
from tests.sessions.admitted import build_admitted

paid: list[int] = []


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Pays."""
    paid.append(amount)
    return f"paid {amount}"


def call(amount: int, call_id: str = "call_1") -> Content:
    return Content.from_function_call(call_id, "pay", arguments=json.dumps({"amount": amount}))


def request(arguments: Any, name: str = "pay") -> Content:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Content.from_function_approval_request("apr_1", Content.from_function_call("call_1", name, arguments=text))


async def ask(*calls: Content) -> AgentResponse[Any]:
    """A result that needs a human's word."""
    agent = Agent(ScriptedChatClient([list(calls)]), name="clerk", tools=[pay])
    return await agent.run("pay", session=agent.create_session(session_id="ses_1"))


async def test_every_call_that_waits_is_a_question() -> None:
    paid.clear()
    response = await ask(call(5), call(7, "call_2"))
    found = questions(response, build_admitted(run_id="run_1"), "ses_1")
    assert [(one.tool, one.run_id, one.session_id, one.owner, one.status) for one in found] == [
        ("pay", "run_1", "ses_1", "alice", "pending")
    ] * 2
    assert [one.request.function_call.parse_arguments() for one in found] == [{"amount": 5}, {"amount": 7}]
    assert len({one.approval_id for one in found}) == 2
    assert len({one.digest for one in found}) == 2
    assert found[0].created_at == 1000.0
    assert paid == []


@pytest.mark.parametrize(
    "result",
    [None, "text", {"a": 1}, AgentResponse(messages=[]), AgentResponse(messages=[Message("assistant", ["hi"])])],
    ids=["none", "text", "dict", "empty", "plain"],
)
def test_anything_else_asks_nothing(result: Any) -> None:
    assert list(questions(result, build_admitted(), "ses_1")) == []


def test_a_call_that_a_client_has_to_make_is_no_question() -> None:
    handed_out = call(5)
    handed_out.user_input_request = True
    assert (
        list(questions(AgentResponse(messages=[Message("assistant", [handed_out])]), build_admitted(), "ses_1")) == []
    )


class TestIds:
    def list_ids(self, *ids: Any) -> list[str]:
        contents = [Content.from_function_approval_request(one, call(5)) for one in ids]
        result = AgentResponse(messages=[Message("assistant", contents)])
        return [one.approval_id for one in questions(result, build_admitted(), "ses_1")]

    @pytest.mark.parametrize("missing", [None, "", " ", "\t\n", "\u3000"])
    def test_a_question_without_an_id_is_refused(self, missing: Any) -> None:
        with pytest.raises(ApprovalIdError, match="'pay' has no id") as caught:
            self.list_ids("a", missing)
        assert caught.value.code == "approval_id_missing"

    @pytest.mark.parametrize("wrong", [0, 7, b"q", ["q"], "x" * 257, "a\nb", "a\n", " a", "a\0", "\ud800", "\u202eq"])
    def test_an_id_that_is_no_plain_text_is_refused(self, wrong: Any) -> None:
        with pytest.raises(ApprovalIdError, match="must be a string of 1 to 256") as caught:
            self.list_ids("a", wrong)
        assert caught.value.code == "approval_id_invalid"

    def test_one_id_for_two_questions_is_refused(self) -> None:
        with pytest.raises(ApprovalIdError) as caught:
            self.list_ids("a", "b", "a")
        assert caught.value.code == "approval_id_taken"

    @given(st.lists(st.none() | st.text(max_size=4) | st.sampled_from(["a", "b", "x" * 256, "x" * 257]), max_size=4))
    def test_what_is_asked_has_an_id_of_its_own(self, ids: list[Any]) -> None:
        try:
            found = self.list_ids(*ids)
        except ApprovalIdError:
            good = [one for one in ids if one and len(one) <= 256 and one.isprintable() and one == one.strip()]
            assert len(set(good)) < len(ids)
        else:
            assert found == ids
            assert len(set(found)) == len(found)
            assert all(one.strip() and one.isprintable() for one in found)


class TestDigest:
    def test_it_is_of_the_tool_and_its_arguments(self) -> None:
        same = [request({"a": 1, "b": 2}), request('{"b": 2,   "a": 1}')]
        assert len({digest(one) for one in same}) == 1
        different = [
            request({"a": 1, "b": 2}),
            request({"a": 1, "b": 3}),
            request({"a": 1}),
            request({"a": "1", "b": 2}),
            request({"a": 1, "b": 2}, name="refund"),
            request({}),
            request("not json"),
        ]
        assert len({digest(one) for one in different}) == len(different)

    @given(
        one=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3),
        two=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3),
    )
    def test_other_arguments_are_another_digest(self, one: dict[str, Any], two: dict[str, Any]) -> None:
        assert (digest(request(one)) == digest(request(two))) == (one == two)


class TestAnswer:
    async def question(self) -> Any:
        return questions(await ask(call(5)), build_admitted(run_id="run_1"), "ses_1")[0]

    @pytest.mark.parametrize("approved", [True, False])
    async def test_it_is_made_from_what_was_stored(self, approved: bool) -> None:
        question = await self.question()
        message = answer(question, approved, None)
        (content,) = message.contents
        assert message.role == "user"
        assert content.type == "function_approval_response"
        assert content.approved is approved
        assert content.function_call is not None
        assert content.function_call.parse_arguments() == {"amount": 5}

    async def test_a_reason_goes_along_with_a_no(self) -> None:
        question = await self.question()
        assert answer(question, False, "too much").text == "too much"
        assert answer(question, True, "fine").text == ""

    @pytest.mark.parametrize("approved", [True, False])
    async def test_the_framework_resumes_with_it(self, approved: bool) -> None:
        paid.clear()
        client = ScriptedChatClient([[call(5)], "done"])
        agent = Agent(client, name="clerk", tools=[pay])
        session = agent.create_session(session_id="ses_1")
        response = await agent.run("pay", session=session)
        (question,) = questions(response, build_admitted(), "ses_1")
        result = await agent.run(answer(question, approved, None), session=session)
        assert result.text == "done"
        assert paid == ([5] if approved else [])
