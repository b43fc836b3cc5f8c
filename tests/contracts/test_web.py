"""The contract of chat channels, asked of the page."""

from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from frontdesk_testing import ChatContract, FakePlatform
from tests.contracts.web_platform import DrivenPage, FailingWebChat, drive_page


class TestWeb(ChatContract):
    # One person and the agent, and one message for each answer, however long it is.
    has_groups = False
    has_albums = False
    has_notices = False
    splits_texts = False
    # Visitors are known by a cookie, and their messages by the origin of the page.
    signs_bodies = False
    signs_times = False
    refused_statuses = (401, 403)
    # Messages are read where they are sent to.
    has_handshake = True

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return drive_page()

    def channel(self, platform: FakePlatform, **settings: Any) -> Any:
        return FailingWebChat(cast(DrivenPage, platform), **settings)
