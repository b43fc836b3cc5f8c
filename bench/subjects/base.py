"""What a subject must say about itself.

`build_app` runs in the server's process and is the only place that may import what is measured;
the rest runs in the generator's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from bench.setting import Setting

USUAL = ("json", "stream", "fresh", "paced", "first", "turns", "memory", "idle", "import", "start")
Case = Literal["json", "stream", "fresh", "paced", "idle"]
"""json: one answer. stream: ready-made deltas without a pause. fresh: the agent builds and collects each delta.
paced: each delta waits for a turn of the event loop. idle: one delta, and then nothing for ever."""

Store = Literal["memory", "sqlite", "postgres"]


class Subject(ABC):
    name: str
    store: Store | None = None
    """What a host of ours keeps its state in."""
    runs_agents: bool = False
    """Whether it runs the framework's own agent without a host."""
    measures: tuple[str, ...] = USUAL
    """What is measured if nothing else is asked for."""
    python: str = ""
    """Another interpreter for the server, for a peer that lives in an environment of its own."""
    requires: tuple[str, ...] = ()
    """The packages of that environment; the bench makes it."""
    peers: tuple[str, ...] = ()
    """The subjects that do the same job, and stand in the same table."""
    served: str = ""
    """In words, what `prepare_started` does."""
    plain: bool = False
    """Whether `prepare_started` is left out."""
    loop: str = "auto"
    """uvicorn's --loop."""
    headers: Mapping[str, str] = {}
    """More headers of a request, with underscores for dashes."""
    health_path: str = "/healthz"
    event_mark: bytes = b"\n\n"
    """What is counted as the end of an event."""
    idle_events: int = 2
    """How many events an idle stream has sent before it waits."""
    import_package: str = ""
    """The statement that the import target is about."""
    import_app: str = ""
    """What an app imports to be built: an `import_package` that is lazy says little."""

    @abstractmethod
    def build_app(self, setting: Setting) -> Any:
        """The ASGI app."""

    def server(self, config: Any) -> Any:
        """What serves the app."""
        from uvicorn import Server

        return Server(config)

    def prepare_started(self) -> None:
        """What the subject's own command does when the server has started."""
        return

    @abstractmethod
    def request(self, case: Case) -> tuple[str, bytes]:
        """Path and JSON body."""

    @abstractmethod
    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        """Path and JSON body of one turn; the first one of a conversation has no session id yet."""

    @abstractmethod
    def session_id_in(self, body: bytes) -> str | None:
        """The session id to send with the next turn."""
