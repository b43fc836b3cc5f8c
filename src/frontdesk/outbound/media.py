"""Fetches images and files by URL for requests, if enabled for the channel."""

import base64
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from agent_framework import Content

from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import InvalidRequestError, TooManyRequestsError
from frontdesk.errors.sizes import format_size
from frontdesk.outbound.client import ANY_TYPE, GuardedClient
from frontdesk.outbound.network import AllowedHosts

_MAX_URLS = 20


class MediaFetcher:
    """Replaces URLs with their data, through the guarded client only."""

    def __init__(self, allowed_hosts: tuple[str, ...], *, allow_http: bool, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._client = GuardedClient(allowed_hosts=allowed_hosts, allow_http=allow_http, max_bytes=max_bytes)

    async def fill(self, places: Sequence[tuple[Content, str]], *, caller: Hashable) -> None:
        """Replace every URL with the data fetched for the caller. Each content comes with its path in the request."""
        if len(places) > _MAX_URLS:
            raise InvalidRequestError(f"A request can have at most {_MAX_URLS} URLs.", param=places[_MAX_URLS][1])
        left = self._max_bytes
        # One after another, because what is held in memory for a request has to have an end.
        for content, where in places:
            left -= await self._fill(content, where, caller)
            if left < 0:
                raise InvalidRequestError(
                    f"The content of the URLs exceeds {format_size(self._max_bytes)}.",
                    code="url_too_large",
                    param=where,
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


class FetchingSettings(TypedDict, total=False):
    """The keyword arguments of a channel that fetches URLs."""

    fetch_urls: bool
    fetch_from: Sequence[str]
    fetch_http: bool
    max_fetched_bytes: int


@dataclass(frozen=True, kw_only=True)
class FetchingConfig:
    """The policy for fetching images and files that a request references by URL."""

    fetch_urls: bool = False
    fetch_from: Sequence[str] = ()
    fetch_http: bool = False
    max_fetched_bytes: int = 20 * 1024 * 1024

    def fetcher(self) -> MediaFetcher | None:
        if not self.fetch_urls:
            return None
        return MediaFetcher(tuple(self.fetch_from), allow_http=self.fetch_http, max_bytes=self.max_fetched_bytes)

    def list_fetching_findings(self) -> list[str]:
        wrong = ["max_fetched_bytes must be positive"] if self.max_fetched_bytes <= 0 else []
        if (self.fetch_from or self.fetch_http) and not self.fetch_urls:
            wrong.append("fetch_from and fetch_http have no effect without fetch_urls=True")
        try:
            AllowedHosts(tuple(self.fetch_from))
        except ValueError as error:
            wrong.append(str(error).replace("allowed_hosts", "fetch_from"))
        return wrong
