"""Flood control: the rate limits of a bot."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk_testing.telegram.errors import too_many_requests
from frontdesk_testing.telegram.records import Chat

Window = tuple[int, float]
"""A number of messages, and the seconds in which they may be sent."""
_Key = tuple[int, int | str]


@dataclass(frozen=True, slots=True)
class FloodLimits:
    """The limits of a bot. The defaults are the platform's."""

    private: Window = (1, 1.0)
    group: Window = (20, 60.0)
    overall: Window = (30, 1.0)
    webhook: Window = (1, 1.0)
    """The rate at which a webhook may be set."""


class FloodControl:
    """Counts the messages of bots."""

    def __init__(self, limits: FloodLimits | None) -> None:
        self.limits = limits
        self._sent: dict[_Key, deque[float]] = {}

    def count(self, bot_id: int, chat: Chat, now: float, messages: int = 1) -> None:
        """Count messages to a chat, or refuse them. Refused messages do not count."""
        if self.limits is None:
            return
        windows: dict[_Key, Window] = {(bot_id, "all"): self.limits.overall}
        windows[bot_id, chat.id] = self.limits.private if chat.kind == "private" else self.limits.group
        self._count(windows, now, messages)

    def count_webhook(self, bot_id: int, now: float) -> None:
        """Count a call of `setWebhook`, or refuse it."""
        if self.limits is not None:
            self._count({(bot_id, "webhook"): self.limits.webhook}, now, 1)

    def _count(self, windows: Mapping[_Key, Window], now: float, messages: int) -> None:
        wait = max(self._wait(key, window, now) for key, window in windows.items())
        if wait > 0:
            raise too_many_requests(math.ceil(wait))
        for key in windows:
            self._sent.setdefault(key, deque()).extend([now] * messages)

    def _wait(self, key: _Key, window: Window, now: float) -> float:
        number, seconds = window
        sent = self._sent.setdefault(key, deque())
        while sent and sent[0] <= now - seconds:
            sent.popleft()
        # An album may go over the limit; it is what comes after it that waits.
        return 0.0 if len(sent) < number else sent[len(sent) - number] + seconds - now
