"""Receives events of a platform into the inbox: from a webhook, a poll or a connection."""

import hashlib
import hmac
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.routing import Route
from starlette.types import Scope

from frontdesk.asgi.messages import BodyBudget, BodyHold, Headers, count_charged, error_headers, send_json, send_text
from frontdesk.auth.verifier import HttpVerifier, single_headers
from frontdesk.chat.abilities import AnswersAtOnce, AnswersClicks, AnswersHandshakes, RepliesSynchronously
from frontdesk.chat.connection import EarlyReceiptError, Intake, pass_over, webhook_url
from frontdesk.chat.inbound import InboundRules, build_greeting, give_up, to_caller, to_item
from frontdesk.chat.messages import (
    BotIdentity,
    Card,
    ConversationMove,
    DeliveryReceipt,
    Inbound,
    InboundFeedback,
    InboundMessage,
    Invoke,
    InvokeAnswer,
    MembershipChange,
    Proof,
)
from frontdesk.chat.replies import decide_click
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import (
    CodecError,
    ForbiddenError,
    HookError,
    InvalidRequestError,
    PushError,
    RequestError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from frontdesk.hooks import call_feedback_hook
from frontdesk.http.endpoint import BodyDeadline, HttpCall, HttpEndpoint
from frontdesk.http.limits import DEFAULT_LIMITS
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.secret import Secret

if TYPE_CHECKING:
    from frontdesk.chat.channel import ChatChannel

_NOTHING = b"{}"
_NOT_IMPLEMENTED = InvokeAnswer(status=501)
_RETRY_SECONDS = 1.0
_FORM = b"application/x-www-form-urlencoded"
_MAX_FIELDS = 20


T = TypeVar("T")
_MAX_TIME_LENGTH = 12


def decode_event(event: bytes, kind: type[T]) -> T:
    """Return an event decoded from JSON. Raise `InvalidRequestError` if it does not match the type."""
    try:
        return msgspec.json.decode(event, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The event is invalid: {error}.") from None


def verify_hmac(secrets: Secret | Sequence[Secret], signed: bytes, signature: bytes) -> None:
    """Raise `UnauthenticatedError` unless the signature is the HMAC-SHA256 of `signed` in hexadecimal digits.

    Of several secrets, one has to fit: see `ChatChannel.list_secrets`.
    """
    for secret in (secrets,) if isinstance(secrets, Secret) else secrets:
        expected = hmac.new(secret.reveal().encode(), signed, hashlib.sha256).hexdigest()
        if hmac.compare_digest(expected.encode(), signature):
            return
    raise UnauthenticatedError("The signature of the event is invalid.")


def verify_time(time: bytes, now: float, *, max_age_seconds: float = 300) -> None:
    """Raise `UnauthenticatedError` unless an event was signed less than `max_age_seconds` before or after now.

    `time` is in whole seconds.
    """
    if not time.isdigit() or len(time) > _MAX_TIME_LENGTH or abs(now - int(time)) > max_age_seconds:
        raise UnauthenticatedError("The timestamp of the event's signature is out of range.")


class ChatWebhook:
    """The webhook of one chat channel in its host."""

    def __init__(self, channel: "ChatChannel", context: ChannelContext) -> None:
        self._channel = channel
        self._config = channel.chat_config
        self._context = context
        self._intake = Intake(context, self._connect, channel, self.take)
        self._deadline = BodyDeadline(self._config.body_timeout)
        self._bodies = BodyBudget(DEFAULT_LIMITS.max_bytes, None)
        self._rules = InboundRules(
            channel=channel.name,
            accept_in_group=channel.accept_in_group,
            on_edit=self._config.on_edit,
            hooked=channel.run_hook is not None,
            has_buttons=channel.has_buttons,
            has_albums=channel.album_seconds > 0,
            emits_claims=channel.emits_verified_claims,
            scopes=frozenset(self._config.scopes),
        )

    def routes(self) -> list[Route]:
        """Return the routes of the webhook, if events arrive by webhook."""
        if self._config.transport != "webhook":
            return []
        channel = self._channel
        if isinstance(channel, AnswersHandshakes):
            verifier = SignatureVerifier(channel.name, channel.signature_headers, greets=True)
            greet = partial(self.greet, channel)
            endpoint = HttpEndpoint(verifier, channel.answer_error, POST=self.receive, GET=greet)
        else:
            verifier = SignatureVerifier(channel.name, channel.signature_headers)
            endpoint = HttpEndpoint(verifier, channel.answer_error, POST=self.receive)
        return [Route(path, endpoint=endpoint) for path in (channel.webhook_path, *channel.earlier_webhook_paths)]

    async def start(self) -> None:
        """Register the bot with its platform."""
        transport = self._config.transport
        paths = (self._channel.path, self._channel.webhook_path)
        self._intake.start(
            publish=self._config.register_native_commands,
            webhook=webhook_url(self._config.public_url or self._context.public_url, paths)
            if transport == "webhook"
            else None,
            transport=transport,
            one_poller=self._channel.one_poller,
        )

    async def _connect(self) -> BotIdentity:
        bot = await self._channel.connect()
        self._channel.connected.set()
        return bot

    async def stop(self) -> None:
        await self._intake.stop()
        if self._channel.clicks is not None:
            await self._channel.clicks.stop()
        await self._channel.close()

    async def greet(self, channel: AnswersHandshakes, call: HttpCall) -> None:
        """Answer the handshake by which a platform verifies the webhook URL."""
        try:
            query = parse_qsl(call.scope["query_string"].decode("latin-1"), max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise InvalidRequestError from None
        await send_text(call.send, 200, channel.handshake(dict(query)))

    async def _body(self, call: HttpCall) -> bytes:
        kind = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        read = call.whole_body if self._channel.takes_forms and kind == _FORM else call.json_body
        return await read(limit=self._config.max_body_bytes, deadline=self._deadline)

    async def receive(self, call: HttpCall) -> None:
        """Verify a body, store its events, and only then acknowledge it."""
        channel, proof = self._channel, None
        if not channel.signs_bodies:
            proof = await channel.verify(call.headers, b"", self._context.now())
        body = await self._body(call)
        if channel.signs_bodies:
            proof = await channel.verify(call.headers, body, self._context.now())
        # Charged after verification: a stranger must not be able to use up the platform's budget.
        call.held = BodyHold(self._bodies, call.who)
        call.held.add(await run_sized(len(body), count_charged, body))
        challenge = channel.challenge(body)
        if challenge is not None:
            return await send_json(call.send, 200, challenge)
        events = channel.events(body)
        if len(events) == 1:
            return await self._answer(call, events[0], proof)
        failures: list[RequestError] = []
        for event in events:
            try:
                await self.take(event, proof)
            except CodecError as error:
                failures.append(InvalidRequestError(f"The event can't be stored: {error}."))
            except (InvalidRequestError, EarlyReceiptError) as error:
                # One that can't be read, or is to be sent again, keeps back none of the others.
                failures.append(error)
        if failures:
            # What is to be sent again comes first: the others would not be stored then either.
            raise max(failures, key=lambda error: error.status)
        await send_json(call.send, 200, _NOTHING)

    async def _answer(self, call: HttpCall, event: bytes, proof: Proof | None) -> None:
        """Store the only event of a body and answer it. For some events the response carries data."""
        channel, inbound = self._channel, await self._read(event, proof)
        if isinstance(inbound, Invoke):
            answer = await self._answer_invoke(inbound)
            return await send_json(call.send, answer.status, answer.body)
        if isinstance(inbound, InboundMessage) and isinstance(channel, RepliesSynchronously):
            return await self._reply(call, channel, inbound, event)
        await self._take(inbound, event)
        await send_json(call.send, 200, _NOTHING)

    async def _reply(
        self, call: HttpCall, platform: RepliesSynchronously, message: InboundMessage, event: bytes
    ) -> None:
        """Store a message and write its answer into the response, if the platform expects it there."""
        item = self._item(message, event)
        expects_card = message.click is not None and message.click.expects_card
        card = None
        if item is not None and expects_card:
            card = await decide_click(self._context, item, self._channel.renderer.limit)
        if card is None and item is not None and item.addressed and message.expects_reply:
            async with self._context.events.accept_and_wait(item, self._config.reply_seconds) as reply:
                messages = [await self._channel.build_call(part) for part in reply.parts]
                return await send_json(call.send, 200, platform.response(messages))
        if card is None:
            await self._accept(item)
        body = platform.card_response(card or Card()) if expects_card else _NOTHING
        await send_json(call.send, 200, body)

    async def _answer_invoke(self, invoke: Invoke) -> InvokeAnswer:
        channel = self._channel
        if not isinstance(channel, AnswersAtOnce) or invoke.place.kind not in self._rules.scopes:
            return _NOT_IMPLEMENTED
        caller = to_caller(invoke.sender, self._rules)
        try:
            if invoke.sender.is_bot:
                raise ForbiddenError
            await self._context.events.authorize(caller)
        except RequestError as error:
            refusal = channel.refuse_now(invoke, error)
            if refusal is None:
                raise
            return refusal
        return await channel.answer_now(invoke, caller) or _NOT_IMPLEMENTED

    async def _read(self, event: bytes, proof: Proof | None) -> Inbound | None:
        return await run_sized(len(event), self._channel.read, event, self._intake.require_bot(), proof)

    async def take(self, event: bytes, proof: Proof | None = None) -> None:
        """Store an event that is addressed to this bot."""
        await self._take(await self._read(event, proof), event)

    async def _take(self, inbound: Inbound | None, event: bytes) -> None:
        match inbound:
            case InboundMessage():
                await self._accept(self._item(inbound, event))
            case DeliveryReceipt():
                await self._note(inbound)
            case ConversationMove():
                await self._move(inbound)
            case MembershipChange():
                await self._change_membership(inbound, event)
            case InboundFeedback():
                await self._note_feedback(inbound)
            case Invoke():
                # In a batch, a poll or a connection there is no response that could carry the answer.
                raise InvalidRequestError("The event expects an HTTP response of its own.")
            case None:
                pass

    async def _note_feedback(self, given: InboundFeedback) -> None:
        """Record feedback and pass it on. That of people without access, and of bots, changes nothing."""
        if given.sender.is_bot or given.place.kind not in self._rules.scopes:
            return
        place = given.place
        try:
            feedback = await self._context.events.add_feedback(
                to_caller(given.sender, self._rules),
                receipt=given.message_id,
                value=given.value,
                reason=given.reason,
                conversation_id=place.conversation_id if place.kind == "group" else None,
                at=given.at,
            )
        except (ForbiddenError, TooManyRequestsError) as error:
            return pass_over(self._channel.name, error)
        if feedback is not None and self._config.feedback_hook is not None:
            # It is recorded, and would not be passed on again.
            with suppress(HookError):
                await call_feedback_hook(self._config.feedback_hook, feedback)

    async def _change_membership(self, change: MembershipChange, event: bytes) -> None:
        """Keep or forget how a person is reached. Drop the deliveries of a lost chat, and greet a new group if
        configured."""
        if change.place.kind not in self._rules.scopes:
            return
        if change.place.kind == "direct" and change.by is not None:
            await self._keep_reference(to_caller(change.by, self._rules), change)
        if not change.present:
            return await give_up(self._context, change)
        message = build_greeting(change) if self._config.greet_groups else None
        if message is not None:
            await self._accept(self._item(message, event))

    async def _keep_reference(self, caller: Caller, change: MembershipChange) -> None:
        if change.present and not change.place.reference:
            return
        try:
            await self._context.storage.put_reference(caller, change.place.reference if change.present else {})
        except (ForbiddenError, ValueError) as error:
            # A person without access leaves nothing behind.
            pass_over(self._channel.name, error)

    async def _move(self, move: ConversationMove) -> None:
        """Continue a conversation under its new id. A move that contradicts an earlier one is ignored."""
        try:
            await self._context.events.alias_conversation(move.old.conversation_id, move.new.conversation_id)
        except ValueError as error:
            # It would be the same however often the platform sends it.
            pass_over(self._channel.name, error)

    async def _note(self, receipt: DeliveryReceipt) -> None:
        """Settle the delivery of a message, or reject a receipt that may have arrived before the delivery was recorded.

        The platform sends rejected receipts again. After a number of seconds the message is assumed not to belong to
        the outbox (for example because it was removed), and its receipt is discarded.
        """
        status, reason = "delivered" if receipt.delivered else "failed", receipt.reason or None
        known = await self._context.events.settle_delivery(
            receipt=receipt.message_id, status=status, reason=reason, at=receipt.at
        )
        if not known and self._context.now() < receipt.at + self._config.receipt_seconds:
            raise EarlyReceiptError(
                "The message of the receipt is not stored yet. Send the receipt again.", retry_after=_RETRY_SECONDS
            )

    async def _accept(self, item: InboxItem | None) -> None:
        if item is None:
            return
        clicked, channel = item.request.attributes.get("callback_id"), self._channel
        if await self._context.events.accept(item):
            if clicked and channel.clicks is not None:
                channel.clicks.watch(item)
            return
        if clicked and isinstance(channel, AnswersClicks):
            # What is beyond the limits of a person is not kept, and their button stops to wait all the same.
            with suppress(PushError):
                await channel.answer_click(clicked, "")

    def _item(self, message: InboundMessage, event: bytes) -> InboxItem | None:
        item = to_item(
            message,
            self._rules,
            self._intake.require_bot(),
            now=self._context.now(),
            payload=lambda: self._channel.payload(event),
        )
        if item is None:
            return None
        if message.reply_token and self._config.private_replies:
            until = message.at + self._config.token_seconds
            item = self._context.events.seal_reply_token(item, message.reply_token, expires_at=until)
        return item.replace(kind="control") if self._is_control(item) else item

    def _is_control(self, item: InboxItem) -> bool:
        if item.request.operation != "command":
            return False
        command = self._context.find_command(item.request.attributes["command"])
        return command is not None and command.control


class SignatureVerifier(HttpVerifier):
    """Rejects requests without a signature. The signature itself is verified after the body has been read."""

    def __init__(self, channel: str, headers: Sequence[bytes], *, greets: bool = False) -> None:
        """With `greets`, a GET request is verified by its handshake instead."""
        super().__init__(channel, None)
        self._greets = greets
        self._platform = Caller(identity=ChannelIdentity(channel=channel, native_id="the platform"))
        self._headers = tuple(headers)

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        is_greeting = self._greets and scope["method"] == "GET"
        if not is_greeting and not self._has_all(single_headers(scope, headers)):
            raise UnauthenticatedError("The event has no signature.")
        return self._platform

    def _has_all(self, headers: Headers) -> bool:
        try:
            return all(headers.get(name) for name in self._headers)
        except InvalidRequestError as error:
            # A channel may acknowledge an event that it cannot read, but none that is not signed.
            raise UnauthenticatedError(error.message, code=error.code) from None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a platform request was rejected."""

    code: str
    message: str


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The wire format of an error response to a platform."""

    error: Problem


async def refuse(call: HttpCall, error: RequestError) -> None:
    body = Refusal(error=Problem(code=error.code, message=error.message))
    await send_json(call.send, error.status, msgspec.json.encode(body), error_headers(error))
