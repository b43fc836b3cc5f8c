"""The contract of HTTP channels, tested over HTTP against a served host.

    class TestMyChannel(ChannelContract):
        path = "/mine"

        def channel(self, **settings):
            return MyChannel(**{name: value for name, value in settings.items() if value is not None})

        def message(self, text):
            return {"text": text}

        ...

`ChannelDriver` has all that a subclass defines.
"""

import pytest

pytest.register_assert_rewrite("frontdesk_testing.channel_bodies", "frontdesk_testing.channel_callers")

from frontdesk_testing.channel_bodies import Bodies  # noqa: E402
from frontdesk_testing.channel_callers import Callers  # noqa: E402


class ChannelContract(Bodies, Callers):
    """The contract of an HTTP channel."""

    pytestmark = pytest.mark.asyncio
