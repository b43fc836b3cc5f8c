"""What the tests of the Conversations door share."""

from typing import Any

import pytest

from tests.scenarios.conversations.desk import GUESTS


@pytest.fixture(params=GUESTS, ids=["async", "sync"])
def guest_of(request: pytest.FixtureRequest) -> Any:
    """Makes a guest for a desk: with the asynchronous client, then with the other."""
    return request.param
