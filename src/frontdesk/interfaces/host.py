"""The interface of other components, such as linkers, that contribute routes or pages to a host."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence

from starlette.routing import BaseRoute

from frontdesk.interfaces.abilities import linker_ability
from frontdesk.models.base import FrozenStruct

HostCallback = Callable[[], Awaitable[None]]


class HostContribution(FrozenStruct, frozen=True, kw_only=True):
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


@linker_ability
class ContributesToHost(ABC):
    """A linker that contributes more to its host than links."""

    @abstractmethod
    def contribute_to_host(self) -> HostContribution:
        """Return the contribution. Called once, when the host is built, after `use`."""
