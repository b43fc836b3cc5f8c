"""What the tests of the Responses door share."""

from typing import Any

import pytest

from tests.scenarios.responses.customers import CUSTOMERS


@pytest.fixture(params=CUSTOMERS, ids=["async", "sync"])
def customer_of(request: pytest.FixtureRequest) -> Any:
    """Makes a customer for a desk: with the asynchronous client, then with the other."""
    return request.param
