"""Deliveries to platforms."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from frontdesk.data.delivery import Delivery, DeliveryStatus, Destination


class Outbox(Protocol):
    """Deliveries and how far they are."""

    async def get(self, delivery_id: str) -> Delivery | None: ...

    async def by_receipt(self, channel: str, receipt: str) -> Delivery | None:
        """Return the delivery of a channel that has a receipt, which is not empty; of several, the newest."""
        ...

    async def open(self, destination: Destination, *, limit: int = 20) -> Sequence[Delivery]:
        """List the deliveries to a destination that have not ended, in their order."""
        ...

    async def waiting(
        self, channel: str, *, now: float, longest: float | None = None, after: str | None = None, limit: int = 500
    ) -> Sequence[str]:
        """List the places of a channel whose first open delivery is due and nobody's, in an order that stays.

        One that is due more than `longest` seconds from now is among them: its time may come from a clock that was set
        back. `after` is the last place seen.
        """
        ...

    async def find(
        self,
        *,
        status: DeliveryStatus | None = None,
        channel: str | None = None,
        owner: str | None = None,
        run_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> Sequence[Delivery]:
        """List deliveries of which all that is given is true, newest first; `before` is the id of the last one seen."""
        ...

    async def counts(self) -> Mapping[DeliveryStatus, int]:
        """Count the deliveries of each status."""
        ...


class OutboxWrites(Protocol):
    """Write deliveries."""

    def add_delivery(self, delivery: Delivery, *, once: bool = False) -> None:
        """Keep a delivery; one that is known stays as it is, or fails the transaction with `DeliveryExistsError`."""
        ...

    def change_delivery(self, delivery: Delivery, *, hold: float = 0.0) -> None:
        """Note how far a delivery is; while it is being sent, it is the sender's for `hold` seconds.

        One that has changed since it was read fails the transaction with `LostDeliveryError`.
        """
        ...

    def end_rest(self, delivery: Delivery, *, error: str, at: float) -> None:
        """Give up the parts that follow a dead one in the same answer."""
        ...
