"""Settings of the MCP channel, and the tools that it shows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast
from urllib.parse import urlsplit

import msgspec

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.types import require_schema
from frontdesk.http.channel import StreamingConfig, StreamingSettings
from frontdesk.models.base import FrozenStruct
from frontdesk.models.settings import count_finding

CALLER, BODY = "frontdesk.caller", "frontdesk.body"
"""The keys in the ASGI scope of the verified caller, and of the body as JSON."""
ToolTasks = Literal["auto", "never", "always"]

MAX_TOOLS = 100
MAX_DESCRIPTION_LENGTH = 8_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class MCPTool(FrozenStruct, frozen=True, kw_only=True):
    """A tool that runs the target. Several tools can show one target, and its `run_hook` reads which one was called."""

    name: str
    description: str
    target: str | None = None
    """The name of the target that it runs. The default is the target of the host."""
    attributes: Mapping[str, Any] = {}
    """Attributes of every request of the tool, for hooks and context providers. `tool` is always its name."""
    input_schema: Mapping[str, Any] | None = None
    """The JSON schema of its arguments. By default `message` and `session`, or the input type of a workflow."""
    title: str | None = None
    """The name for people."""
    tasks: ToolTasks = "auto"
    """Whether a call becomes a task: if it takes long, never, or always. Needs `tasks` of the channel."""

    def findings(self) -> list[str]:
        """Return the validation findings of the tool, one line each."""
        wrong: list[str] = []
        if not _NAME.fullmatch(self.name):
            wrong.append("name must have 1 to 64 letters, digits, _, - or .")
        if not self.description.strip():
            wrong.append("description is missing: a model chooses tools by it")
        elif len(self.description) > MAX_DESCRIPTION_LENGTH:
            wrong.append(f"description must have at most {MAX_DESCRIPTION_LENGTH} characters")
        if self.tasks not in ("auto", "never", "always"):
            wrong.append(f"tasks must be 'auto', 'never' or 'always', not {self.tasks!r}")
        return [
            f"tool {self.name!r}: {line}" for line in (*wrong, *self._schema_findings(), *self._attribute_findings())
        ]

    def _schema_findings(self) -> list[str]:
        given: Any = self.input_schema
        if given is None:
            return []
        if not isinstance(given, Mapping) or cast("Mapping[str, Any]", given).get("type") != "object":
            return ["input_schema must be a JSON schema with the type 'object'"]
        try:
            require_schema(dict(cast("Mapping[str, Any]", given)), "input_schema")
            msgspec.json.encode(given)
        except InvalidRequestError as error:
            return [f"{error.param}: {error.message}"]
        except (TypeError, ValueError, RecursionError) as error:
            return [f"input_schema can't be written as JSON: {error}"]
        return []

    def _attribute_findings(self) -> list[str]:
        try:
            msgspec.json.encode(dict(self.attributes))
        except (TypeError, ValueError, RecursionError) as error:
            return [f"attributes can't be written as JSON: {error}"]
        return []


class MCPSettings(StreamingSettings, total=False):
    tools: Sequence[MCPTool] | None
    stateless: bool | None
    tasks: bool
    approval_url: str | None
    task_after_seconds: float
    max_sessions: int
    max_sessions_per_caller: int
    session_idle_seconds: float
    question_seconds: float


@dataclass(frozen=True, kw_only=True)
class MCPConfig(StreamingConfig):
    max_body_bytes: int = 4 * 1024 * 1024
    body_timeout: float = 30.0
    tools: Sequence[MCPTool] | None = None
    stateless: bool | None = None
    tasks: bool = True
    approval_url: str | None = None
    task_after_seconds: float = 2.0
    max_sessions: int = 1_000
    max_sessions_per_caller: int = 100
    session_idle_seconds: float = 1_800.0
    question_seconds: float = 300.0

    positive: ClassVar[tuple[str, ...]] = (
        *StreamingConfig.positive,
        "task_after_seconds",
        "session_idle_seconds",
        "question_seconds",
    )

    def own_findings(self) -> list[str]:
        counts = {"max_sessions": self.max_sessions, "max_sessions_per_caller": self.max_sessions_per_caller}
        wrong = [finding for name, value in counts.items() if (finding := count_finding(name, value))]
        return [*wrong, *self._tool_findings(), *self._url_findings(), *super().own_findings()]

    def _tool_findings(self) -> list[str]:
        if self.tools is None:
            return []
        tools: list[Any] = list(self.tools)
        if not tools or len(tools) > MAX_TOOLS:
            return [f"tools must have 1 to {MAX_TOOLS} tools, or be None for one tool made from the target"]
        names = [tool.name for tool in tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        return [
            *(f"tools: the name {name!r} is used twice" for name in twice),
            *(finding for tool in tools for finding in tool.findings()),
            *(
                f"tool {tool.name!r}: tasks='always' needs tasks=True of the channel"
                for tool in tools
                if tool.tasks == "always" and not self.tasks
            ),
        ]

    def _url_findings(self) -> list[str]:
        if self.approval_url is None:
            return []
        parts = urlsplit(self.approval_url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            return [f"approval_url must be the http(s) URL of a page, not {self.approval_url!r}"]
        return []
