"""Processes events in their turn: commands, buttons, and replies to where they came from."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.abc.commands import BuiltInTexts, CommandState
from frontdesk.data.approval import ApprovalAnswer, PendingApproval
from frontdesk.data.delivery import InboxItem
from frontdesk.data.reply import Reply
from frontdesk.data.reply_token import SealedToken
from frontdesk.data.request import ChannelRequest, ChannelSession
from frontdesk.data.result import HostedRunResult
from frontdesk.errors import LinkRequiredError, NotFoundError, PushRefusedError, RequestError
from frontdesk.kit.chat.commands import locale_of, scope_of
from frontdesk.kit.chat.session_commands import described_command, session_commands
from frontdesk.kit.chat.wording import Wording
from frontdesk.kit.framework.request_choices import CHOICE, QUESTION
from frontdesk.testing.messages.client import PlatformClient
from frontdesk.testing.messages.render import (
    challenge_text,
    find_question,
    name_of,
    read_button,
    read_choice,
)
from frontdesk.testing.messages.wire import Whisper


class CommandCall:
    """One call of a command, as its handler sees it; `args` is what was written behind the name."""

    def __init__(
        self, item: InboxItem, context: ChannelContext, reply: Callable[[Reply | str], Awaitable[None]]
    ) -> None:
        self.request: ChannelRequest = item.request
        self.caller = item.caller
        self.session: ChannelSession | None = item.request.session
        self.state: CommandState
        self.raw_event: Any = item.request.attributes["event"]
        self.event: InboxItem | None = item
        self.name: str = item.request.attributes["command"]
        self.args: str = item.request.input
        self._context = context
        self._reply = reply

    async def reply(self, reply: Reply | str, /) -> None:
        await self._reply(reply)

    async def run(self, request: ChannelRequest) -> HostedRunResult[Any]:
        return await self._context.run(request, self.caller, protocol_request=self.raw_event)


def wording_for(item: InboxItem, texts: BuiltInTexts) -> Wording:
    """Return what is said to the sender of an event, in their language."""
    return Wording(texts, locale_of(item.request, item.caller.identity))


def confirmation(item: InboxItem, approval: PendingApproval, wording: Wording) -> Sequence[Reply]:
    """Return what is shown to the person who has pressed a button, once that has decided the question.

    The message itself is settled by a delivery of the host's. Of a question of an earlier version the host does not
    know where it is shown.
    """
    clicked = item.request.attributes
    if "callback_id" not in clicked:
        return []
    text = wording.decided(approval, name_of(item.caller.identity))
    pop_up = Reply(text, to="only_me")
    if approval.target_request_id is not None:
        return [pop_up]
    return [pop_up, Reply(text, replaces=clicked["message_id"])]


def usual_commands(context: ChannelContext) -> list[ChannelCommand]:
    """Return the commands that every chat has, and `/help`."""

    async def explain(call: ChannelCommandContext) -> None:
        locale = locale_of(call.request, call.caller.identity)
        commands = context.commands(scope=scope_of(call.request), locale=locale)
        shown = [command for command in commands if command.expose_in_ui]
        await call.reply("\n".join(f"/{command.name} - {command.description}" for command in shown))

    return [
        *session_commands(context),
        described_command(context, "help", explain, control=True),
    ]


class Replies:
    """Processes events one by one."""

    def __init__(self, client: PlatformClient, context: ChannelContext) -> None:
        self._client = client
        self._context = context

    async def whisper(self, whisper: Whisper, sealed: SealedToken | None) -> None:
        """Show a text to one person alone, as long as the platform lets us."""
        if whisper.callback_id:
            return await self._client.answer(whisper.callback_id, whisper.text)
        token = self._context.open_reply_token(sealed)
        if token is None:
            raise PushRefusedError("The token of the event has expired.", code="token_expired")
        await self._client.show_privately(token, whisper.text)

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """Return the request of an event for the target, or `None` if it is done."""
        request = item.request
        if request.operation in ("message", "message.create"):
            return request
        if request.operation == "approval":
            return await self._pressed(item)
        # A command may reply more than once, and each reply is a message of its own.
        count = 0

        async def reply(said: Reply | str) -> None:
            nonlocal count
            count += 1
            await self._context.reply(item, said, number=count)

        call = CommandCall(item, self._context, reply)
        if not await self._context.run_command(call.name, call) and request.attributes["named"]:
            locale = locale_of(request, item.caller.identity)
            await reply(self._context.texts.say("command.unknown", locale, name=call.name))
        return None

    async def _pressed(self, item: InboxItem) -> ChannelRequest:
        """Make the request of a button, which has only a short name of its question."""
        choice = read_choice(item.request.attributes["data"])
        if choice is not None:
            return item.request.replace(attributes={QUESTION: choice[0], CHOICE: choice[1]})
        name, approved = read_button(item.request.attributes["data"])
        answer = ApprovalAnswer(approval_id=name, approved=approved)
        request = await self._context.approval_request(item.caller, [answer])
        return request.replace(conversation_id=item.conversation_id, group=item.request.group)

    async def settle(
        self, answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]
    ) -> Sequence[ApprovalAnswer]:
        """Find the questions of buttons among those that wait."""
        settled: list[ApprovalAnswer] = []
        for answer in answers:
            question = find_question(answer.approval_id, waiting)
            if question is None:
                raise NotFoundError
            settled.append(answer.replace(approval_id=question.approval_id))
        return settled

    async def _challenge(self, item: InboxItem, error: LinkRequiredError, wording: Wording) -> str:
        try:
            return challenge_text(await self._context.begin_link(item.caller))
        except RequestError as failure:
            # For example of a person who got too many challenges: no answer at all would be worse.
            return f"{wording.error(error)} {wording.error(failure)}"

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        """Return the reason why there is no answer: a short one in a group, more in the direct chat."""
        request, wording = item.request, wording_for(item, self._context.texts)
        if request.operation == "approval":
            return [Reply(wording.answer_error(error), to="only_me")]
        here, direct = wording.refusal(error, group=request.group)
        if isinstance(error, LinkRequiredError):
            challenge = await self._challenge(item, error, wording)
            here, direct = (here, challenge) if request.group else (challenge, "")
        return [Reply(here), *([Reply(direct, to="direct")] if direct else [])]
