"""Pushes one part through its channel, and turns the outcome into a receipt or a `PushError`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from frontdesk.abc.channel import Channel, ChannelPush, ChannelPushCodec
from frontdesk.abc.push import PushesParts, PushPart, SupportsPushLookup
from frontdesk.abc.store import Identities
from frontdesk.data.codec import from_json, to_json
from frontdesk.data.delivery import Delivery
from frontdesk.data.result import HostedRunResult
from frontdesk.delivery.calls import call_platform
from frontdesk.errors import CodecError, PushRefusedError, UnreadableRecordError
from frontdesk.loggers import deliveries as log


def can_push(channel: Channel) -> bool:
    """Tell whether a channel can push."""
    return isinstance(channel, (ChannelPush, PushesParts))


def parts_of(channel: Channel, result: HostedRunResult[Any]) -> Sequence[Any]:
    """Return the parts that a channel sends for a result, in order."""
    return call_channel(lambda: list(channel.parts(result))) if isinstance(channel, PushesParts) else [result]


def encode_content(channel: Channel, content: Any) -> Any:
    """Encode a part as JSON; raise a `CodecError` if that is not possible."""
    if not isinstance(channel, ChannelPushCodec):
        return to_json(content)
    encoded = call_channel(lambda: channel.encode_push(content))
    # Checked, because the channel may have returned something else.
    return to_json(encoded)


def read_payload(delivery: Delivery) -> Any:
    """Return the payload of a part; an `UnreadableRecordError` if only a newer version can read it."""
    try:
        return from_json(delivery.payload)
    except CodecError as error:
        raise UnreadableRecordError(str(error)) from error


def call_channel(work: Callable[[], Any]) -> Any:
    """Return what a channel makes; a `CodecError` if it fails."""
    try:
        return work()
    except Exception as error:
        raise CodecError(f"the channel itself failed: {type(error).__name__}") from error


async def reference_of(identities: Identities, delivery: Delivery) -> Mapping[str, Any]:
    """Return the reference that a channel needs to reach a destination: from the request, or else the stored one."""
    if delivery.reference or delivery.conversation_id is not None:
        return delivery.reference
    return (await identities.reach(delivery.identity)).reference


async def send(
    channel: Channel, delivery: Delivery, payload: Any, reference: Mapping[str, Any] | None = None
) -> str | None:
    """Send a part with its payload, and return the platform's receipt; raise a `PushError` for every failure."""
    part = part_of(channel, delivery, payload, reference)
    if isinstance(channel, PushesParts):
        return await _push(channel, lambda: channel.push_part(part))
    if isinstance(channel, ChannelPush):
        return await _push(channel, lambda: channel.push(delivery.identity, part.content))
    raise PushRefusedError("The channel can't speak first.", code="mute_channel")


async def look_up(
    channel: Channel,
    platform: SupportsPushLookup,
    delivery: Delivery,
    payload: Any,
    reference: Mapping[str, Any] | None = None,
) -> str | None:
    """Return the receipt of a part that has arrived after all; `None` if it has not."""
    part = part_of(channel, delivery, payload, reference)
    return await _push(channel, lambda: platform.find_push(part))


def part_of(channel: Channel, delivery: Delivery, payload: Any, reference: Mapping[str, Any] | None = None) -> PushPart:
    """Return a part as a channel gets it; a `PushRefusedError` if the channel can't read its payload."""
    try:
        content = (
            call_channel(lambda: channel.decode_push(payload))
            if isinstance(channel, ChannelPushCodec) and not (payload is None and delivery.edits)
            else payload
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
        reply_token=delivery.reply_token,
        action=delivery.action,
        replaces=delivery.replaces,
    )


async def _push(channel: Channel, work: Callable[[], Awaitable[str | None]]) -> str | None:
    receipt = await call_platform("push", channel.name, work, channel.push_terms.timeout)
    return None if receipt is None else str(receipt)
