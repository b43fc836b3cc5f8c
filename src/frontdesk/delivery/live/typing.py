"""Shows that an answer is being written, for as long as its run goes on."""

import asyncio
from collections.abc import Awaitable, Callable

from frontdesk.abc.live import LivePlace, ShowsTyping
from frontdesk.delivery.calls import call_platform
from frontdesk.errors import PushError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import deliveries as log

_TIMEOUT = 5.0
_DELAY = 0.2
"""The seconds before it is shown first: an answer that is there by then needs no sign, and no call of the platform."""


class Typing:
    """One task that renews what the platform forgets; its failures are only logged."""

    def __init__(self, name: str, channel: ShowsTyping, place: LivePlace) -> None:
        self._name = name
        self._channel = channel
        self._place = place
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to show it."""
        self._task = spawn_clean(self._renew())

    async def stop(self) -> None:
        """End it."""
        if self._task is None:
            return
        task, self._task = self._task, None
        await stopped(task)
        await self._tell(lambda: self._channel.end_typing(self._place))

    async def _renew(self) -> None:
        await asyncio.sleep(_DELAY)
        while True:
            await self._tell(lambda: self._channel.show_typing(self._place))
            if self._channel.typing_interval is None:
                return
            await asyncio.sleep(self._channel.typing_interval)

    async def _tell(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await call_platform("live answer", self._name, work, _TIMEOUT)
        except PushError as error:
            log.info("typing could not be shown on %s: %s", self._name, error.code)
