"""Contributions to a host by something that is no channel: a linker, or a page of its own."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

from starlette.routing import BaseRoute

from frontdesk.data.noun import Value

HostCallback = Callable[[], Awaitable[None]]


class HostContribution(Value, frozen=True, kw_only=True):
    """Routes, callbacks and checks that are added to a host."""

    name: str
    """The name of what adds them, for findings and for the log of start-up and shut-down."""
    path: str = ""
    """The path below which the routes are served; no channel may have the same."""
    routes: Sequence[BaseRoute] = ()
    on_startup: Sequence[HostCallback] = ()
    """Called once a process, after the store is open and before the channels start; in workers too."""
    on_serving: Sequence[HostCallback] = ()
    """Called after the channels have started to listen, and only where the host is served."""
    on_shutdown: Sequence[HostCallback] = ()
    """Called once a process, after the channels and before the store closes."""
    findings: Sequence[str] = ()
    """Mistakes, a line each; the host is not built."""
    warnings: Sequence[str] = ()
    """Warnings, a line each: it works, but not as well as it could."""


@runtime_checkable
class ContributesToHost(Protocol):
    """A linker that adds more to its host than links."""

    def contribute_to_host(self) -> HostContribution:
        """Return what it adds; called once, when the host is built, after `use`."""
        ...
