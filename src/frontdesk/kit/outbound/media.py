"""Fetches the pictures and files that a request names by their address, where a channel is set to."""

import base64
from collections.abc import Hashable, Sequence

from agent_framework import Content

from frontdesk.errors import InvalidRequestError, TooManyRequestsError
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.media_types import ANY_TYPE
from frontdesk.kit.outbound.client import GuardedClient

_MOST = 20


class MediaFetcher:
    """Turns addresses into data, through the guarded client alone."""

    def __init__(self, allowed_hosts: tuple[str, ...], *, allow_http: bool, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._client = GuardedClient(allowed_hosts=allowed_hosts, allow_http=allow_http, max_bytes=max_bytes)

    async def fill(self, places: Sequence[tuple[Content, str]], *, caller: Hashable) -> None:
        """Put what was fetched for a caller in the place of every address; each comes with its place in the request."""
        if len(places) > _MOST:
            raise InvalidRequestError(f"A request takes {_MOST} URLs at most.", param=places[_MOST][1])
        left = self._max_bytes
        # One after another, because what is held in memory for a request has to have an end.
        for content, where in places:
            left -= await self._fill(content, where, caller)
            if left < 0:
                raise InvalidRequestError(
                    f"The URLs hold more than {self._max_bytes} bytes.", code="url_too_large", param=where
                )

    async def _fill(self, content: Content, where: str, caller: Hashable) -> int:
        try:
            fetched = await self._client.fetch(content.uri or "", caller=caller)
        except (InvalidRequestError, TooManyRequestsError) as error:
            error.param = where
            raise
        media_type = fetched.media_type or content.media_type or ANY_TYPE
        content.type = "data"
        content.media_type = media_type
        encoded = await run_sized(len(fetched.body), base64.b64encode, fetched.body)
        content.uri = f"data:{media_type};base64,{encoded.decode()}"
        return len(fetched.body)
