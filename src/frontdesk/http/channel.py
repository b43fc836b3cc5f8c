"""The base class of HTTP channels: settings, access, limits and endpoints."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar

from starlette.routing import BaseRoute, Route

from frontdesk.auth.any_auth import as_auth
from frontdesk.auth.verifier import HttpVerifier, origin_findings
from frontdesk.concurrency.offload import MIN_LARGE_BYTES, off_loop
from frontdesk.errors import NotFoundError, RequestError
from frontdesk.http.bodies import MAX_VALUES
from frontdesk.http.endpoint import BodyDeadline, Handler, HttpCall, HttpEndpoint
from frontdesk.http.limits import DEFAULT_LIMITS, HttpLimits, Limiter, limit_findings
from frontdesk.http.sse import StreamTimes
from frontdesk.interfaces.argument_types import takes_settings as takes_settings
from frontdesk.interfaces.auth import Auth
from frontdesk.interfaces.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.interfaces.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.interfaces.policies import AccessPolicy, AccessSettings

T = TypeVar("T")


class HttpSettings(AccessSettings, total=False):
    """The keyword arguments of every HTTP channel."""

    auth: Auth | None
    run_hook: RunHook | None
    max_body_bytes: int
    max_body_values: int
    body_timeout: float
    allowed_origins: Sequence[str]
    limits: HttpLimits | None


class StreamingSettings(HttpSettings, total=False):
    """The keyword arguments of an HTTP channel that streams the answers of the target."""

    response_hook: ResponseHook | None
    stream_transform_hook: StreamTransformHook | None
    keep_alive: float
    send_seconds: float


@dataclass(frozen=True, kw_only=True)
class HttpConfig(AccessPolicy):
    """The values of `HttpSettings`. A subclass adds the settings of a channel and changes defaults."""

    auth: Auth | None = None
    run_hook: RunHook | None = None
    max_body_bytes: int = 32 * 1024 * 1024
    max_body_values: int = MAX_VALUES
    body_timeout: float = 60.0
    allowed_origins: Sequence[str] = ()
    limits: HttpLimits | None = DEFAULT_LIMITS

    positive: ClassVar[tuple[str, ...]] = ("max_body_bytes", "max_body_values", "body_timeout")
    """The settings that must be greater than zero."""

    def findings(self) -> list[str]:
        """Return the validation findings of all settings, one line each."""
        wrong = [f"{name} must be positive" for name in self.positive if getattr(self, name) <= 0]
        return [*wrong, *self.own_findings(), *origin_findings(self.allowed_origins), *limit_findings(self.limits)]

    def own_findings(self) -> list[str]:
        """Return the findings of the settings that a subclass adds."""
        return []


@dataclass(frozen=True, kw_only=True)
class StreamingConfig(HttpConfig):
    """The values of `StreamingSettings`."""

    response_hook: ResponseHook | None = None
    stream_transform_hook: StreamTransformHook | None = None
    keep_alive: float = StreamTimes.keep_alive
    send_seconds: float = StreamTimes.send_seconds

    @cached_property
    def streams(self) -> StreamTimes:
        return StreamTimes(self.keep_alive, self.send_seconds)

    def own_findings(self) -> list[str]:
        return self.streams.findings()


class HttpChannel(Channel):
    """Base class of HTTP channels. A subclass implements `routes` and `answer_error`."""

    context: ChannelContext
    """The API of the host. It is set before `routes` is called."""

    def __init__(self, config: HttpConfig, *, name: str, path: str) -> None:
        self.name, self.path, self.http_config = name, path, config
        self.apply_settings(config)
        self.auth = as_auth(config.auth)

    @abstractmethod
    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes below `path`. Each has an `endpoint`."""

    @abstractmethod
    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        """Send an error in the format of the protocol. `error.run` is set if the target has run."""

    def findings(self) -> list[str]:
        return self.http_config.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        config, self.context = self.http_config, context
        self.deadline = BodyDeadline(config.body_timeout)
        self.limiter = None if config.limits is None else Limiter(config.limits)
        self.verifier = HttpVerifier.for_channel(
            self.callers_of or self.name, self.auth, context, tuple(config.allowed_origins)
        )
        return ChannelContribution(routes=self.routes())

    def endpoint(self, *, runs: Collection[str] = (), **methods: Handler) -> HttpEndpoint:
        """Return the app of one path, with a handler for each method. `runs` are the methods that run the target."""
        return HttpEndpoint(
            self.verifier, self.answer_error, limiter=self.limiter, allow=self.context.allow, runs=runs, **methods
        )

    def unknown_paths(self, *bases: str) -> list[Route]:
        """Return routes that answer all other paths below `bases` with a 404 in the format of the protocol."""
        unknown = self.endpoint(**dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), _reject_path))
        return [Route(f"{base}/{{path:path}}", endpoint=unknown) for base in bases]

    async def read_body(self, call: HttpCall, decode: Callable[[bytes, int], T]) -> tuple[T, bytes]:
        """Return the decoded JSON body and its bytes. `decode` gets the bytes and `max_body_values`."""
        config = self.http_config
        raw = await call.json_body(limit=config.max_body_bytes, deadline=self.deadline)
        most = config.max_body_values
        # As `run_sized`, without a coroutine for small bodies.
        return decode(raw, most) if len(raw) <= MIN_LARGE_BYTES else await off_loop(decode, raw, most), raw


async def _reject_path(call: HttpCall) -> None:
    raise NotFoundError(f"No route for {call.scope['path']}.", code="unknown_url")
