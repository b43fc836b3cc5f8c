"""The fake of Letterbox, and the contract of chat channels."""

from collections.abc import Mapping
from typing import Any

import msgspec

from frontdesk_testing import ChatContract, ChatPlatformBase, PlatformCall, PlatformEvent
from tests.chat.letterbox.channel import LetterboxChannel

SECRET = "the secret of letterbox"


class Letterbox(ChatPlatformBase):
    def encode(self, event: PlatformEvent) -> bytes:
        letter = {"id": event.event_id, "at": event.at, "sender": event.chat_id, "text": event.text}
        return msgspec.json.encode(letter)

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        return {"letterbox-secret": SECRET}

    def answer(self, call: PlatformCall) -> Any:
        if call.path == "me":
            return {}
        letter = call.json()
        return {"id": self.add_message(letter["to"], key=letter["key"], text=letter["text"])}


class TestLetterbox(ChatContract):
    has_groups = has_threads = has_albums = has_notices = takes_files = sends_files = shows_live = False
    has_buttons = signs_bodies = signs_times = False

    def platform(self) -> Letterbox:
        return Letterbox()

    def channel(self, platform: Any, **settings: Any) -> LetterboxChannel:
        return LetterboxChannel(url=platform.url, secret=SECRET, allow_private=True, **settings)
