"""The channel itself: its route, and the acceptance of events into the inbox."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
from starlette.routing import Route

from frontdesk.abc.allowlist import Allowlist, Inherit
from frontdesk.abc.channel import Channel, ChannelCommand, ChannelContext, ChannelContribution
from frontdesk.abc.commands import BuiltInTexts
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.abc.live import LivePlace, LiveView
from frontdesk.data.approval import ApprovalAnswer, PendingApproval
from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.limits import EventLimits
from frontdesk.data.reply import Reply
from frontdesk.data.request import AcceptInGroup, CancelBy, ChannelRequest, ConversationScope, OnBusy
from frontdesk.data.result import HostedRunResult
from frontdesk.errors import RequestError, UnavailableError, UnsupportedError
from frontdesk.kit.auth.secrets import Secret
from frontdesk.kit.chat.commands import Menu, locale_of_person, menus
from frontdesk.kit.chat.texts import Texts
from frontdesk.kit.chat.wording import Wording
from frontdesk.kit.http.asgi import error_headers, send_json
from frontdesk.kit.http.endpoint import BodyDeadline, HttpCall, HttpEndpoint
from frontdesk.testing.messages.cards import decide_click
from frontdesk.testing.messages.client import Part, PlatformClient
from frontdesk.testing.messages.config import MessageConfig
from frontdesk.testing.messages.edits import change
from frontdesk.testing.messages.intake import Intake
from frontdesk.testing.messages.live import open_live, typing_at, update_live
from frontdesk.testing.messages.parse import challenge_in, decode, to_item
from frontdesk.testing.messages.places import spot_of
from frontdesk.testing.messages.receipts import note_receipt
from frontdesk.testing.messages.render import asked_in, name_of, parts_of, parts_of_reply
from frontdesk.testing.messages.replies import Replies, confirmation, usual_commands, wording_for
from frontdesk.testing.messages.verify import PlatformVerifier, verify
from frontdesk.testing.messages.wire import Command, Commands, Event, Problem, Refusal, Replied, Send, Whisper


class MessageChannel(Channel):
    """Answers people on the platform: in direct chats and groups, to messages, commands and buttons."""

    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "host_tracked"
    # The channel accepts only what the platform has signed.
    takes_http: ClassVar[bool] = False
    push_edits = True

    def __init__(
        self,
        *,
        platform_url: str,
        token: str | Secret,
        secret: str | Secret = "",
        name: str = "messages",
        path: str = "/messages",
        allowlist: Allowlist | Inherit | None = "inherit",
        require_link: bool = False,
        confidentiality_tier: str | None = None,
        link_commands: Mapping[str, str | None] | None = None,
        conversation_scope: ConversationScope = "per_user_per_conversation",
        cancel_by: CancelBy = "sender",
        on_busy: OnBusy = "queue",
        gather_seconds: float = 0.0,
        event_limits: EventLimits | None = None,
        accept_in_group: AcceptInGroup = "mention_only",
        commands: Sequence[ChannelCommand] = (),
        run_hook: RunHook | None = None,
        response_hook: ResponseHook | None = None,
        idempotent: bool = True,
        stream_transform_hook: StreamTransformHook | None = None,
        **settings: Any,
    ) -> None:
        """Make a channel for a platform that drops a repeated key if it is `idempotent`.

        Other settings are those of `MessageConfig`.
        """
        self.name, self.path = name, path
        self.allowlist, self.require_link = allowlist, require_link
        self.confidentiality_tier, self.link_commands = confidentiality_tier, link_commands or {}
        self.conversation_scope, self.accept_in_group = conversation_scope, accept_in_group
        self.cancel_by, self.on_busy, self.gather_seconds = cancel_by, on_busy, gather_seconds
        self.run_hook, self.response_hook, self.stream_transform_hook = run_hook, response_hook, stream_transform_hook
        self.event_limits, self.push_is_idempotent, self.commands = event_limits, idempotent, tuple(commands)
        self._config = MessageConfig(platform_url=platform_url, token=_kept(token), secret=_kept(secret), **settings)
        self.needs_seal_key = self._config.private_replies
        self.live, self.live_terms = self._config.live, self._config.live_terms
        self.client = PlatformClient(self._config)
        self._replies: Replies | None = None
        self._texts: BuiltInTexts = Texts()

    def findings(self) -> list[str]:
        return self._config.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._replies, self._texts = Replies(self.client, context), context.texts
        room = _Room(self, self._config, context)
        own = {command.name for command in self.commands}
        return ChannelContribution(
            routes=room.routes(),
            commands=(*(command for command in usual_commands(context) if command.name not in own), *self.commands),
            on_serving=(room.start,),
            on_shutdown=(room.stop,),
        )

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        """Return the messages of an answer as JSON values; the first is a reply where a group was asked."""
        parts = parts_of(result, self._config.text_limit, Wording(self._texts, result.locale))
        if parts and result.run.channel == self.name and "reply_to" in result.run.details:
            parts[0] = msgspec.structs.replace(parts[0], **result.run.details)
        return [msgspec.to_builtins(part) for part in parts]

    def reply_parts(self, item: InboxItem, reply: Reply) -> Sequence[Any] | None:
        """Return the messages of a reply as JSON values; some events let their sender be shown something alone."""
        clicked, details = item.request.attributes.get("callback_id", ""), item.request.details
        if reply.to == "only_me":
            text = reply.full_text[: self._config.text_limit]
            can_whisper = clicked or item.reply_token is not None
            return [msgspec.to_builtins(Whisper(callback_id=clicked, text=text))] if can_whisper else None
        parts = parts_of_reply(reply, self._config.text_limit)
        if parts and reply.to == "here" and "reply_to" in details:
            parts[0] = msgspec.structs.replace(parts[0], **details)
        return [msgspec.to_builtins(part) for part in parts]

    async def push_part(self, part: Part) -> str | None:
        """Send one message, or change one that was sent; return its id."""
        if part.replaces is not None:
            return await change(self.client, part, part.replaces)
        if "callback_id" in part.content:
            return await self._need_replies().whisper(msgspec.convert(part.content, Whisper), part.reply_token)
        return (await self.client.send(self.placed(part))).message_id

    def placed(self, part: Part) -> Send:
        """Return the message of a part, with its key and the chat that it goes to."""
        send = msgspec.convert(part.content, Send)
        # A message is a reply only in the chat of the question.
        reply_to = send.reply_to if send.chat_id == part.conversation_id else ""
        send = msgspec.structs.replace(send, reply_to=reply_to, idempotency_key=part.idempotency_key)
        return _addressed(send, part.identity, part.conversation_id)

    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        """Send a result to a person's direct chat; return the id of the last message."""
        receipt: str | None = None
        wording = Wording(self._texts, locale_of_person(identity))
        for message in parts_of(result, self._config.text_limit, wording):
            receipt = (await self.client.send(_addressed(message, identity, None))).message_id
        return receipt

    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str:
        """Send the first message of an answer that is being written; return its id."""
        return await open_live(self.client, place, view, key, self._config.text_limit)

    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Show more of an answer; what does not fit into one message goes on in another."""
        return await update_live(self.client, place, handles, view, self._config.text_limit)

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """Return the request of an event for the target, or `None`."""
        return await self._need_replies().prepare(item)

    async def settle_answers(
        self, item: InboxItem, answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]
    ) -> Sequence[ApprovalAnswer]:
        """Find the questions of the buttons that were pressed."""
        return await self._need_replies().settle(answers, waiting)

    def confirm_answer(self, item: InboxItem, approval: PendingApproval) -> Sequence[Reply]:
        """Return the pop-up of the button that was pressed."""
        return confirmation(item, approval, wording_for(item, self._texts))

    def question_in(self, content: Any) -> str | None:
        """Return the id of the question that a message asks, by its buttons."""
        return asked_in(msgspec.convert(content, Send).buttons)

    def settled_question(self, approval: PendingApproval, by: ChannelIdentity | None) -> Any:
        """Return the message that says what was decided."""
        asked_by = None if approval.requester is None else locale_of_person(approval.requester.identity)
        return msgspec.to_builtins(Send(text=Wording(self._texts, asked_by).decided(approval, name_of(by))))

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        """Return the reason why there is no answer."""
        return await self._need_replies().refuse(item, error)

    def _need_replies(self) -> Replies:
        if self._replies is None:
            raise UnsupportedError("The channel is not part of a host.")
        return self._replies


class LookupMessageChannel(MessageChannel):
    """The same, for a platform that can be asked what became of a message."""

    async def find_push(self, part: Part) -> str | None:
        """Return the id of a message that arrived; `None` if the platform never got it."""
        sent = await self.client.sent_as(part.idempotency_key)
        return None if sent is None else sent.message_id

    async def find_live(self, place: LivePlace, key: str) -> str | None:
        """Return the id of the first message of an answer; `None` if the platform never got it."""
        sent = await self.client.sent_as(key)
        return None if sent is None else sent.message_id


class TypingMessageChannel(MessageChannel):
    """The same, and it shows that an answer is being written."""

    typing_interval: float | None = 5.0

    async def show_typing(self, place: LivePlace) -> None:
        """Show it."""
        await self.client.set_typing(typing_at(place, on=True))

    async def end_typing(self, place: LivePlace) -> None:
        """End it."""
        await self.client.set_typing(typing_at(place, on=False))


class _Room:
    def __init__(self, channel: MessageChannel, config: MessageConfig, context: ChannelContext) -> None:
        self._channel = channel
        self._config = config
        self._context = context
        self._intake = Intake(channel.name, channel.client, config, self.take)
        self._deadline = BodyDeadline(config.body_timeout)

    def routes(self) -> list[Route]:
        if self._config.intake != "webhook":
            return []
        verifier = PlatformVerifier(self._channel.name)
        return [Route("/events", endpoint=HttpEndpoint(verifier, _refused, POST=self.receive))]

    async def start(self) -> None:
        public = self._config.public_url
        webhook = None if public is None else f"{public.rstrip('/')}{self._channel.path}/events"
        self._intake.start([_published(menu) for menu in menus(self._context.commands())], webhook)

    async def stop(self) -> None:
        await self._intake.stop()
        self._channel.client.close()

    async def receive(self, call: HttpCall) -> None:
        """Verify an event, store it, and only then acknowledge it."""
        config = self._config
        body = await call.json_body(limit=config.max_body_bytes, deadline=self._deadline)
        now = self._context.now()
        verify(call.headers, body, secret=config.secret, now=now, window=config.signature_seconds)
        challenge = challenge_in(body)
        if challenge is not None:
            return await send_json(call.send, 200, msgspec.json.encode(challenge))
        event = decode(body)
        if event.receipt is not None:
            await note_receipt(self._context, event, event.receipt, seconds=config.receipt_seconds)
            return await send_json(call.send, 200, b"{}")
        item = self._item(event)
        if item is not None and event.click is not None and event.click.expects_card:
            shown = await decide_click(self._context, item)
            if shown is not None:
                return await send_json(call.send, 200, msgspec.json.encode(shown))
        if item is None or not event.expects_reply:
            await self._accept(item)
            return await send_json(call.send, 200, b"{}")
        async with self._context.accept_and_wait(item, self._config.reply_seconds) as reply:
            messages = tuple(self._channel.placed(part) for part in reply.parts)
            await send_json(call.send, 200, msgspec.json.encode(Replied(messages=messages)))

    async def take(self, event: bytes) -> None:
        """Store an event that is meant for us."""
        await self._accept(self._item(decode(event)))

    async def _accept(self, item: InboxItem | None) -> None:
        if item is not None:
            await self._context.accept(item)

    def _item(self, event: Event) -> InboxItem | None:
        if self._intake.me is None:
            raise UnavailableError("The platform has not said yet who we are.", retry_after=1)
        item = to_item(
            event,
            channel=self._channel.name,
            me=self._intake.me,
            accept_in_group=self._channel.accept_in_group,
            on_edit=self._config.on_edit,
            now=self._context.now(),
            hooked=self._channel.run_hook is not None,
        )
        if item is None:
            return None
        if event.reply_token and self._config.private_replies:
            until = event.at + self._config.token_seconds
            item = self._context.seal_reply_token(item, event.reply_token, expires_at=until)
        return item.replace(kind="control") if self._is_control(item) else item

    def _is_control(self, item: InboxItem) -> bool:
        if item.request.operation != "command":
            return False
        command = self._context.find_command(item.request.attributes["command"])
        return command is not None and command.control


def _published(menu: Menu) -> Commands:
    commands = tuple(Command(name=command.name, description=command.description) for command in menu.commands)
    return Commands(commands=commands, scope=menu.scope or "", locale=menu.locale or "")


def _addressed(send: Send, identity: ChannelIdentity, conversation_id: str | None) -> Send:
    return msgspec.structs.replace(send, **spot_of(identity, conversation_id)._asdict())


def _kept(given: str | Secret) -> Secret | None:
    return Secret(given) if given else None


async def _refused(call: HttpCall, error: RequestError) -> None:
    body = Refusal(error=Problem(code=error.code, message=error.message))
    await send_json(call.send, error.status, msgspec.json.encode(body), error_headers(error))
