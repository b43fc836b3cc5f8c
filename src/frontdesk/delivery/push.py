"""Pushes one part through its channel, and converts the outcome into a receipt or a `PushError`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from frontdesk.errors import (
    CodecError,
    PushError,
    PushNotEditableError,
    PushNotModifiedError,
    PushRefusedError,
    PushUnknownError,
    UnreadableRecordError,
)
from frontdesk.interfaces.channel import Channel, ChannelPush, ChannelPushCodec
from frontdesk.interfaces.chat import PushesParts, PushPart, SupportsPushLookup, TimesPushes
from frontdesk.interfaces.store import Identities
from frontdesk.loggers import deliveries as log
from frontdesk.models.delivery import Attempt, Delivery
from frontdesk.models.result import HostedRunResult
from frontdesk.serialization.codec import from_json, to_json

T = TypeVar("T")


async def call_platform(what: str, channel: str, work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Return the result of a channel call. After the timeout its outcome is unknown. Logs name it `what`."""
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except PushError:
        raise
    except TimeoutError:
        raise PushUnknownError(code="timeout") from None
    except Exception as error:
        # A channel raises a `PushError` if it knows the outcome; with any other error it is unknown.
        log.error(
            "push failed with an unexpected error: operation=%s channel=%s: %s", what, channel, type(error).__name__
        )
        # Its text may quote an address with a token in it.
        log.debug("push failed: operation=%s channel=%s", what, channel, exc_info=error)
        raise PushUnknownError(code="unexpected") from error


def can_push(channel: Channel) -> bool:
    return isinstance(channel, (ChannelPush, PushesParts))


def get_components(channel: Channel, result: HostedRunResult[Any]) -> Sequence[Any]:
    """Return the parts that a channel sends for a result, in order."""
    return call_channel(lambda: list(channel.parts(result))) if isinstance(channel, PushesParts) else [result]


def encode_content(channel: Channel, content: Any) -> Any:
    """Encode a part as JSON. Raises `CodecError` if that is not possible."""
    if not isinstance(channel, ChannelPushCodec):
        return to_json(content)
    encoded = call_channel(lambda: channel.encode_push(content))
    # Checked, because the channel may have returned something else.
    return to_json(encoded)


def read_payload(delivery: Delivery) -> Any:
    """Return the payload of a part. Raises `UnreadableRecordError` if only a newer version can read it."""
    try:
        return from_json(delivery.payload)
    except CodecError as error:
        raise UnreadableRecordError(str(error)) from error


def call_channel(work: Callable[[], Any]) -> Any:
    """Return the result of a channel call. Raises `CodecError` if the call fails."""
    try:
        return work()
    except Exception as error:
        raise CodecError(f"the channel itself failed: {type(error).__name__}") from error


async def build_reference(identities: Identities, delivery: Delivery) -> Mapping[str, Any]:
    """Return the conversation reference for a destination: from the request, or else the stored one."""
    if delivery.reference or delivery.conversation_id is not None:
        return delivery.reference
    return (await identities.reach(delivery.identity)).reference


def push_seconds(channel: Channel, payload: Any) -> float:
    most = channel.push_terms.timeout
    if not isinstance(channel, TimesPushes):
        return most
    try:
        return call_channel(lambda: min(float(channel.push_seconds(payload)), most))
    except CodecError as error:
        log.error("channel returned no push timeout: channel=%s: %s", channel.name, error)
        return most


async def send(
    channel: Channel,
    delivery: Delivery,
    payload: Any,
    reference: Mapping[str, Any] | None = None,
    seconds: float | None = None,
) -> str | None:
    """Send a part with its payload and return the platform's receipt. Raises `PushError` for every failure."""
    part = build_part(channel, delivery, payload, reference)
    if isinstance(channel, PushesParts):
        return await _push(channel, lambda: channel.push_part(part), seconds)
    if isinstance(channel, ChannelPush):
        return await _push(channel, lambda: channel.push(delivery.identity, part.content), seconds)
    raise PushRefusedError("The channel can't send messages outside a conversation.", code="mute_channel")


async def look_up(
    channel: Channel,
    platform: SupportsPushLookup,
    delivery: Delivery,
    payload: Any,
    reference: Mapping[str, Any] | None = None,
) -> str | None:
    """Return the receipt of a part that has arrived after all, or None if it has not."""
    part = build_part(channel, delivery, payload, reference)
    return await _push(channel, lambda: platform.find_push(part))


def build_part(
    channel: Channel, delivery: Delivery, payload: Any, reference: Mapping[str, Any] | None = None
) -> PushPart:
    """Return a part for a channel. Raises `PushRefusedError` if the channel can't read its payload."""
    try:
        content = (
            call_channel(lambda: channel.decode_push(payload))
            if isinstance(channel, ChannelPushCodec) and not (payload is None and delivery.edits)
            else payload
        )
    except CodecError as error:
        log.error("delivery cannot be decoded: delivery_id=%s: %s", delivery.delivery_id, error)
        raise PushRefusedError(code="unreadable") from error
    return PushPart(
        identity=delivery.identity,
        conversation_id=delivery.conversation_id,
        reference=delivery.reference if reference is None else reference,
        content=content,
        idempotency_key=delivery.idempotency_key,
        part=delivery.part,
        parts=delivery.parts,
        is_echo=delivery.is_echo,
        kind=delivery.kind,
        attempt=delivery.attempts,
        reply_token=delivery.reply_token,
        action=delivery.action,
        replaces=delivery.replaces,
    )


async def _push(
    channel: Channel, work: Callable[[], Awaitable[str | None]], seconds: float | None = None
) -> str | None:
    receipt = await call_platform(
        "push", channel.name, work, channel.push_terms.timeout if seconds is None else seconds
    )
    return None if receipt is None else str(receipt)


NOTHING_TO_CHANGE = "nothing to change"
"""The code in the history of a part that changes a message which is not there to be changed any more."""
NO_EDITS = "no edits"
"""The code in the history of a part that would have changed a message on a channel which can't."""
MAX_HISTORY_ENTRIES = 20


def add_attempt(row: Delivery, now: float, code: str, waited: float | None = None) -> Delivery:
    return row.replace(history=(*row.history, Attempt(at=now, code=code, waited=waited))[-MAX_HISTORY_ENTRIES:])


def before_call(row: Delivery, *, can_edit: bool, now: float) -> Delivery | None:
    """Return a part to write instead of calling the platform, or None if the platform has to be called."""
    if not row.edits or (can_edit and row.replaces is not None):
        return None
    return _without_message(row, NO_EDITS if row.replaces is not None else NOTHING_TO_CHANGE, now)


def after_error(row: Delivery, error: PushError, now: float) -> Delivery | None:
    """Return a part after an error that is specific to message edits, or None for any other error.

    A message that already has the content counts as edited. A message that can't be edited any more is left alone: the
    content is sent as a new message, which is committed before that there is nothing to edit. A repeated edit then
    counts as done.
    """
    if row.replaces is None:
        return None
    if isinstance(error, PushNotModifiedError):
        return _accept(add_attempt(row, now, error.code), now)
    if isinstance(error, PushNotEditableError):
        return _without_message(row.replace(attempts=row.attempts - 1), error.code, now)
    return None


def build_receipt(row: Delivery, receipt: str | None) -> str | None:
    """Return the receipt of an accepted part: if there is no new one, that of the message that it edited."""
    return row.replaces if receipt is None else receipt


def _without_message(row: Delivery, code: str, now: float) -> Delivery:
    changed = add_attempt(row, now, code)
    if row.action == "send" and not row.is_repeat:
        return changed.replace(status="pending", replaces=None, due_at=now, error=None)
    return _accept(changed, now)


def _accept(row: Delivery, now: float) -> Delivery:
    return row.replace(status="accepted", receipt=row.replaces, error=None, ended_at=now)
