"""The contract between the host and a channel that shows an answer while it is written."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from frontdesk.data.delivery import DestinationKind
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Value

LiveMode = Literal["auto", "always", "off"]
"""Whether answers are shown while they are written: `auto` does not where a `response_hook` could change what is shown,
`always` does there too, and `off` never does."""


class LiveTerms(Value, frozen=True, kw_only=True):
    """The way in which a channel shows an answer while it is written."""

    interval: float = 1.0
    """The seconds between two updates, at least."""
    longest: float = 600.0
    """For how many seconds a message is updated; after that the answer is only completed."""
    timeout: float = 10.0
    """The seconds that a call may take. After that nobody knows what becomes of it, and the message is given up."""
    direct: bool = True
    """Whether answers are shown in direct chats."""
    group: bool = True
    """Whether they are shown in groups."""

    def findings(self) -> list[str]:
        """List what is wrong with the terms, a line each."""
        names = ("interval", "longest", "timeout")
        return [f"live_terms: {name} must be above 0" for name in names if not getattr(self, name) > 0]


class LivePlace(Value, frozen=True, kw_only=True):
    """The place at which an answer is shown."""

    identity: ChannelIdentity
    conversation_id: str | None
    """The conversation to be answered; the person's direct chat without one."""
    reference: Mapping[str, Any] = {}
    """The platform's own reference to that conversation: see `ChannelRequest.reference`."""
    details: Mapping[str, Any] = {}
    """The channel's notes on the request, such as the message that is answered."""
    kind: DestinationKind = "direct"


ToolDetail = Literal["hidden", "names", "full"]
"""The part that a channel shows of the tools of an answer: nothing, their names, or arguments and results too."""
ToolState = Literal["running", "done", "failed", "stopped"]


class ToolUse(Value, frozen=True, kw_only=True):
    """A tool call of an answer, as far as a channel shows it."""

    call_id: str
    name: str
    state: ToolState = "running"
    seconds: float | None = None
    """The seconds that it took, if that was seen."""
    arguments: str = ""
    """The arguments as JSON, only for a channel that shows them; a long text is cut, and ends with `…` then."""
    result: str = ""
    """The result as text, likewise."""


class Citation(Value, frozen=True, kw_only=True):
    """A source that an answer cites."""

    title: str
    url: str = ""
    """Its address, http or https; empty for a source that has none."""


class LiveView(Value, frozen=True, kw_only=True):
    """An answer as far as it is written."""

    text: str
    """All of the text."""
    new_from: int = 0
    """The start of the part that was not shown before, for platforms that append; 0 if everything is new."""
    sequence: int = 0
    """The number of the view. It begins with 0, once more if another process takes the answer over."""
    tools: tuple[ToolUse, ...] = ()
    """The tool calls so far, for a channel that is `ShowsNotes`; there may be some before there is a text."""
    citations: tuple[Citation, ...] = ()
    """The sources that are cited so far, likewise."""


@runtime_checkable
class StreamsReplies(Protocol):
    """A channel that can show an answer while it is written.

    A call raises a `PushError`, as `push_part` does. None of its failures is one of the answer: the whole text is sent
    as a delivery, which replaces the messages that were shown.
    """

    live_terms: LiveTerms

    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str | None:
        """Send the first message of an answer; return its handle, or `None` if it can't be replaced, such as a draft.

        The key is the same however often the answer is tried.
        """
        ...

    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Show more of an answer; return its handles, with new ones at the end for the messages that it needs besides.

        The key of a message that is sent here should follow from the first handle and its number.
        """
        ...


@runtime_checkable
class ShowsNotes(Protocol):
    """A channel that shows beside an answer the tools that it uses, and the sources that it cites.

    Its views have them while the answer is written; `kit.framework.notes` reads them from a whole result.
    """

    @property
    def tool_detail(self) -> ToolDetail:
        """Return how much it shows of the tools; nothing of the rest is kept."""
        ...


@runtime_checkable
class SupportsLiveLookup(Protocol):
    """A channel whose platform can be asked what became of the first message of an answer."""

    async def find_live(self, place: LivePlace, key: str) -> str | None:
        """Return the handle of a message that arrived; `None` when the platform never got it."""
        ...


@runtime_checkable
class ShowsTyping(Protocol):
    """A channel that shows that an answer is being written."""

    typing_interval: float | None
    """After how many seconds the platform has to be told again; `None` tells it once."""

    async def show_typing(self, place: LivePlace) -> None:
        """Show it."""
        ...

    async def end_typing(self, place: LivePlace) -> None:
        """End it, where that does not happen by itself."""
        ...
