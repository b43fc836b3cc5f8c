"""Keeps open the connection over which a platform sends events, and opens the next one when it ends."""

import asyncio
from collections.abc import Awaitable, Callable

from frontdesk.errors import CodecError, FrontdeskError, InvalidRequestError, PushError, RequestError
from frontdesk.kit.chat.polling import FIRST_PAUSE, LONGEST_PAUSE, Take
from frontdesk.loggers import runs as log

Listen = Callable[[Take], Awaitable[None]]

_STEADY_SECONDS = 60.0
"""After how long a connection counts as good, so that the pause after it is the first one again."""


class Listener:
    """Opens a connection, and the next one whenever it ends.

    `listen` opens one and hands its events on, until it ends. `take` stores an event; one that can't be read is logged
    and skipped, because it would come again for ever. Any other failure ends the connection, so that the platform sends
    again what was not acknowledged.
    """

    def __init__(self, channel: str, listen: Listen, take: Take) -> None:
        self._channel = channel
        self._listen = listen
        self._take = take

    async def run(self) -> None:
        """Listen until cancelled; the pause doubles with each connection that did not last."""
        loop, pause = asyncio.get_running_loop(), FIRST_PAUSE
        while True:
            began, asked = loop.time(), 0.0
            try:
                await self._listen(self._pass_on)
                log.info("the connection of %s has ended, and is opened again", self._channel)
            except FrontdeskError as error:
                if isinstance(error, (PushError, RequestError)):
                    asked = error.retry_after or 0.0
                log.warning("the connection of %s is opened again: %s", self._channel, error)
            if loop.time() - began >= _STEADY_SECONDS:
                pause = FIRST_PAUSE
            await asyncio.sleep(max(pause, asked))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _pass_on(self, event: bytes) -> None:
        try:
            await self._take(event)
        except (InvalidRequestError, CodecError) as error:
            log.error("an event of %s is passed over: %s", self._channel, error)
