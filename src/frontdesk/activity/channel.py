"""`BotServiceChannel`: the base class of channels on Azure Bot Service."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from frontdesk.activity.client import (
    STREAM_CANCELED,
    STREAM_NOT_ALLOWED,
    STREAM_TIMEOUT,
    TOO_LARGE,
    ConnectorClient,
)
from frontdesk.activity.clouds import CLOUDS, Cloud, ServiceHosts
from frontdesk.activity.config import BotServiceConfig
from frontdesk.activity.parse import ParseRules, read_activity
from frontdesk.activity.render import (
    build_typing_activity,
    card_body,
    final_activity,
    is_too_large,
    message_activity,
    replies_body,
    stream_activity,
)
from frontdesk.activity.schema import TEAMS, Reference
from frontdesk.activity.tokens import BotTokens
from frontdesk.activity.verify import ActivityVerifier, require_joserfc
from frontdesk.asgi.messages import Headers
from frontdesk.auth.oidc import ProviderHttp
from frontdesk.chat.abilities import AnswersAtOnce, FetchesFiles, RemovesButtons, RepliesSynchronously
from frontdesk.chat.live_mixin import LiveAnswers, TypingNotices
from frontdesk.chat.messages import (
    BotIdentity,
    Card,
    Destination,
    Inbound,
    InboundFile,
    Invoke,
    InvokeAnswer,
    OutboundMessage,
    Proof,
)
from frontdesk.clock import SystemClock
from frontdesk.errors import (
    ChannelConfigurationError,
    FileTooLargeError,
    InvalidRequestError,
    PushError,
    PushNotEditableError,
    PushRefusedError,
    PushStoppedError,
    PushUnknownError,
    RequestError,
)
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.interfaces.chat import PushPart, PushTerms, SharesRates
from frontdesk.markdown import CommonMark, Dialect, Unit
from frontdesk.markdown.plain_text import split_text
from frontdesk.models.delivery import DestinationKind
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.operations import RateLimit
from frontdesk.outbound.client import GuardedClient

CONVERSATION_RATES = ((7, 1), (8, 2), (60, 30), (1_800, 3_600))
"""The activities that Bot Service takes in a number of seconds, for each conversation."""
TENANT_RATE = 50
"""The activities that it takes in a second, for each tenant."""
STREAM = "stream:"
"""The beginning of the handle of a message that is shown as a stream."""
MAX_STREAMS = 1_024
"""The number of open streams whose text this process knows."""
_STREAM_ENDED = (STREAM_CANCELED, STREAM_TIMEOUT, STREAM_NOT_ALLOWED)


class BotServiceChannel(
    TypingNotices, LiveAnswers, RemovesButtons, FetchesFiles, RepliesSynchronously, AnswersAtOnce, SharesRates
):
    """Answers people on the platforms behind Azure Bot Service. A subclass has a name and a path."""

    dialect: ClassVar[Dialect | None] = CommonMark()
    text_limit: int = 10_000
    text_unit: ClassVar[Unit] = "utf16"
    webhook_path: str = "/messages"
    # The token is verified before the body is read, and then held against the body.
    signs_bodies: ClassVar[bool] = False
    signature_headers: ClassVar[tuple[bytes, ...]] = (b"authorization",)
    tells_membership: ClassVar[bool] = True
    emits_verified_claims: bool = True
    push_terms = PushTerms(
        at_once=16,
        windows=tuple(RateLimit(count, per_seconds=seconds) for count, seconds in CONVERSATION_RATES),
        key_windows=(RateLimit(TENANT_RATE, per_seconds=1),),
        timeout=40.0,
    )
    typing_interval: float | None = 3.0

    def __init__(self, config: BotServiceConfig, *, name: str, path: str) -> None:
        require_joserfc()
        super().__init__(config, name=name, path=path)
        self._config = config
        self._clock = SystemClock()
        self._streams: OrderedDict[str, str] = OrderedDict()
        self.auth = config.platform_auth
        if config.platform_auth is not None:
            # The platform may keep the token to itself.
            object.__setattr__(self, "signature_headers", ())
        self._cloud = self._build_cloud()
        self._hosts = self._build_hosts()
        http = ProviderHttp()
        self.verifier = ActivityVerifier(
            config.app_id,
            self._cloud,
            self._hosts,
            http=http,
            clock=self._clock,
            tenants=config.tenants,
            accept_emulator=config.accept_emulator,
            skill_callers=config.skill_callers if config.accept_skills else (),
            platform=config.platform_auth,
        )
        self.tokens = BotTokens(config.app_id, config.credential, self._cloud, http=http, clock=self._clock)
        self.client = ConnectorClient(self.tokens, self._hosts, timeout=config.call_timeout)
        self._files = GuardedClient(max_bytes=config.media.max_bytes)

    def _build_cloud(self) -> Cloud:
        # A name or a URL that is wrong is one of the findings.
        cloud, url = CLOUDS.get(self._config.cloud, CLOUDS["public"]), self._config.connector_url
        return cloud if url is None or self._config.findings() else cloud.on_loopback(url)

    def _build_hosts(self) -> ServiceHosts:
        config = self._config
        if config.findings():
            return ServiceHosts(self._cloud)
        return ServiceHosts(
            self._cloud, more=config.service_hosts, loopback=config.connector_url, emulator=config.accept_emulator
        )

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        platform = self._config.platform_auth
        if platform is not None and not platform.is_in_foundry:
            raise ChannelConfigurationError(
                [
                    f"{self.name}: auth=PlatformAuth(trusted=TrustedEnvironment()) replaces the check of tokens only "
                    "in a hosted agent of Foundry; elsewhere leave auth out"
                ]
            )
        return super().contribute(context)

    async def connect(self) -> BotIdentity:
        return BotIdentity(id=self._config.app_id)

    async def check_online(self) -> Sequence[str]:
        """Fetch the signing keys of Bot Service and a token of the bot, and return the problems found."""
        wrong: list[str] = []
        try:
            await self.verifier.check_online()
        except RequestError as error:
            wrong.append(f"the signing keys of Bot Service can't be fetched: {error}")
        try:
            await self.tokens.get()
        except PushError as error:
            wrong.append(f"the bot gets no token: {error}")
        finally:
            await self.close()
        return wrong

    async def close(self) -> None:
        await self.client.close()

    # In

    async def verify(self, headers: Headers, body: bytes, now: float) -> Proof | None:
        return await self.verifier.verify(headers)

    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> Inbound | None:
        return read_activity(self.verifier.read(event, proof), ParseRules(app_id=self._config.app_id))

    async def answer_now(self, invoke: Invoke, caller: Caller) -> InvokeAnswer | None:
        hook = self._config.invoke_hook
        return None if hook is None else await hook(invoke, caller)

    def response(self, messages: Sequence[tuple[OutboundMessage, Destination, str]]) -> bytes:
        return replies_body([self._activity(message, self._reference(place)) for message, place, _ in messages])

    def card_response(self, card: Card) -> bytes:
        return card_body(card)

    async def fetch(self, file: InboundFile, max_bytes: int) -> bytes:
        """Fetch a file. Only attachments of Bot Service are fetched with the token of the bot."""
        try:
            self._hosts.check(file.url)
        except PushRefusedError:
            return await self._fetch_elsewhere(file.url, max_bytes)
        return await self.client.download(file.url, max_bytes=max_bytes)

    async def _fetch_elsewhere(self, url: str, max_bytes: int) -> bytes:
        try:
            body = (await self._files.fetch(url, caller=self.name)).body
        except InvalidRequestError as error:
            if error.code == "url_too_large":
                raise FileTooLargeError(max_bytes) from None
            raise PushRefusedError("The file can't be fetched.", code=error.code) from None
        except RequestError as error:
            raise PushError("The file can't be fetched at the moment.", code=error.code) from None
        if len(body) > max_bytes:
            raise FileTooLargeError(max_bytes)
        return body

    # Places

    async def direct(self, user_id: str) -> Destination:
        """Return the direct chat with a person. Its reference is the one that was stored, if there is one."""
        return Destination(user_id=user_id)

    async def destination(
        self,
        identity: ChannelIdentity,
        conversation_id: str | None,
        kind: DestinationKind = "direct",
        reference: Mapping[str, Any] | None = None,
    ) -> Destination:
        """Return the destination of a conversation. A direct chat that is not known yet is created."""
        place = await super().destination(identity, conversation_id, kind, reference)
        if conversation_id is not None or place.reference:
            return place
        known = await self.context.storage.get_reference(identity)
        created = known or msgspec.to_builtins(await self._create_direct(identity))
        return msgspec.structs.replace(place, reference=created)

    async def _create_direct(self, identity: ChannelIdentity) -> Reference:
        """Create the direct chat with a person of Teams, and store its reference."""
        attributes = identity.attributes
        tenant = _text(attributes.get("tenant_id")) or self._only_tenant()
        url = _text(attributes.get("service_url")) or self._cloud.direct_url
        if not tenant or not url or not identity.native_id.startswith("29:"):
            raise PushRefusedError(
                "The person has no chat with the bot, and their platform creates none.", code="no_reference"
            )
        bot = _text(attributes.get("bot_id")) or f"28:{self._config.app_id}"
        wanted = Reference(url=url, channel=TEAMS, bot=bot, user=identity.native_id, tenant=tenant, kind="personal")
        conversation = await self.client.create_direct(wanted)
        reference = msgspec.structs.replace(wanted, conversation=conversation)
        with suppress(RequestError, ValueError):
            # A person who is not admitted is told so, and leaves no data.
            await self.context.storage.put_reference(Caller(identity=identity), msgspec.to_builtins(reference))
        return reference

    def _only_tenant(self) -> str:
        tenants = tuple(self._config.tenants or ())
        return tenants[0] if len(tenants) == 1 else ""

    def _reference(self, place: Destination) -> Reference:
        """Return the reference of a conversation. One of Teams is reached without a stored one."""
        if place.reference:
            try:
                return msgspec.convert(dict(place.reference), Reference)
            except msgspec.ValidationError:
                raise PushRefusedError("The stored conversation reference is invalid.", code="no_reference") from None
        if not place.chat_id.startswith("19:") or not self._cloud.direct_url:
            raise PushRefusedError("The conversation has no stored reference.", code="no_reference")
        thread = f";messageid={place.thread_id}" if place.thread_id else ""
        return Reference(
            url=self._cloud.direct_url,
            channel=TEAMS,
            conversation=f"{place.chat_id}{thread}",
            bot=f"28:{self._config.app_id}",
            tenant=self._only_tenant(),
        )

    # Out

    def _activity(self, message: OutboundMessage, reference: Reference) -> dict[str, Any]:
        """Return the activity of a message. A file that the platform does not accept is named instead."""
        activity = message_activity(message, reference)
        if message.media and (is_too_large(activity) or len(activity.get("attachments", ())) < len(message.media)):
            names = ", ".join(file.name or file.media_type for file in message.media)
            (named, *_) = self.renderer.plain("\n".join(filter(None, (message.text, f"[{names}]"))))
            text = msgspec.structs.replace(message, media=(), text=named.text)
            return message_activity(text, reference)
        return activity

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str | None:
        reference = self._reference(destination)
        if message.live:
            return await self._open_stream(message, reference)
        try:
            return await self._send(message, reference)
        except PushRefusedError as error:
            if error.code != TOO_LARGE or len(message.text) < 2:
                raise
        return await self._send_halves(message, reference)

    async def _send(self, message: OutboundMessage, reference: Reference) -> str | None:
        return await self.client.send(reference, self._activity(message, reference), reply_to=message.reply_to)

    async def _send_halves(self, message: OutboundMessage, reference: Reference) -> str | None:
        """Send a message that is too large for the platform in two parts. The buttons are below the last one."""
        first, *rest = split_text(message.text, max(1, len(message.text) // 2 + 1))
        replace = msgspec.structs.replace
        receipt = await self._send(replace(message, text=first, buttons=(), media=()), reference)
        parts = [replace(message, text=text, reply_to="", buttons=(), media=()) for text in rest]
        parts[-1] = replace(parts[-1], buttons=message.buttons, media=message.media)
        try:
            for part in parts:
                receipt = await self._send(part, reference)
        except PushError as error:
            if error.permanent:
                raise
            # To send it again would repeat what has arrived.
            raise PushUnknownError("The message was sent only in part.", code="partly_sent") from None
        return receipt

    def rate_key(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> str:
        """Return the tenant, whose limit all of its conversations share."""
        return _text(reference.get("tenant")) or _text(identity.attributes.get("tenant_id"))

    async def push_part(self, part: PushPart) -> str | None:
        receipt = await super().push_part(part)
        # From its end on a stream is a message like any other.
        return None if receipt is None else receipt.removeprefix(STREAM)

    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        reference = self._reference(destination)
        stream_id = message_id.removeprefix(STREAM)
        if message.live:
            return await self._continue_stream(stream_id, message, reference)
        if stream_id != message_id:
            return await self._finish(stream_id, message, reference)
        await self._update(message_id, message, reference)

    async def _update(self, message_id: str, message: OutboundMessage, reference: Reference) -> None:
        if reference.channel != TEAMS:
            raise PushNotEditableError("The platform does not support editing messages.")
        await self.client.update(reference, message_id, self._activity(message, reference))

    async def delete(self, message_id: str, destination: Destination) -> None:
        reference = self._reference(destination)
        self._streams.pop(message_id.removeprefix(STREAM), None)
        if reference.channel != TEAMS:
            raise PushNotEditableError("The platform does not support deleting messages.")
        await self.client.delete(reference, message_id.removeprefix(STREAM))

    async def remove_buttons(self, message_id: str, destination: Destination) -> None:
        """End a stream with what it has shown. The cards of other messages stay: an update needs their text."""
        stream_id = message_id.removeprefix(STREAM)
        stream = self._streams.get(stream_id) if message_id.startswith(STREAM) else None
        if stream is not None:
            await self._finish(stream_id, OutboundMessage(text=stream), self._reference(destination))

    async def typing(self, destination: Destination, *, on: bool) -> None:
        """Show the typing notice. It ends by itself."""
        if on:
            reference = self._reference(destination)
            await self.client.send(reference, build_typing_activity(reference))

    # Live messages

    async def _open_stream(self, message: OutboundMessage, reference: Reference) -> str:
        """Begin a stream, where the platform has streams. Return its handle."""
        if reference.channel != TEAMS or reference.kind != "personal" or message.sequence > 1:
            # A conversation has one stream at a time: the rest of a long text comes with the whole answer.
            raise PushRefusedError("The platform has no stream for this message.", code="live_unsupported")
        activity = stream_activity(message.text, reference, sequence=max(message.sequence, 1))
        stream_id = await self.client.send(reference, activity)
        if stream_id is None:
            raise PushRefusedError("The platform names no stream.", code="live_unsupported")
        self._keep_text(stream_id, message.text)
        return f"{STREAM}{stream_id}"

    async def _continue_stream(self, stream_id: str, message: OutboundMessage, reference: Reference) -> None:
        activity = stream_activity(message.text, reference, sequence=message.sequence, stream_id=stream_id)
        try:
            await self.client.send(reference, activity)
        except PushUnknownError:
            # One that arrives late is refused, because the stream has gone on or has ended.
            raise PushError("The delivery status of the update is unknown.", code="update_unknown") from None
        except PushRefusedError as error:
            if error.code == STREAM_CANCELED:
                raise PushStoppedError("The person has stopped the answer.", code=error.code) from None
            raise
        self._keep_text(stream_id, message.text)

    def _keep_text(self, stream_id: str, text: str) -> None:
        self._streams[stream_id] = text
        if len(self._streams) > MAX_STREAMS:
            self._streams.popitem(last=False)

    async def _finish(self, stream_id: str, message: OutboundMessage, reference: Reference) -> None:
        """End a stream with its final message. One that has ended is replaced as a message."""
        try:
            await self.client.send(reference, self._final(message, reference, stream_id))
        except PushRefusedError as error:
            if error.code not in _STREAM_ENDED:
                raise
            await self._update(stream_id, message, reference)
        self._streams.pop(stream_id, None)

    def _final(self, message: OutboundMessage, reference: Reference, stream_id: str) -> dict[str, Any]:
        return final_activity(message, reference, stream_id)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
