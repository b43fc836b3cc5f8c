"""The contract of chat channels, asked of the message channel and of the channel of a made-up platform."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from frontdesk_testing import ChatContract, ChatPerson, FakePlatform
from frontdesk_testing.messages import MessageChannel
from tests.chat.postbox.channel import PostboxChannel
from tests.chat.postbox.extended import PING, ExtendedPostbox, ExtendedPostboxChannel, subject
from tests.chat.postbox.platform import SECRET as POSTBOX_SECRET
from tests.chat.postbox.platform import TOKEN, Postbox
from tests.contracts.message_platform import SECRET, DrivenPlatform, drive_platform


class TestMessages(ChatContract):
    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return drive_platform()

    def channel(self, platform: FakePlatform, **settings: Any) -> MessageChannel:
        driven = cast(DrivenPlatform, platform)
        return MessageChannel(platform_url=driven.url, token=driven.token, secret=SECRET, **settings)


class TestPostbox(ChatContract):
    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return Postbox()

    def channel(self, platform: FakePlatform, **settings: Any) -> PostboxChannel:
        url = cast(Postbox, platform).url
        return PostboxChannel(url=url, token=TOKEN, secret=POSTBOX_SECRET, allow_private=True, **settings)


class TestExtendedPostbox(ChatContract):
    invoke_name = PING
    has_stop_button = True
    has_feedback = opens_chats = True

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return ExtendedPostbox()

    def channel(self, platform: FakePlatform, **settings: Any) -> ExtendedPostboxChannel:
        url = cast(Postbox, platform).url
        return ExtendedPostboxChannel(url=url, token=TOKEN, secret=POSTBOX_SECRET, allow_private=True, **settings)

    def list_verified_claims(self, who: ChatPerson) -> Mapping[str, str]:
        return {"sub": subject(who.id)}
