"""A house with its door open, and somebody at it."""

from collections.abc import AsyncIterator

import pytest

from tests.linkers.oauth.house import Browser, LinkingWorld, browser, open_house


@pytest.fixture
async def house() -> AsyncIterator[LinkingWorld]:
    async with open_house() as one:
        yield one


@pytest.fixture
async def person(house: LinkingWorld) -> AsyncIterator[Browser]:
    async with browser(house) as one:
        yield one
