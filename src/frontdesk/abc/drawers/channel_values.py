"""Values that channels keep."""

from typing import Protocol

from frontdesk.data.channel_value import SealedValue, ValuePlace


class ChannelValues(Protocol):
    """Values by channel, storage and key. One that has expired is not there."""

    async def get(self, place: ValuePlace, *, now: float) -> SealedValue | None: ...

    async def set(self, place: ValuePlace, value: SealedValue) -> None:
        """Keep a value, in place of the one that is there."""
        ...

    async def compare_and_set(
        self, place: ValuePlace, expected_version: str | None, value: SealedValue, *, now: float
    ) -> bool:
        """Keep a value if the one that is there has this version, or with `None` if there is none; tell whether so.

        Of any number at once that expect the same, over all processes that share the store, one succeeds.
        """
        ...

    async def delete(self, place: ValuePlace) -> None: ...
