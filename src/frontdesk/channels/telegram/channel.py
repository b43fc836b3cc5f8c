"""`TelegramChannel`: the Telegram-specific methods of a chat channel."""

import base64
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar, Unpack, cast

import msgspec

from frontdesk.asgi.messages import Headers, send_json
from frontdesk.channels.telegram.client import (
    API_URL,
    MEDIA_REFUSED,
    NO_METHOD,
    UPLOAD_SECONDS,
    WEBHOOK_ACTIVE,
    BotClient,
    ChatMigratedError,
    refuses_content,
)
from frontdesk.channels.telegram.config import TelegramConfig, TelegramSettings
from frontdesk.channels.telegram.parse import CALLBACK, read_update
from frontdesk.channels.telegram.render import (
    TOAST_LIMIT,
    ApiCall,
    draft_call,
    edit_call,
    media_calls,
    menu_call,
    place_params,
    remove_buttons_call,
    send_calls,
)
from frontdesk.channels.telegram.wire import Chat, ChatMember
from frontdesk.chat.abilities import (
    AnswersClicks,
    FetchesFiles,
    PollsEvents,
    PublishesMenus,
    RegistersWebhooks,
    RemovesButtons,
)
from frontdesk.chat.commands import ADMIN, Menu, parse_locale
from frontdesk.chat.connection import pass_over, warn
from frontdesk.chat.growing import ALL_MESSAGES
from frontdesk.chat.i18n.wording import Wording
from frontdesk.chat.live_mixin import LiveAnswers, TypingNotices
from frontdesk.chat.messages import BotIdentity, Destination, Inbound, InboundFile, OutboundFile, OutboundMessage, Proof
from frontdesk.chat.rendering import Renderer
from frontdesk.chat.replies import challenge_text
from frontdesk.chat.session_commands import build_command
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import (
    ChannelConfigurationError,
    FileTooLargeError,
    InvalidRequestError,
    LinkRequiredError,
    PushError,
    PushNotEditableError,
    PushRefusedError,
    PushUnknownError,
    RequestError,
    UnauthenticatedError,
)
from frontdesk.http.endpoint import HttpCall
from frontdesk.interfaces.argument_types import takes_settings
from frontdesk.interfaces.channel import ChannelCommand, ChannelCommandContext, ChannelContext, ChannelContribution
from frontdesk.interfaces.chat import ChecksRecipients, LivePlace, LiveView, PushTerms, TimesPushes
from frontdesk.markdown import Dialect, Entities, Unit, to_blocks
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.secret import Secret

LINK = "link"
"""The payload behind `?start=` of a link from a group: the person wants to link their account."""


def deep_link(bot_name: str, payload: str = LINK) -> str:
    return f"https://t.me/{bot_name}?start={payload}"


def start_command(context: ChannelContext) -> ChannelCommand:
    """Return the `/start` command.

    It starts linking an account and never completes it. Otherwise an attacker could get the account of a person who
    presses a link with the attacker's code.
    """

    async def start(call: ChannelCommandContext) -> None:
        said: Any = call.request.input
        wording = Wording(context.texts, parse_locale(call.request, call.caller.identity))
        if said != LINK or call.request.group:
            return await call.reply(wording.say("start.hello"))
        try:
            challenge = challenge_text(await context.links.begin(call.caller))
        except RequestError as error:
            challenge = wording.error(error)
        await call.reply(challenge)

    return build_command(context, "start", start)


T = TypeVar("T")
_REFUSAL_SECONDS = 5.0
SECRET_HEADER = b"x-telegram-bot-api-secret-token"
WEBHOOK_PATH = "/webhook"
_ADMINISTRATORS = ("creator", "administrator")


class TelegramChannel(
    TypingNotices,
    LiveAnswers,
    RemovesButtons,
    AnswersClicks,
    PublishesMenus,
    RegistersWebhooks,
    PollsEvents,
    FetchesFiles,
    ChecksRecipients,
    TimesPushes,
):
    """Answers people on Telegram in private chats, groups and topics."""

    dialect: ClassVar[Dialect | None] = Entities()
    text_unit: ClassVar[Unit] = "utf16"
    webhook_path: str = WEBHOOK_PATH
    earlier_webhook_paths: Sequence[str] = ("/events",)
    signature_headers: ClassVar[tuple[bytes, ...]] = (SECRET_HEADER,)
    signs_bodies: ClassVar[bool] = False
    tells_membership: ClassVar[bool] = True
    # The platform counts 30 messages in a second, one in a second for a chat, and 20 in a minute for a group. What a
    # host that was killed had begun to send is held back for the timeout, or for `push_seconds`.
    # More calls at once are slower, not faster: the pool looks at all of its connections for each.
    push_terms = PushTerms(
        at_once=10, per_second=25.0, per_destination=1.0, per_group=20 / 60, timeout=UPLOAD_SECONDS + 10
    )
    typing_interval: float | None = 4.0
    # The platform takes an answer for 150 seconds, and may have kept the click for a while.
    acknowledge_clicks_after: float | None = 30.0

    @takes_settings(TelegramConfig)
    def __init__(
        self,
        *,
        bot_token: str | Secret,
        secret_token: str | Secret = "",
        name: str = "telegram",
        path: str = "/telegram",
        **settings: Unpack[TelegramSettings],
    ) -> None:
        """Create a channel for a bot. Other settings are those of `TelegramConfig`.

        A `path` that ends in `/webhook` is the path of the webhook itself.
        """
        config = TelegramConfig(bot_token=_as_secret(bot_token), secret_token=_as_secret(secret_token), **settings)
        super().__init__(config, name=name, path=path)
        if path.endswith(WEBHOOK_PATH):
            self.webhook_path = "/"
        self._config = config
        self._webhook_secret = config.webhook_secret()
        self._accepted_secrets = self.list_secrets(self._webhook_secret)
        self._bot_name = ""
        self._takes_blocks = True
        self._effective = config
        """The settings, with the URL of the host as default."""
        self.client = BotClient(
            config.bot_token or Secret("none"),
            # One that is no URL is told of by `findings`.
            api_url=config.api_url if config.api_url.startswith("http") else API_URL,
            timeout=config.call_timeout,
            allow_private=config.api_url != API_URL,
        )

    @cached_property
    def renderer(self) -> Renderer:
        return replace(super().renderer, to_blocks=to_blocks if self._config.rich_messages else None)

    def warnings(self) -> list[str]:
        return self._effective.warnings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        if self._config.transport == "webhook" and self._config.public_url is None:
            self._effective = replace(self._config, public_url=context.public_url)
            if findings := self._effective.findings():
                # The URL of the host may be one to which this platform sends nothing.
                raise ChannelConfigurationError([f"{self.name}: {finding}" for finding in findings])
        contribution = super().contribute(context)
        if any(command.name == "start" for command in contribution.commands):
            return contribution
        return contribution.replace(commands=(start_command(context), *contribution.commands))

    async def connect(self) -> BotIdentity:
        me = await self.client.get_me()
        self._bot_name = me.username
        if self.accept_in_group == "all" and not me.can_read_all_group_messages:
            warn(self.name, "the privacy mode of the bot hides most messages of groups; BotFather turns it off")
        return BotIdentity(id=str(me.id), name=me.username)

    async def close(self) -> None:
        await self.client.close()

    # In

    async def verify(self, headers: Headers, body: bytes, now: float) -> None:
        given = headers.get(SECRET_HEADER, b"")
        if not any(hmac.compare_digest(secret.reveal().encode(), given) for secret in self._accepted_secrets):
            raise UnauthenticatedError("The secret token of the update is invalid.")

    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> Inbound | None:
        return read_update(event, bot)

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        """Answer the platform. Otherwise it repeats an unreadable update for a day and delays those behind it."""
        if isinstance(error, InvalidRequestError):
            pass_over(self.name, error)
            return await send_json(call.send, 200, b"{}")
        await super().answer_error(call, error)

    async def register(self, url: str) -> None:
        if self._webhook_secret is not None:
            await self.client.set_webhook(url, self._webhook_secret, max_connections=self._config.max_connections)

    async def poll(self, offset: int) -> Sequence[tuple[int, bytes]]:
        """Wait for updates. A conflicting webhook is removed only if that was configured."""
        try:
            return await self.client.get_updates(offset, self._config.poll_seconds)
        except PushError as error:
            if error.code != WEBHOOK_ACTIVE or not self._config.remove_webhook:
                raise
        await self.client.delete_webhook()
        return ()

    async def fetch(self, file: InboundFile, max_bytes: int) -> bytes:
        try:
            return await self.client.download(file.file_id, max_bytes=max_bytes)
        except PushRefusedError as error:
            if error.code == "too_large":
                raise FileTooLargeError(max_bytes) from None
            raise

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        if item.request.operation == "command" and await self._is_admin(item):
            attributes = {**item.request.attributes, ADMIN: True}
            item = item.replace(request=item.request.replace(attributes=attributes))
        return await super().prepare(item)

    async def _is_admin(self, item: InboxItem) -> bool:
        """Return True if the sender is an administrator. Only checked for admin-only commands."""
        command = self.context.find_command(item.request.attributes["command"])
        if not item.request.group or command is None or "admins" not in command.scopes:
            return False
        place = Destination.from_conversation_id(item.conversation_id)
        params = {"chat_id": place_params(place)["chat_id"], "user_id": int(item.caller.identity.native_id)}
        member = await self.client.call("getChatMember", params, ChatMember)
        return member.status in _ADMINISTRATORS

    async def has_recipient(self, identity: ChannelIdentity) -> bool:
        """Return True if the platform has a private chat with a person."""
        if not (identity.native_id.isascii() and identity.native_id.isdigit()):
            # A group, or a name: people have numbers.
            return False
        try:
            await self.client.call("getChat", {"chat_id": int(identity.native_id)}, Chat)
        except PushRefusedError as error:
            return error.code != "chat_not_found"
        except PushError:
            # A platform that is away says nothing about the person; the delivery waits for it.
            return True
        return True

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        """Return the reason why there is no answer. People who have to link get the URL of the private chat."""
        replies = list(await super().refuse(item, error))
        if isinstance(error, LinkRequiredError) and item.request.group and replies and self._bot_name:
            replies[0] = replies[0].replace(blocks=(*replies[0].blocks, deep_link(self._bot_name)))
        return replies

    # Out

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        return _shorten(super().parts(result), self._config.max_messages)

    def reply_parts(self, item: InboxItem, reply: Reply) -> Sequence[Any] | None:
        """Return the messages of a reply. The click on a stop button is answered by a pop-up."""
        if reply.to == "here" and item.request.operation == "command" and CALLBACK in item.request.attributes:
            reply = reply.replace(to="only_me")
        return super().reply_parts(item, reply)

    def push_seconds(self, content: Any) -> float:
        """Return the timeout of an upload, or of one call, including the time for quick refusals before it."""
        has_files = isinstance(content, Mapping) and cast("Mapping[str, Any]", content).get("media")
        return self.push_terms.timeout if has_files else self._config.call_timeout + _REFUSAL_SECONDS

    async def direct(self, user_id: str) -> Destination:
        """Return the private chat with a person. Its id is the user id."""
        return Destination(chat_id=user_id)

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str | None:
        """Send a message. For a migrated group, send it to the new group."""
        try:
            return await self._with_blocks(message, lambda shown: self._send(shown, destination))
        except ChatMigratedError as error:
            moved = Destination(chat_id=str(error.chat_id), kind="group")
            # One that is known under other names is answered all the same.
            with suppress(ValueError):
                await self.context.events.alias_conversation(destination.conversation_id, moved.conversation_id)
            return await self._with_blocks(message, lambda shown: self._send(shown, moved))

    async def _with_blocks(self, message: OutboundMessage, act: Callable[[OutboundMessage], Awaitable[T]]) -> T:
        """Call `act` with a message. If the platform refuses its blocks, retry with plain text."""
        if message.blocks and self._takes_blocks:
            try:
                return await act(message)
            except PushRefusedError as error:
                if not refuses_content(error):
                    raise
                # A server that does not know the method is not asked again.
                self._takes_blocks = error.code != NO_METHOD
                warn(self.name, f"a rich message is sent as a text: {error.code}")
        return await act(msgspec.structs.replace(message, blocks=()))

    async def _send(self, message: OutboundMessage, destination: Destination) -> str:
        config = self._config
        previews, stop = config.link_previews, config.stop_button
        calls = await run_sized(_size(message), send_calls, message, destination, link_previews=previews, stop=stop)
        message_id = ""
        for number, call in enumerate(calls):
            try:
                message_id = str((await self._call(call, message, destination))[0])
            except PushError as error:
                if number == 0 or error.permanent:
                    raise
                # To send the part again would repeat what has arrived.
                raise PushUnknownError("The message was sent only in part.", code="partly_sent") from None
        return message_id

    async def _call(self, call: ApiCall, message: OutboundMessage, destination: Destination) -> tuple[int, ...]:
        try:
            return await self.client.send(call.method, call.params, call.files)
        except PushRefusedError as error:
            if error.code != MEDIA_REFUSED or len(message.media) != 1 or call.method == "sendDocument":
                raise
        # A picture that is too narrow, or a video in another format, is still a file.
        (document,) = await run_sized(_size(message), media_calls, message.media, as_documents=True)
        shown = {name: value for name, value in call.params.items() if not str(value).startswith("attach://")}
        return await self.client.send(document.method, {**shown, **document.params}, document.files)

    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str | None:
        """Display a live answer as a message, or as a draft, which no later message replaces."""
        if not self._drafts_at(place):
            return await super().open_live(place, view, key)
        await self._draft(place, view, 0)
        return None

    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        # Messages that an earlier process has begun are gone on with.
        if handles or not self._drafts_at(place):
            return await super().update_live(place, handles, view)
        await self._draft(place, view, ALL_MESSAGES)
        return handles

    def _drafts_at(self, place: LivePlace) -> bool:
        return self._config.drafts and place.kind == "direct"

    async def _draft(self, place: LivePlace, view: LiveView, known: int) -> None:
        tail = await self.growing.render(place, view.text, known)
        if not tail.messages:
            return
        self.growing.note_sent(place, view.text, tail, tail.total)
        where = await self.destination(place.identity, place.conversation_id, place.kind, place.reference)
        try:
            await self._with_blocks(tail.messages[-1], lambda shown: self._apply(draft_call(shown, where)))
        except PushUnknownError:
            # It may be shown twice, and goes by itself.
            raise PushError("The delivery status of the draft is unknown.", code="draft_unknown") from None

    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        config = self._config

        def call(shown: OutboundMessage) -> ApiCall:
            previews, stop = config.link_previews, config.stop_button
            return edit_call(message_id, shown, destination, link_previews=previews, stop=stop)

        await self._with_blocks(message, lambda shown: self._apply(call(shown)))

    async def remove_buttons(self, message_id: str, destination: Destination) -> None:
        await self._apply(remove_buttons_call(message_id, destination))

    async def delete(self, message_id: str, destination: Destination) -> None:
        params = {"chat_id": place_params(destination)["chat_id"], "message_id": int(message_id)}
        await self._apply(ApiCall("deleteMessage", params))

    async def _apply(self, call: ApiCall) -> None:
        try:
            await self.client.call(call.method, call.params)
        except ChatMigratedError:
            # The messages of a group have other ids in the supergroup.
            raise PushNotEditableError("The group was converted to a supergroup.", code="migrated") from None

    async def answer_click(self, callback_id: str, text: str) -> None:
        params = {"callback_query_id": callback_id, "text": text[:TOAST_LIMIT] or None}
        await self.client.call("answerCallbackQuery", params)

    async def publish(self, menu: Menu) -> None:
        call = menu_call(menu)
        if call is not None:
            await self.client.call(call.method, call.params)

    async def typing(self, destination: Destination, *, on: bool) -> None:
        """Show the typing notice in the topic. It ends by itself."""
        if on:
            await self.client.call("sendChatAction", {**place_params(destination), "action": "typing"})


def _size(message: OutboundMessage) -> int:
    return sum(len(file.data) for file in message.media)


def _as_secret(given: str | Secret) -> Secret | None:
    return Secret(given) if given else None


def _shorten(parts: Sequence[Any], most: int | None) -> Sequence[Any]:
    """Move a text that needs too many messages into a file after the first message."""
    texts = [part for part in parts if part.get("text") and not part.get("buttons") and not part.get("media")]
    if most is None or len(texts) <= most:
        return parts
    whole = "\n\n".join(part["text"] for part in texts).encode("utf-8", "replace")
    file = OutboundFile(media_type="text/plain", name="answer.txt", data=base64.b64encode(whole).decode())
    rest = [part for part in parts if part not in texts]
    return [texts[0], msgspec.to_builtins(OutboundMessage(media=(file,))), *rest]
