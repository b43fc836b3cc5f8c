"""The contract of chat channels for questions with buttons."""

from typing import Any

import pytest
from agent_framework import (
    Agent,
    Content,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)

from frontdesk.approvals.policy import ApprovalOptions
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing.chat_driver import ChatDriver
from frontdesk_testing.chat_platform import ShownMessage


class Bank:
    """A tool that requires approval."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def agent(self, *replies: Any) -> Agent[Any]:
        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        call = Content.from_function_call("call-1", "pay", arguments={"amount": 5})
        return Agent(client=ScriptedChatClient([[call], *replies]), tools=[pay])


class _Asker(Executor):
    """Requests information, and returns the answer."""

    def __init__(self) -> None:
        super().__init__("asker")

    @handler
    async def ask(self, text: str, context: WorkflowContext[str, str]) -> None:
        await context.request_info({"question": "Shall I?"}, bool)

    @response_handler
    async def hear(self, asked: dict[str, Any], answer: bool, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"heard {answer}")


def _build_asking_workflow() -> Workflow:
    asker = _Asker()
    return WorkflowBuilder(name="asker", start_executor=asker, output_from=[asker]).build()


def _data(question: ShownMessage, text: str) -> str:
    return next(button.data for button in question.buttons if button.text == text)


class Questions(ChatDriver):
    """Approvals by button: one decision, by the approver."""

    async def test_a_button_answers_its_question(self) -> None:
        self._require_buttons()
        bank = Bank()
        async with self.chat(bank.agent("done")) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "pay 5")
            (question,) = await chat.messages(ada.chat_id, 1)
            assert "pay" in question.text
            assert [button.text for button in question.buttons] == ["Approve", "Reject"]
            click = await chat.platform.press(ada, question, _data(question, "Approve"))
            shown = await chat.until_said(ada.chat_id, "done")
            if self.has_notices:
                assert len(shown) == 2
                assert "approved" in await chat.notice(click)
            else:
                await chat.until_said(ada.chat_id, "approved")
        assert bank.paid == [5]

    async def test_a_button_that_says_no(self) -> None:
        self._require_buttons()
        bank = Bank()
        async with self.chat(bank.agent("then not")) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "pay 5")
            (question,) = await chat.messages(ada.chat_id, 1)
            await chat.platform.press(ada, question, _data(question, "Reject"))
            await chat.until_said(ada.chat_id, "then not")
        assert bank.paid == []

    async def test_a_button_of_somebody_else_decides_nothing(self) -> None:
        self._require_buttons()
        self.require_groups()
        bank = Bank()
        options = ApprovalOptions(show_arguments_in_groups=True)
        async with self.chat(bank.agent("done"), host={"approvals": options}) as chat:
            ada, bob = await chat.platform.person("Ada"), await chat.platform.person("Bob")
            group = await chat.platform.group(ada, bob)
            await chat.platform.say(ada, f"{chat.platform.mention} pay 5", chat_id=group)
            (question,) = await chat.messages(group, 1)
            wrong = await chat.platform.press(bob, question, _data(question, "Approve"), chat_id=group)
            if self.has_notices:
                assert "not yours" in await chat.notice(wrong)
            assert bank.paid == []
            await chat.platform.press(ada, question, _data(question, "Approve"), chat_id=group)
            await chat.until_said(group, "done")
        assert bank.paid == [5]

    async def test_a_button_that_is_pressed_again_decides_nothing(self) -> None:
        self._require_buttons()
        bank = Bank()
        async with self.chat(bank.agent("done", "later")) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "pay 5")
            (question,) = await chat.messages(ada.chat_id, 1)
            first = await chat.platform.press(ada, question, _data(question, "Approve"))
            again = await chat.platform.press(ada, question, _data(question, "Approve"))
            await chat.platform.repeat(first)
            await chat.until_said(ada.chat_id, "done")
            # It has ended meanwhile.
            late = await chat.platform.press(ada, question, _data(question, "Reject"))
            if self.has_notices:
                assert await chat.notice(again)
                assert await chat.notice(late)
            await chat.platform.say(ada, "more?")
            shown = await chat.until_said(ada.chat_id, "later")
            if self.has_notices:
                assert len(shown) == 3
            if chat.channel.push_edits:
                # Nobody can press what was decided.
                assert not any(message.buttons for message in await chat.platform.shown(ada.chat_id))
        assert bank.paid == [5]

    async def test_a_question_of_a_workflow_is_answered_by_a_button_or_a_word(self) -> None:
        async with self.chat(_build_asking_workflow) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "ask me")
            (question,) = await chat.messages(ada.chat_id, 1)
            assert "Shall I?" in question.text
            if self.has_buttons:
                await chat.platform.press(ada, question, _data(question, "Yes"))
            else:
                await chat.platform.say(ada, "yes")
            assert (await chat.texts(ada.chat_id, 2))[1].strip() == "heard True"
            await chat.platform.say(ada, "ask me again")
            await chat.messages(ada.chat_id, 3)
            await chat.platform.say(ada, "no")
            assert (await chat.texts(ada.chat_id, 4))[3].strip() == "heard False"

    async def test_made_up_data_of_a_button_does_nothing(self) -> None:
        self._require_buttons()
        bank = Bank()
        async with self.chat(bank.agent("done")) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "pay 5")
            (question,) = await chat.messages(ada.chat_id, 1)
            for data in ("ok:apr_made_up", "choose:x:0", "nonsense", "ok:"):
                await chat.platform.repeat(await chat.platform.press(ada, question, data))
            await chat.platform.press(ada, question, _data(question, "Approve"))
            await chat.until_said(ada.chat_id, "done")
        assert bank.paid == [5]

    @pytest.mark.parametrize(("word", "paid"), [("yes", [5]), ("no", [])])
    async def test_without_buttons_a_word_with_the_id_answers(self, word: str, paid: list[int]) -> None:
        if self.has_buttons:
            pytest.skip("the platform has buttons")
        bank = Bank()
        async with self.chat(bank.agent("done")) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "pay 5")
            (question,) = await chat.texts(ada.chat_id, 1)
            approval_id = question.partition("yes ")[2].split()[0].rstrip(".,")
            await chat.platform.say(ada, f"{word} {approval_id}")
            await chat.until_said(ada.chat_id, "done")
        assert bank.paid == paid

    def _require_buttons(self) -> None:
        if not self.has_buttons:
            pytest.skip("the platform has no buttons")
