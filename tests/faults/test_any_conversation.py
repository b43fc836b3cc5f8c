"""Messages, edits, clicks, `/cancel`, `/new` and crashes in any order: the chat shows what the rules allow.

Answers are shown while they are written. The platform is the fake one, and its chat is judged as it is in the end.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import Agent, ChatResponse, ChatResponseUpdate, Content, Message, tool
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost
from frontdesk.interfaces.chat import LiveTerms
from frontdesk.models.approval import PendingApproval
from frontdesk.scripted import ScriptedChatClient
from frontdesk.sessions.record import INTERRUPTION
from frontdesk.stores.memory.store import InMemoryStateStore
from tests.cards import outcome_in
from tests.examples import examples
from tests.faults.in_process_platform import InProcessPlatform, channel_on
from tests.faults.test_any_interruption import MOST_CRASHES, REPLIES, Mortal, wrong
from tests.scenarios.cast import call
from tests.scenarios.desk import until


class Model(ScriptedChatClient):
    """Repeats what it hears, in two steps; `hold` waits between them, and `pay` asks for a tool."""

    def __init__(self) -> None:
        super().__init__(())
        self.released = asyncio.Event()

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        pieces = self._pieces(messages)
        return self._build_response_stream(pieces) if stream else ChatResponse.from_update_generator(pieces)

    async def _pieces(self, messages: Sequence[Message]) -> AsyncIterator[ChatResponseUpdate]:
        if any(content.type == "function_result" for content in messages[-1].contents):
            yield _update("done")
            return
        text = next(message.text for message in reversed(messages) if message.role == "user" and message.text)
        word, _, number = text.partition(" ")
        if word == "pay":
            yield _update(call("pay", f"call-{number}", amount=int(number)))
            return
        yield _update("heard ")
        if word == "hold":
            await self.released.wait()
        yield _update(text)


def _update(said: str | Content) -> ChatResponseUpdate:
    content = Content.from_text(said) if isinstance(said, str) else said
    return ChatResponseUpdate(role="assistant", contents=[content], message_id="m")


class Conversation:
    """A chat whose host crashes and comes back."""

    def __init__(self, latency: int) -> None:
        self.shared, self.platform, self.model = InMemoryStateStore(), InProcessPlatform(latency), Model()
        self.said: list[str] = []
        self.paid: list[int] = []
        self._open = AsyncExitStack()

    async def begin(self) -> None:
        """Start a host."""
        store = self._store = Mortal(self.shared)

        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            if not store.dead:
                self.paid.append(amount)
            return f"paid {amount}"

        terms = LiveTerms(interval=0.0001)
        channel = channel_on(self.platform, lambda: store.dead, on_edit="answer", live="auto", live_terms=terms)
        agent = Agent(self.model, name="desk", tools=[pay])
        host = AgentFrameworkHost(agent, channels=[channel], store=store, shutdown_grace_seconds=0.01)
        await self._open.enter_async_context(host.app.router.lifespan_context(host.app))

    async def do(self, act: str, steps: int) -> None:
        """Do the next thing, and let some steps of everything else pass."""
        if act == "crash":
            self._store.dead = True
            await self._open.aclose()
            await self.begin()
        elif act == "click":
            self.platform.click(steps)
        else:
            self._speak(act)
        for _ in range(steps):
            await asyncio.sleep(0)

    def _speak(self, act: str) -> None:
        number = len(self.said)
        if act == "edit":
            if self.platform.edit_last(f"quick {number}") is not None:
                self.said.append(f"quick {number}")
            return
        self.said.append(act if act in REPLIES else f"{act} {number}")
        self.platform.say(self.said[-1])

    async def end(self) -> None:
        """Let all be answered and sent."""
        self.model.released.set()
        await until(self._is_done)
        await self._open.aclose()

    async def _is_done(self) -> bool:
        rows = await self.shared.outbox.find(limit=1000)
        left = bool(self.platform.world.open) or bool(self.shared.inbox.queues)
        return not left and all(row.ended_at is not None for row in rows)

    async def list_heard(self) -> list[str]:
        """Return which messages and commands were answered, in the order in which the answers were written."""
        rows = sorted(await self.shared.outbox.find(limit=1000), key=lambda row: row.number)
        sent = [row for row in rows if row.action == "send" and not row.is_repeat]
        texts = [row.payload.get("text", "") for row in sent if row.payload]
        replies = {text for texts in REPLIES.values() for text in texts}
        return [name for text in texts if (name := _answers(text)) in self.said or name in replies]

    def list_asked(self) -> list[str]:
        """Return the questions in all sessions."""
        kept = [session for _, session in self.shared.sessions.kept.items()]
        return [message.text for session in kept for message in session.messages if message.role == "user"]

    def approvals(self) -> list[PendingApproval]:
        """Return all that was to be approved."""
        return [approval for _, approval in self.shared.approvals.records.items()]


def _answers(text: str) -> str:
    """Return the message that a text answers, or the text itself."""
    if text.startswith("May I use pay?"):
        return f"pay {json.loads(text.partition(chr(10))[2])['amount']}"
    return text.removeprefix("heard ")


def wrong_in_chat(story: Conversation, heard: Sequence[str]) -> list[str]:
    """List what no run of the rules allows, in what the chat shows at the end."""
    texts = Counter(said.text for said in story.platform.said)
    answered = [name for name in heard if not name.startswith(("pay", "I ", "We ", "There "))]
    found = [f"{name} is shown {texts[f'heard {name}']} times" for name in answered if texts[f"heard {name}"] != 1]
    messages = [name for name in story.said if name not in REPLIES]
    # Of what is cut off, the first word may stay.
    if texts["heard "] > len([name for name in messages if name not in heard]):
        found.append("a message was left where it could have been changed")
    found += [f"{text!r} was not said by any turn" for text in texts if _is_foreign(text, story)]
    # A run whose tool has begun is not repeated after a crash.
    if texts[INTERRUPTION.message] > sum(one.status == "approved" and one.begun for one in story.approvals()):
        found.append("a run was interrupted whose tool had not begun")
    return found + _wrong_payments(story)


def _is_foreign(text: str, story: Conversation) -> bool:
    own = {f"heard {name}" for name in story.said} | {"heard ", "done", INTERRUPTION.message}
    replies = {reply for replies in REPLIES.values() for reply in replies}
    return text not in own | replies and not text.startswith(("May I use pay?", "pay: "))


def _wrong_payments(story: Conversation) -> list[str]:
    found = [f"{amount} was paid twice" for amount, count in Counter(story.paid).items() if count > 1]
    for approval in story.approvals():
        amount = approval.request.function_call.parse_arguments()["amount"]
        if amount in story.paid and approval.status != "approved":
            found.append(f"{amount} was paid, and is {approval.status}")
        shown = [
            said for said in story.platform.said if any(approval.approval_id in button.data for button in said.buttons)
        ]
        if approval.status != "pending" and shown:
            found.append(f"{amount} is {approval.status}, and has buttons")
        if approval.status == "pending" and len(shown) != 1:
            found.append(f"{amount} can be answered in {len(shown)} places")
    statuses = {approval.status for approval in story.approvals()}
    for text in story.platform.world.clicks.values():
        outcome = outcome_in(text)
        if outcome.startswith("pay: ") and outcome.removeprefix("pay: ").removesuffix(" by “Ann”") not in statuses:
            found.append(f"{text!r} was shown, and not decided")
    return found


ACTS = st.tuples(
    st.sampled_from(("quick", "hold", "pay", "pay", "edit", "click", "click", "/cancel", "/new", "crash")),
    st.integers(0, 300),
)


@examples(120)
@given(acts=st.lists(ACTS, min_size=1, max_size=9), latency=st.sampled_from((3, 400)))
def test_any_conversation_ends_as_the_rules_allow(acts: list[tuple[str, int]], latency: int) -> None:
    async def tell() -> None:
        story = Conversation(latency)
        await story.begin()
        crashes = 0
        for act, steps in acts:
            crashes += act == "crash"
            if act != "crash" or crashes <= MOST_CRASHES:
                await story.do(act, steps)
        await story.end()
        heard = await story.list_heard()
        assert wrong(story.said, heard, story.list_asked(), interrupts=False) + wrong_in_chat(story, heard) == []

    asyncio.run(tell())
