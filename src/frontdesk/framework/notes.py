"""Notes next to the text of an answer: tool uses and citations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from agent_framework import AgentResponseUpdate, Content, Message

from frontdesk.framework.contents import call_arguments, call_outcome
from frontdesk.framework.types import is_event
from frontdesk.framework.workflow_requests import is_request
from frontdesk.interfaces.chat import Citation, ToolDetail, ToolUse
from frontdesk.markdown.plain_text import one_line

MAX_TOOLS = 20
"""The number of tool calls of an answer that are kept: the last ones."""
MAX_CITATIONS = 20
MAX_DETAIL_LENGTH = 2_000
"""The number of characters of arguments or of a result that are kept."""
MAX_NAME_LENGTH = 80
MAX_TITLE_LENGTH = 120
MAX_URL_LENGTH = 1_000
_CUT = "…"
_SCHEMES = ("http://", "https://")


class Notes(NamedTuple):
    tools: tuple[ToolUse, ...] = ()
    citations: tuple[Citation, ...] = ()


NO_NOTES = Notes()


class LiveNotes:
    """The notes of an answer so far. Calls that the channel does not show are not stored."""

    def __init__(self, detail: ToolDetail, steady: Callable[[], float] | None = None) -> None:
        """`steady` is the clock that measures the calls, if they are observed live."""
        self._detail: ToolDetail = detail
        self._steady = steady
        self._tools: dict[str, ToolUse] = {}
        self._began: dict[str, float] = {}
        self._citations: dict[str, Citation] = {}
        self._last_call = ""

    @property
    def notes(self) -> Notes:
        return Notes(tuple(self._tools.values()), tuple(self._citations.values()))

    def add(self, update: Any) -> bool:
        """Add an update of a stream. Return True if it changed the notes."""
        if is_event(update):
            return update.type == "output" and self.add(update.data)
        if not isinstance(update, AgentResponseUpdate):
            return False
        return self.add_contents(update.contents)

    def add_contents(self, contents: Iterable[Content]) -> bool:
        """Add contents in order. Return True if they changed the notes."""
        changes = [self._add(content) for content in contents]
        return any(changes)

    def finish(self) -> None:
        """Mark calls without a result as done: tools that run elsewhere may not return one."""
        self._tools = {
            call_id: use.replace(state="done") if use.state == "running" else use
            for call_id, use in self._tools.items()
        }

    def _add(self, content: Content) -> bool:
        changed = self._cite(content)
        if self._detail == "hidden":
            return changed
        if content.type == "function_approval_request":
            # The question about it shows what is called.
            call = content.function_call
            return call is not None and self._tools.pop(str(call.call_id), None) is not None
        if content.type == "function_call" or content.type.endswith("_tool_call"):
            return self._begin(content)
        if content.type == "function_result" or content.type.endswith("_tool_result"):
            return self._end(content)
        return changed

    def _begin(self, call: Content) -> bool:
        # A later piece of a call may come without its id.
        call_id = str(call.call_id or "") or self._last_call
        if not call_id or is_request(call):
            return False
        self._last_call = call_id
        before = self._tools.get(call_id)
        if before is None:
            name = call.name or call.tool_name or call.type.removesuffix("_tool_call").replace("_", " ")
            before = ToolUse(call_id=call_id, name=one_line(name[: 2 * MAX_NAME_LENGTH])[:MAX_NAME_LENGTH])
            if self._steady is not None:
                self._began[call_id] = self._steady()
        elif self._detail != "full" or len(before.arguments) > MAX_DETAIL_LENGTH:
            return False
        arguments = _cut(before.arguments + call_arguments(call)) if self._detail == "full" else ""
        self._tools[call_id] = before.replace(arguments=arguments)
        if len(self._tools) > MAX_TOOLS:
            earliest = next(iter(self._tools))
            del self._tools[earliest]
            self._began.pop(earliest, None)
        return True

    def _end(self, result: Content) -> bool:
        call_id = str(result.call_id or "")
        use = self._tools.get(call_id)
        if use is None:
            # The call was approved in an earlier run, and its question shows what was called.
            return False
        began = self._began.get(call_id)
        seconds = None if self._steady is None or began is None else max(0.0, self._steady() - began)
        self._tools[call_id] = use.replace(
            state="failed" if result.exception else "done",
            seconds=seconds,
            result=_cut(call_outcome(result)) if self._detail == "full" else "",
        )
        return True

    def _cite(self, content: Content) -> bool:
        found = 0
        for annotation in content.annotations or ():
            citation = _citation(annotation)
            if citation is None or len(self._citations) >= MAX_CITATIONS:
                continue
            key = citation.url or citation.title
            found += key not in self._citations
            self._citations.setdefault(key, citation)
        return bool(found)


def list_notes(messages: Sequence[Message], detail: ToolDetail) -> Notes:
    notes = LiveNotes(detail)
    for message in messages:
        notes.add_contents(message.contents)
    notes.finish()
    return notes.notes


def _citation(given: Any) -> Citation | None:
    """Return the source of an annotation, or None."""
    if not isinstance(given, Mapping):
        return None
    annotation = cast("Mapping[str, Any]", given)
    if annotation.get("type") != "citation":
        return None
    url = str(annotation.get("url") or "").strip()
    if not url.lower().startswith(_SCHEMES) or len(url) > MAX_URL_LENGTH:
        url = ""
    named = annotation.get("title") or url or annotation.get("file_id") or annotation.get("tool_name") or ""
    title = one_line(str(named)[: 2 * MAX_TITLE_LENGTH])[:MAX_TITLE_LENGTH]
    return Citation(title=title, url=url) if title else None


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DETAIL_LENGTH else text[:MAX_DETAIL_LENGTH] + _CUT
