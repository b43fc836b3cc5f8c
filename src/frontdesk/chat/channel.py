"""`ChatChannel`: the base class of all chat channels. A platform implements a few methods."""

import asyncio
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Literal, Unpack

import msgspec

from frontdesk.asgi.messages import Headers
from frontdesk.chat.abilities import (
    AnswersClicks,
    EditsMessages,
    FetchesFiles,
    PollsEvents,
    RemovesButtons,
    SendsEphemeral,
    UsesGateway,
    chat_ability,
)
from frontdesk.chat.commands import locale_of_person
from frontdesk.chat.config import ChatConfig, ChatSettings
from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording
from frontdesk.chat.live_message import read_handle
from frontdesk.chat.messages import BotIdentity, Destination, Inbound, OutboundMessage, Proof, Whisper
from frontdesk.chat.questions import find_asked_question
from frontdesk.chat.rendering import Renderer
from frontdesk.chat.replies import Replies, build_wording, confirmation, is_choice_click
from frontdesk.chat.session_commands import usual_commands
from frontdesk.chat.webhook import ChatWebhook, decode_event, refuse
from frontdesk.concurrency.offload import run_rendering
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import (
    PushError,
    PushNotEditableError,
    PushRefusedError,
    RequestError,
    StoreError,
    StoreUnavailableError,
    UnsupportedError,
)
from frontdesk.http.endpoint import HttpCall
from frontdesk.interfaces.abilities import Abilities, channel_ability
from frontdesk.interfaces.argument_types import takes_settings
from frontdesk.interfaces.channel import Channel, ChannelContext, ChannelContribution, ChannelPush
from frontdesk.interfaces.chat import AsksApprovers, PushesParts, PushPart
from frontdesk.interfaces.context import (
    AnswersEvents,
    BuiltInTexts,
    ChecksOnline,
    ConfirmsAnswers,
    RendersReplies,
    ReportsReadiness,
    SettlesAnswers,
)
from frontdesk.markdown import Dialect, Plain, Unit
from frontdesk.models.approval import ApprovalAnswer, PendingApproval, QuestionView
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.delivery import DestinationKind, InboxItem
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.secret import Secret

_MAX_WATCHED_CLICKS = 1_000
"""The clicks that are watched at once; those beyond are answered in their turn alone."""


class ClickWatch:
    """Watches clicks accepted by this process until they are answered."""

    def __init__(self, context: ChannelContext, platform: AnswersClicks, after: float) -> None:
        self._context = context
        self._platform = platform
        self._after = after
        self._watched: dict[str, asyncio.Task[None]] = {}
        self._acknowledged: OrderedDict[str, None] = OrderedDict()

    def watch(self, item: InboxItem) -> None:
        """Acknowledge the click of an event after a delay, unless it is answered by then."""
        callback_id = item.request.attributes.get("callback_id")
        if callback_id and callback_id not in self._watched and len(self._watched) < _MAX_WATCHED_CLICKS:
            self._watched[callback_id] = spawn_clean(self._watch(callback_id, item))

    def needs_answer(self, callback_id: str) -> bool:
        """Return True if a click is unanswered, and stop watching it."""
        task = self._watched.pop(callback_id, None)
        if task is not None:
            task.cancel()
        return callback_id not in self._acknowledged

    async def stop(self) -> None:
        await cancel_and_wait(*self._watched.values())

    async def _watch(self, callback_id: str, item: InboxItem) -> None:
        await asyncio.sleep(self._after)
        with suppress(StoreError, StoreUnavailableError):
            is_finished = await self._context.events.is_finished(item)
            # From here on it is answered by this.
            self._watched.pop(callback_id, None)
            if not is_finished:
                await self._acknowledge(callback_id, item)
        self._watched.pop(callback_id, None)

    async def _acknowledge(self, callback_id: str, item: InboxItem) -> None:
        self._acknowledged[callback_id] = None
        if len(self._acknowledged) > _MAX_WATCHED_CLICKS:
            self._acknowledged.popitem(last=False)
        text = build_wording(item, self._context.texts).say("click.waits")
        try:
            await self._platform.answer_click(callback_id, text)
        except PushError:
            # Its own answer may still arrive.
            self._acknowledged.pop(callback_id, None)


class ChatChannel(
    Channel,
    ChannelPush,
    PushesParts,
    AnswersEvents,
    RendersReplies,
    SettlesAnswers,
    ConfirmsAnswers,
    AsksApprovers,
    ReportsReadiness,
    ChecksOnline,
):
    """Answers people on a platform in direct chats, groups and threads: messages, commands and buttons.

    A subclass implements the abstract methods. Platform abilities from `chat/abilities.py` and `chat/live_mixin.py` are
    added as base classes.
    """

    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "host_tracked"
    # It accepts only what the platform has signed.
    requires_auth_when_public: ClassVar[bool] = False
    dialect: ClassVar[Dialect | None] = Plain()
    """The dialect in which answers in Markdown are shown; `None` sends them as the agent wrote them."""
    text_limit: int = 4096
    """The limit of the text of one message."""
    text_unit: ClassVar[Unit] = "characters"
    """The unit in which the platform counts."""
    has_buttons: ClassVar[bool] = True
    """Whether the platform shows buttons; otherwise people answer questions with words."""
    webhook_path: str = "/events"
    """The path below the channel's own to which the platform sends events; `/` is the channel's own."""
    earlier_webhook_paths: Sequence[str] = ()
    """Paths that it had in earlier versions, which stay served."""
    signature_headers: ClassVar[tuple[bytes, ...]] = ()
    """The headers, in lower case, without which a request is refused before its body is read."""
    signs_bodies: ClassVar[bool] = True
    """Whether a signature is one of the body; if not, `verify` gets an empty one, before the body is read."""
    takes_forms: ClassVar[bool] = False
    """Whether bodies of the webhook may be forms (`application/x-www-form-urlencoded`), which `events` decodes."""
    tells_membership: ClassVar[bool] = False
    """Whether the platform says when the bot is added, removed, blocked and unblocked: see `MembershipChange`."""
    reads_feedback: ClassVar[bool] = False
    """Whether `read` returns `InboundFeedback`. Without it, `feedback_hook` has no effect and is a finding."""
    one_poller: ClassVar[bool] = True
    """Whether only one process over all replicas may poll; false for a platform that takes several."""

    abilities: ClassVar[tuple[Abilities, ...]] = (channel_ability, chat_ability)

    @takes_settings(ChatConfig)
    def __init__(
        self, config: ChatConfig | None = None, *, name: str, path: str, **settings: Unpack[ChatSettings]
    ) -> None:
        """Create a channel with a config of its own, or with the common settings as keyword arguments."""
        config = ChatConfig(**settings) if config is None else replace(config, **settings) if settings else config
        terms = config.push_terms or self.push_terms
        self.apply_settings(config)
        self.name, self.path, self.chat_config, self.push_terms = name, path, config, terms
        self.live_terms, self.commands = config.live_terms, tuple(config.commands)
        self.needs_seal_key, self.fetches_events = config.private_replies, config.transport == "polling"
        self.connected = asyncio.Event()
        """Set once the platform has said who we are; before that, events are refused and sent again."""
        self._context: ChannelContext | None = None
        self._texts: BuiltInTexts = Texts()
        self._replies: Replies | None = None
        self.clicks: ClickWatch | None = None
        """Acknowledges clicks that wait, once the channel is part of a host, and if its platform wants that."""

    @abstractmethod
    async def connect(self) -> BotIdentity:
        """Return the bot's own identity. Raise `PushError` if the platform is unavailable. The call is then
        repeated."""

    @abstractmethod
    async def verify(self, headers: Headers, body: bytes, now: float) -> Proof | None:
        """Verify that a body is the platform's. Raise `UnauthenticatedError` for an invalid or old signature.

        A `Proof` of more than that is passed to `read`.
        """

    @abstractmethod
    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> Inbound | None:
        """Parse an event. Return None for foreign events, and raise `InvalidRequestError` for unreadable ones. Pure.

        `proof` is the result of `verify`, and None for a polled event or one of a connection. Raise
        `UnauthenticatedError` for an event that contradicts its proof.
        """

    @abstractmethod
    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str | None:
        """Send a message. Return its id, which is used for later edits, or raise `PushError`.

        Retries have the same key, for platforms that deduplicate.
        """

    @abstractmethod
    async def direct(self, user_id: str) -> Destination:
        """Return the direct chat with a person."""

    def list_secrets(self, secret: Secret | None) -> tuple[Secret, ...]:
        """Return a signing secret with the earlier ones that are still accepted."""
        earlier = (Secret(given) if isinstance(given, str) else given for given in self.chat_config.previous_secrets)
        return (*(() if secret is None else (secret,)), *earlier)

    def is_ready(self) -> bool:
        """Return True if the bot's identity is known. Events cannot be parsed before that."""
        return self.connected.is_set()

    async def check_online(self) -> Sequence[str]:
        """Fetch the bot's identity from the platform and return the problems found."""
        try:
            await self.connect()
        except PushError as error:
            return [f"the platform does not say who we are: {error}"]
        finally:
            await self.close()
        return []

    def challenge(self, body: bytes) -> bytes | None:
        """Return the response to a signed challenge of the platform, or None if the body is an event."""
        return None

    def events(self, body: bytes) -> Sequence[bytes]:
        """Split a body into events, for platforms that send batches."""
        return (body,)

    def payload(self, event: bytes) -> Any:
        """Return an event as JSON for hooks and commands, without large or secret parts."""
        return decode_event(event, object)

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        await refuse(call, error)

    async def close(self) -> None:
        """Close the connections to the platform."""
        return

    def findings(self) -> list[str]:
        wrong = self.chat_config.findings()
        if not iscoroutinefunction(self.verify):
            wrong.append("verify must be async: async def verify(self, headers, body, now)")
        if self.chat_config.transport == "polling" and not isinstance(self, PollsEvents):
            wrong.append("transport='polling' has no effect: the platform's events can't be fetched")
        if self.chat_config.transport == "connection" and not isinstance(self, UsesGateway):
            wrong.append("transport='connection' has no effect: the platform sends no events over a connection")
        if self.chat_config.private_replies and not isinstance(self, SendsEphemeral):
            wrong.append("private_replies has no effect: the platform shows nothing to one person alone")
        if self.chat_config.greet_groups and not self.tells_membership:
            wrong.append("greet_groups has no effect: the platform does not say when the bot is added to a group")
        if self.chat_config.feedback_hook is not None and not self.reads_feedback:
            wrong.append("feedback_hook has no effect: this channel reads no feedback")
        return wrong

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        fetch = self.fetch if isinstance(self, FetchesFiles) else None
        self._context, self._replies = context, Replies(context, fetch, self.chat_config.media)
        self._texts = context.texts
        if isinstance(self, AnswersClicks) and self.acknowledge_clicks_after is not None:
            self.clicks = ClickWatch(context, self, self.acknowledge_clicks_after)
        webhook = ChatWebhook(self, context)
        own = {command.name for command in self.commands}
        return ChannelContribution(
            routes=webhook.routes(),
            commands=(*(command for command in usual_commands(context) if command.name not in own), *self.commands),
            on_serving=(webhook.start,),
            on_shutdown=(webhook.stop,),
        )

    @cached_property
    def renderer(self) -> Renderer:
        return Renderer(
            dialect=self.dialect,
            limit=self.text_limit,
            unit=self.text_unit,
            has_buttons=self.has_buttons,
            max_sent_bytes=self.chat_config.media.max_sent_bytes,
        )

    def _renderer_for(self, locale: str | None) -> Renderer:
        return replace(self.renderer, wording=Wording(self._texts, locale))

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        """Return the messages of an answer as JSON values. In a group the first one is a reply."""
        messages = self._renderer_for(result.locale).answer(result)
        return _with_reply(messages, result.run.details if result.run.channel == self.name else None)

    def reply_parts(self, item: InboxItem, reply: Reply) -> Sequence[Any] | None:
        """Return the messages of a reply as JSON values. Some events support ephemeral ones."""
        if reply.to == "only_me":
            clicked = item.request.attributes.get("callback_id", "")
            can_whisper = (clicked and isinstance(self, AnswersClicks)) or item.reply_token is not None
            text = reply.full_text[: self.text_limit]
            return [msgspec.to_builtins(Whisper(callback_id=clicked, text=text))] if can_whisper else None
        return _with_reply(self.renderer.reply(reply), item.request.details if reply.to == "here" else None)

    async def push_part(self, part: PushPart) -> str | None:
        """Send or edit one message. Return its id."""
        if part.replaces is not None:
            return await self._change(part, part.replaces)
        if "callback_id" in part.content:
            return await self._whisper(msgspec.convert(part.content, Whisper), part.reply_token)
        return await self.send(*await self.build_call(part))

    async def build_call(self, part: PushPart) -> tuple[OutboundMessage, Destination, str]:
        message = msgspec.convert(part.content, OutboundMessage)
        # A message is a reply only in the chat of the question.
        reply_to = message.reply_to if message.answers == part.conversation_id else ""
        message = msgspec.structs.replace(message, reply_to=reply_to, answers="", asks="")
        return message, await self._build_destination(part), part.idempotency_key

    async def destination(
        self,
        identity: ChannelIdentity,
        conversation_id: str | None,
        kind: DestinationKind = "direct",
        reference: Mapping[str, Any] | None = None,
    ) -> Destination:
        """Return the destination of a conversation, or of the direct chat with a person."""
        if conversation_id is not None:
            return Destination.from_conversation_id(conversation_id, kind=kind, reference=reference)
        place = await self.direct(identity.native_id)
        return msgspec.structs.replace(place, reference=reference) if reference else place

    async def _build_destination(self, part: PushPart) -> Destination:
        return await self.destination(part.identity, part.conversation_id, part.kind, part.reference)

    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        """Send a result to a person's direct chat. Return the id of the last message."""
        receipt: str | None = None
        place = await self.direct(identity.native_id)
        renderer = self._renderer_for(locale_of_person(identity))
        said: Any = result.result if isinstance(result, HostedRunResult) else result  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        for message in await run_rendering(said, renderer.answer, result):
            receipt = await self.send(message, place, "")
        return receipt

    async def _change(self, part: PushPart, replaces: str) -> str:
        """Edit or delete a message as the part requires. Return its id."""
        if not isinstance(self, EditsMessages):
            raise PushNotEditableError("The platform does not support editing messages.")
        message_id, place = read_handle(replaces).message_id, await self._build_destination(part)
        if part.action == "retract":
            await self.delete(message_id, place)
            return message_id
        content = OutboundMessage() if part.content is None else msgspec.convert(part.content, OutboundMessage)
        if content.media:
            # A text can't become a picture: it goes, and the picture is sent as a message of its own.
            with suppress(PushNotEditableError):
                await self.delete(message_id, place)
            raise PushNotEditableError("The media of a sent message can't be changed.")
        if not content.text and not content.blocks:
            # An answer that broke off keeps what was shown of it; an edit without a text would blank the message.
            if isinstance(self, RemovesButtons):
                await self.remove_buttons(message_id, place)
            return message_id
        buttons = () if part.action == "settle" else content.buttons
        edited = OutboundMessage(text=content.text, entities=content.entities, blocks=content.blocks, buttons=buttons)
        await self.edit(message_id, edited, place)
        return message_id

    async def _whisper(self, whisper: Whisper, sealed: SealedToken | None) -> None:
        """Send an ephemeral message while the platform's token is valid."""
        if whisper.callback_id and isinstance(self, AnswersClicks):
            if self.clicks is None or self.clicks.needs_answer(whisper.callback_id):
                await self.answer_click(whisper.callback_id, whisper.text)
            return
        token = None if self._context is None else self._context.events.open_reply_token(sealed)
        if token is None or not isinstance(self, SendsEphemeral):
            raise PushRefusedError("The reply token of the event has expired.", code="token_expired")
        await self.whisper(token, whisper.text)

    @property
    def context(self) -> ChannelContext:
        """Return the channel context. Raise `UnsupportedError` before the channel is part of a host."""
        if self._context is None:
            raise UnsupportedError("The channel is not part of a host.")
        return self._context

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        if isinstance(self, AnswersClicks) and is_choice_click(item):
            # Nothing else ends the waiting sign on a button that makes a choice.
            await self.context.events.reply(item, Reply(to="only_me"))
        return await self._require_replies().prepare(item)

    async def settle_answers(
        self, item: InboxItem, answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]
    ) -> Sequence[ApprovalAnswer]:
        """Resolve the questions of the clicked buttons."""
        return await self._require_replies().settle(answers, waiting)

    def confirm_answer(self, item: InboxItem, approval: PendingApproval) -> Sequence[Reply]:
        return confirmation(item, approval, build_wording(item, self._texts))

    def question_in(self, content: Any) -> str | None:
        message = msgspec.convert(content, OutboundMessage)
        return message.asks or find_asked_question(message.buttons)

    def approver_question(self, view: QuestionView) -> Sequence[Any]:
        messages = self._renderer_for(view.locale).approver_question(view)
        return [msgspec.to_builtins(message) for message in messages]

    def settled_question(self, approval: PendingApproval, by: ChannelIdentity | None) -> Any:
        locale = None if approval.requester is None else locale_of_person(approval.requester.identity)
        return msgspec.to_builtins(self._renderer_for(locale).render_settled(approval, by))

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        return await self._require_replies().refuse(item, error)

    def _require_replies(self) -> Replies:
        if self._replies is None:
            raise UnsupportedError("The channel is not part of a host.")
        return self._replies


def _with_reply(messages: list[OutboundMessage], details: Mapping[str, Any] | None) -> list[Any]:
    """Return messages as JSON values. The first is a reply if the request details name a message."""
    if messages and details is not None and "reply_to" in details:
        answers = details.get("chat_id", "")
        messages[0] = msgspec.structs.replace(messages[0], reply_to=details["reply_to"], answers=answers)
    return [msgspec.to_builtins(message) for message in messages]
