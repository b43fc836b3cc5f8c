"""Gives one part to its channel, and turns whatever comes of that into a receipt or a `PushError`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from frontdesk.abc.channel import Channel, ChannelPush, ChannelPushCodec
from frontdesk.abc.push import PushesParts, PushPart, SupportsPushLookup
from frontdesk.abc.store import Identities
from frontdesk.data.codec import from_json, to_json
from frontdesk.data.delivery import Delivery
from frontdesk.data.result import HostedRunResult
from frontdesk.errors import CodecError, PushError, PushRefusedError, PushUnknownError, UnreadableRecordError
from frontdesk.loggers import deliveries as log


def can_push(channel: Channel) -> bool:
    """Whether a channel can speak first."""
    return isinstance(channel, (ChannelPush, PushesParts))


def parts_of(channel: Channel, result: HostedRunResult[Any]) -> Sequence[Any]:
    """What a channel sends for a result, one after the other."""
    return _translated(lambda: list(channel.parts(result))) if isinstance(channel, PushesParts) else [result]


def encode_content(channel: Channel, content: Any) -> Any:
    """A part as JSON; a `CodecError` when it has no such form."""
    if not isinstance(channel, ChannelPushCodec):
        return to_json(content)
    encoded = _translated(lambda: channel.encode_push(content))
    # What a channel calls JSON has to be.
    return to_json(encoded)


def read_payload(delivery: Delivery) -> Any:
    """Return the payload of a part; an `UnreadableRecordError` if only a newer version can read it."""
    try:
        return from_json(delivery.payload)
    except CodecError as error:
        raise UnreadableRecordError(str(error)) from error


def _translated(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        raise CodecError(f"the channel itself failed: {type(error).__name__}") from error


async def reference_of(identities: Identities, delivery: Delivery) -> Mapping[str, Any]:
    """Return what a channel has to be told to reach a destination: as the request said, or as it is kept by now."""
    if delivery.reference or delivery.conversation_id is not None:
        return delivery.reference
    return (await identities.reach(delivery.identity)).reference


async def send(
    channel: Channel, delivery: Delivery, payload: Any, reference: Mapping[str, Any] | None = None
) -> str | None:
    """Sends a part with its payload; returns the platform's receipt. Every failure is a `PushError`."""
    part = _part(channel, delivery, payload, reference)
    if isinstance(channel, PushesParts):
        return await _answered(channel, lambda: channel.push_part(part))
    if isinstance(channel, ChannelPush):
        return await _answered(channel, lambda: channel.push(delivery.identity, part.content))
    raise PushRefusedError("The channel can't speak first.", code="mute_channel")


async def look_up(
    channel: Channel,
    platform: SupportsPushLookup,
    delivery: Delivery,
    payload: Any,
    reference: Mapping[str, Any] | None = None,
) -> str | None:
    """The receipt of a part that arrived after all; `None` when it did not."""
    part = _part(channel, delivery, payload, reference)
    return await _answered(channel, lambda: platform.find_push(part))


def _part(channel: Channel, delivery: Delivery, payload: Any, reference: Mapping[str, Any] | None) -> PushPart:
    try:
        content = (
            _translated(lambda: channel.decode_push(payload)) if isinstance(channel, ChannelPushCodec) else payload
        )
    except CodecError as error:
        log.error("delivery %s can't be read: %s", delivery.delivery_id, error)
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
    )


async def _answered(channel: Channel, work: Callable[[], Awaitable[str | None]]) -> str | None:
    try:
        async with asyncio.timeout(channel.push_terms.timeout):
            receipt = await work()
    except PushError:
        raise
    except TimeoutError:
        raise PushUnknownError(code="timeout") from None
    except Exception as error:
        # A channel says itself what it knows for sure; of anything else nobody knows how far it came.
        log.error("a push on %s failed in a way that the channel does not know: %s", channel.name, type(error).__name__)
        # Its text may quote an address with a token in it.
        log.debug("the push on %s failed", channel.name, exc_info=error)
        raise PushUnknownError(code="unexpected") from error
    return None if receipt is None else str(receipt)
