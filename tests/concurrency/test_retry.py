"""What failed because the store was away is tried again, until it is there or nobody wants it any more."""

import pytest

from frontdesk.concurrency.timeouts import until_available
from frontdesk.errors import StoreError, StoreUnavailableError


class Away:
    """A store that is away for some calls."""

    def __init__(self, calls: int, error: Exception | None = None) -> None:
        self.calls = 0
        self._away = calls
        self._error = error or StoreUnavailableError()

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._away:
            raise self._error
        return "written"


async def test_it_is_tried_until_the_store_is_there() -> None:
    store = Away(3)
    assert await until_available(store, pause=0.0) == "written"
    assert store.calls == 4


async def test_whoever_gives_up_is_told_that_the_store_is_away() -> None:
    store = Away(3)
    with pytest.raises(StoreUnavailableError):
        await until_available(store, pause=0.0, give_up=lambda: store.calls == 2)
    assert store.calls == 2


async def test_what_is_refused_is_not_tried_again() -> None:
    store = Away(1, StoreError("no"))
    with pytest.raises(StoreError):
        await until_available(store, pause=0.0)
    assert store.calls == 1
