"""The settings for pictures and files that a request names by their address."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from frontdesk.kit.outbound.media import MediaFetcher
from frontdesk.kit.outbound.network import AllowedHosts


@dataclass(frozen=True)
class Fetching:
    """Whether pictures and files are fetched that a request names by their address, and from where."""

    urls: bool = False
    hosts: str | Sequence[str] = ()
    http: bool = False
    max_bytes: int = 20 * 1024 * 1024

    @property
    def trusted(self) -> tuple[str, ...]:
        """Return the internal hosts that may be fetched from."""
        return (self.hosts,) if isinstance(self.hosts, str) else tuple(self.hosts)

    def fetcher(self) -> MediaFetcher | None:
        """Make what fetches them; `None` if they are not fetched."""
        if not self.urls:
            return None
        return MediaFetcher(self.trusted, allow_http=self.http, max_bytes=self.max_bytes)

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        wrong = ["max_fetched_bytes must be positive"] if self.max_bytes <= 0 else []
        if (self.hosts or self.http) and not self.urls:
            wrong.append("fetch_from and fetch_http have no effect without fetch_urls=True")
        try:
            AllowedHosts(self.trusted)
        except ValueError as error:
            wrong.append(str(error).replace("allowed_hosts", "fetch_from"))
        return wrong


NO_FETCHING: Final = Fetching()
