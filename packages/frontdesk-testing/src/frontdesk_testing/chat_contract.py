"""The contract of chat channels, tested against a platform with real servers.

    class TestMyChat(ChatContract):
        def platform(self):
            return my_fake_platform()

        def channel(self, platform, **settings):
            return MyChannel(url=platform.url, **settings)

`ChatDriver` has all that a subclass defines, `FakePlatform` what its platform has to do, and
`MembershipPlatform`, `InvokingPlatform` and `StoppingPlatform` what one does besides that has `tells_membership`, an
`invoke_name` or a `has_stop_button`.
"""

import pytest

_FILES = ("chat_intake", "chat_live", "chat_membership", "chat_pushes", "chat_questions", "chat_talking", "chat_driver")
pytest.register_assert_rewrite(*(f"frontdesk_testing.{name}" for name in _FILES))

from frontdesk_testing.chat_intake import Invokes, WebhookBodies  # noqa: E402
from frontdesk_testing.chat_live import LiveMessages  # noqa: E402
from frontdesk_testing.chat_membership import Membership  # noqa: E402
from frontdesk_testing.chat_pushes import Pushes  # noqa: E402
from frontdesk_testing.chat_questions import Questions  # noqa: E402
from frontdesk_testing.chat_talking import ChatMessages  # noqa: E402


class ChatContract(ChatMessages, Questions, Pushes, LiveMessages, Membership, WebhookBodies, Invokes):
    """The contract of a chat channel."""

    pytestmark = pytest.mark.asyncio
