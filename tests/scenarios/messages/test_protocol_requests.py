"""The `run_hook` of a chat sees the platform's event, however the request came about."""

from typing import Any

from frontdesk import ChannelCommand, ChannelRequest
from frontdesk_testing import EchoAgent, GatedAgent
from frontdesk_testing.internals import claims_wait_for, get_store
from tests.scenarios.cast import call
from tests.scenarios.messages.chat import open_chat
from tests.scenarios.messages.test_buttons import Bank


class Hook:
    """Keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        self.seen.append(protocol_request)
        return request

    def texts(self) -> list[Any]:
        return [_text(shown) for shown in self.seen]


def _text(shown: Any) -> Any:
    return [_text(event) for event in shown] if isinstance(shown, list) else shown["message"]["text"]


async def test_a_hook_sees_the_events_of_a_message_and_of_a_button() -> None:
    hook, bank = Hook(), Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), run_hook=hook) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        click = await chat.platform.click(ada, await chat.last(ada.chat_id, 1), "Approve")
        await chat.wait_for_answers(ada.chat_id, 2)
    message, button = hook.seen
    assert message["message"]["text"] == "pay 5"
    assert (button["event_id"], button["type"]) == (click.event_id, "click")


async def test_a_hook_sees_all_events_that_are_answered_together() -> None:
    hook = Hook()
    async with open_chat(EchoAgent(), run_hook=hook, gather_seconds=0.5) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.set(hold=True)
        events = [await chat.platform.say(ada, text) for text in ("one", "two")]
        with claims_wait_for(get_store(chat.host), 2):
            await chat.platform.release(*events)
            assert await chat.wait_for_answers(ada.chat_id, 1) == ["one\ntwo"]
    assert hook.texts() == [["one", "two"]]


async def test_a_hook_sees_the_event_of_a_command_that_runs_the_target() -> None:
    async def ask(command: Any) -> None:
        hosted = await command.run(command.request.replace(operation="message", input=command.args))
        await command.reply(hosted.result.text)

    hook = Hook()
    async with open_chat(EchoAgent(), run_hook=hook, commands=[ChannelCommand("ask", "Ask", ask)]) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/ask me")
        assert await chat.wait_for_answers(ada.chat_id) == ["me"]
    assert hook.texts() == ["/ask me"]


async def test_a_hook_sees_the_events_of_questions_that_were_cancelled() -> None:
    hook, agent = Hook(), GatedAgent()
    async with open_chat(agent, run_hook=hook, on_busy="interrupt") as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one")
        await agent.started.wait()
        # Either its turn is cancelled, or it is recorded as cancelled before it has one.
        events = [await chat.platform.say(ada, text) for text in ("two", "three")]
        await chat.platform.wait_for_acknowledged(*events)
        agent.release.set()
        assert await chat.wait_for_answers(ada.chat_id, 1) == ["three"]
    assert list(dict.fromkeys(hook.texts())) == ["one", "two", "three"]
