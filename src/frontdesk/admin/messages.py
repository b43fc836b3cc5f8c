"""Sends messages to people, and runs the target for them, on request of an operator."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.clock import Clock
from frontdesk.errors import InvalidRequestError, NotFoundError, RunExistsError
from frontdesk.identifiers import digest
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import audit
from frontdesk.models.approval import AuditLine
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunRecord

_MAX_KEY_LENGTH = 256
_DIGITS = 32


@dataclass(frozen=True, kw_only=True)
class AdminMessagingDeps:
    """The parts of a host for sending messages. A process that has only the store has none."""

    store: HostStateStore
    clock: Clock
    ids: Ids
    channels: Sequence[str]
    deliver: Callable[[str | ChannelIdentity, str, str | None, str], Awaitable[Sequence[Delivery]]]
    """Sends a text once for each idempotency key, with a line in the audit log that names the operator."""
    check: Callable[[ChannelIdentity], Awaitable[None]]
    """Rejects a person of whom the channel knows that they do not exist."""
    submit: Callable[[ChannelRequest, Caller], Awaitable[RunRecord]]
    """Queues a run for a person; its answer is sent to them, if their channel can speak first."""


class AdminMessaging:
    def __init__(self, parts: AdminMessagingDeps, by: str) -> None:
        self._parts = parts
        self._by = by

    async def deliver(self, to: str | ChannelIdentity, text: str, *, idempotency_key: str | None) -> dict[str, Any]:
        """Send a text to a person. Return the person and the delivery ids."""
        sent = await self._parts.deliver(to, _check_text(text), _check_key(idempotency_key), self._by)
        if not sent:
            # The channel has made no parts of it; it is in the conversation all the same.
            return {"person": None, "channel": None, "deliveries": []}
        first = sent[0]
        audit.info(
            "delivery sent by operator: delivery_id=%s channel=%s actor=%s", first.delivery_id, first.channel, self._by
        )
        return {
            "person": first.owner,
            "channel": first.channel,
            "deliveries": [delivery.delivery_id for delivery in sent],
        }

    async def run(self, to: ChannelIdentity, text: str, *, idempotency_key: str | None) -> dict[str, Any]:
        """Run the target for a person in the background and return the run. The same key returns the same run."""
        parts = self._parts
        if to.channel not in parts.channels:
            raise InvalidRequestError(f"The host has no channel named {to.channel!r}.", param="to")
        key, said = _check_key(idempotency_key), _check_text(text)
        await parts.check(to)
        run_id = parts.ids.new("run") if key is None else f"run_{_digest(to, key)}"
        request = ChannelRequest(channel=to.channel, input=said, background=True, run_id=run_id)
        # Written first: what an operator has asked for is in the log, whatever becomes of it.
        async with parts.store.transaction() as transaction:
            transaction.add_audit(
                AuditLine(at=parts.clock.now(), owner="", subject=run_id, action="run_requested", by=self._by)
            )
        audit.info("run requested by operator: run_id=%s channel=%s actor=%s", run_id, to.channel, self._by)
        try:
            record = await parts.submit(request, Caller(identity=to))
        except RunExistsError:
            if key is None:
                raise
            return {"run_id": run_id, "person": None, "existed": True}
        return {"run_id": record.run_id, "person": record.owner, "existed": False}


def require_messaging(parts: AdminMessagingDeps | None) -> AdminMessagingDeps:
    """Return the parts. Raise without a host, because then nothing can be sent and no target runs."""
    if parts is None:
        raise NotFoundError("Sending messages and running the target require a running host.", code="no_host")
    return parts


def _check_text(text: str) -> str:
    if not text.strip():
        raise InvalidRequestError("The text is empty.", param="text")
    return text


def _check_key(key: str | None) -> str | None:
    if key is not None and not 0 < len(key) <= _MAX_KEY_LENGTH:
        raise InvalidRequestError(
            f"An idempotency key must have 1 to {_MAX_KEY_LENGTH} characters.", param="idempotency_key"
        )
    return key


def _digest(to: ChannelIdentity, key: str) -> str:
    return digest(f"{len(to.channel)}:{to.channel}:{len(to.native_id)}:{to.native_id}:{key}")[:_DIGITS]
