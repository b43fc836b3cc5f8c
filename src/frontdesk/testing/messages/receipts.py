"""Notes what the platform says of a message after it has accepted it."""

from frontdesk.abc.channel import ChannelContext
from frontdesk.errors import UnavailableError
from frontdesk.testing.messages.wire import Event, Receipt

_RETRY_AFTER = 1.0


async def note_receipt(context: ChannelContext, event: Event, receipt: Receipt, *, seconds: float) -> None:
    """Settle the delivery of a message, or refuse a receipt that may have come before the delivery was recorded.

    The platform sends again what was refused. After so many seconds the message is none of the outbox's, such as one
    that was removed again, and its receipt is forgotten.
    """
    status = "delivered" if event.type == "delivered" else "failed"
    reason = receipt.reason or None
    known = await context.settle_delivery(receipt=receipt.message_id, status=status, reason=reason, at=event.at)
    if not known and context.now() < event.at + seconds:
        raise UnavailableError("Nothing is known of the message yet.", retry_after=_RETRY_AFTER)
