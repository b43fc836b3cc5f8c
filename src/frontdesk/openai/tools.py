"""Converts OpenAI tool definitions, and items of calls made by the model's service, to framework types. Pure.

These calls are history and never run again, regardless of the sender. A content keeps its original item, so that it is
converted back to the same item.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from agent_framework import Content
from agent_framework.exceptions import ContentError

from frontdesk.errors import InvalidRequestError
from frontdesk.identifiers import digest
from frontdesk.models.request import ClientTool

Contents = list[Content]
_ITEM = "openai_item"
_PICTURE = re.compile(r"https?://[^\s]+\Z|data:image/[\w.+-]+;base64,", re.ASCII)

_MAX_ENTRIES = 10_000
"""The number of entries of an item's lists that are read; the item itself keeps all."""

OUTPUTS = frozenset({"shell_call_output", "local_shell_call_output", "computer_call_output", "apply_patch_call_output"})
"""The types of items that are the outcomes of calls in other items."""


def tool_contents(item: Mapping[str, Any]) -> Contents | None:
    """Return an item's contents for a target, or `None` if it is not a tool item."""
    kind = item.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return None
    contents = reader(item)
    for content in contents[:1]:
        content.additional_properties[_ITEM] = dict(item)
    return contents


def original_item(content: Content) -> dict[str, Any] | None:
    """Return the item that a content was read from, if any."""
    item: Any = content.additional_properties.get(_ITEM)
    return cast("dict[str, Any]", item) if isinstance(item, dict) else None


def _id(item: Mapping[str, Any]) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _status(item: Mapping[str, Any]) -> str | None:
    status = item.get("status")
    return status if isinstance(status, str) else None


def _entries(value: Any) -> Sequence[Mapping[str, Any]]:
    given = cast("list[Any]", value)[:_MAX_ENTRIES] if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", entry) for entry in given if isinstance(entry, Mapping)]


def _web_search(item: Mapping[str, Any]) -> Contents:
    call = Content.from_search_tool_call(
        _id(item), tool_name="web_search", arguments=_object(item.get("action")), status=_status(item)
    )
    return [call]


def _file_search(item: Mapping[str, Any]) -> Contents:
    arguments: dict[str, Any] = {"queries": item.get("queries")}
    contents = [
        Content.from_search_tool_call(_id(item), tool_name="file_search", arguments=arguments, status=_status(item))
    ]
    if item.get("results"):
        contents.append(Content.from_search_tool_result(_id(item), tool_name="file_search", result=item["results"]))
    return contents


def _code_interpreter(item: Mapping[str, Any]) -> Contents:
    code = [Content.from_text(str(item.get("code") or ""))]
    contents = [Content.from_code_interpreter_tool_call(call_id=_id(item), inputs=code, status=_status(item))]
    outputs = [_code_output(output) for output in _entries(item.get("outputs"))]
    shown = [output for output in outputs if output is not None]
    if shown:
        contents.append(Content.from_code_interpreter_tool_result(call_id=_id(item), outputs=shown))
    return contents


def _code_output(output: Mapping[str, Any]) -> Content | None:
    logs = output.get("logs")
    return _picture(output.get("url")) if logs is None else Content.from_text(str(logs))


def _picture(url: Any) -> Content | None:
    """Return an image from a URL or data URL, or None if it is neither."""
    if not isinstance(url, str) or not _PICTURE.match(url):
        return None
    try:
        return Content.from_uri(url, media_type="image/png")
    except (ContentError, ValueError):
        return None


def _shell(item: Mapping[str, Any]) -> Contents:
    action = _object(item.get("action")) or {}
    given: Any = action.get("commands") or action.get("command") or []
    listed = cast("list[Any]", given)[:_MAX_ENTRIES] if isinstance(given, list) else []
    commands = [given] if isinstance(given, str) else [str(command) for command in listed]
    return [Content.from_shell_tool_call(call_id=_id(item), commands=commands, status=_status(item))]


def _shell_output(item: Mapping[str, Any]) -> Contents:
    given: Any = item.get("output")
    if isinstance(given, str):
        outputs = [Content.from_shell_command_output(stdout=given)]
    else:
        outputs = [_command_output(output) for output in _entries(given)]
    return [Content.from_shell_tool_result(call_id=_id(item), outputs=outputs)]


def _command_output(output: Mapping[str, Any]) -> Content:
    outcome = _object(output.get("outcome")) or {}
    code: Any = outcome.get("exit_code")
    return Content.from_shell_command_output(
        stdout=str(output.get("stdout") or ""),
        stderr=str(output.get("stderr") or ""),
        exit_code=code if isinstance(code, int) else None,
        timed_out=outcome.get("type") == "timeout",
    )


def _computer(item: Mapping[str, Any]) -> Contents:
    action = _object(item.get("action"))
    actions = [dict(entry) for entry in _entries(item.get("actions"))] or ([dict(action)] if action else [])
    call = Content("computer_tool_call", id=_id(item), call_id=_id(item), actions=actions, status=_status(item))
    # One that asks for the user's word would be run by the framework.
    call.informational_only = True
    return [call]


def _computer_output(item: Mapping[str, Any]) -> Contents:
    output = _object(item.get("output")) or {}
    screenshot = _picture(output.get("image_url"))
    return [Content("computer_tool_result", call_id=_id(item), screenshot=screenshot, status=_status(item))]


def _nothing(item: Mapping[str, Any]) -> Contents:
    return []


def _object(value: Any) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


_READERS: dict[str, Callable[[Mapping[str, Any]], Contents]] = {
    "web_search_call": _web_search,
    "file_search_call": _file_search,
    "code_interpreter_call": _code_interpreter,
    "shell_call": _shell,
    "shell_call_output": _shell_output,
    "local_shell_call": _shell,
    "local_shell_call_output": _shell_output,
    "computer_call": _computer,
    "computer_call_output": _computer_output,
    # The tools of a server, and patches: a target gets nothing from them that it could use.
    "mcp_list_tools": _nothing,
    "apply_patch_call": _nothing,
    "apply_patch_call_output": _nothing,
}

TOOL_KINDS = frozenset(_READERS)
"""The types of the items that are read here."""


MAX_TOOLS = 128
"""The most tools of a request, as the API has it; what the framework does with them grows with their square."""

_MAX_NAME_LENGTH = 64
_DIGITS = 8
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IGNORED = (
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "image_generation",
    "tool_search",
)
"""The tools of OpenAI's own that clients send unasked, and that an answer can do without."""


class ToolRef(NamedTuple):
    """A tool under the client's name."""

    kind: str
    name: str
    namespace: str | None = None


class GivenTool(NamedTuple):
    body: dict[str, Any]
    where: str
    namespace: str | None = None
    about: str = ""
    """The description of its namespace."""


def function_name(name: str, namespace: str | None) -> str:
    if not namespace:
        return name
    joined = f"{namespace}__{name}"
    if len(joined) <= _MAX_NAME_LENGTH:
        return joined
    return f"{joined[: _MAX_NAME_LENGTH - _DIGITS - 1]}-{digest(joined)[:_DIGITS]}"


def list_served(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [tool for tool in tools if tool.get("type") not in _IGNORED]


def merge(*given: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge successive lists of tools. For duplicate names the last one wins."""
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    for tools in given:
        for tool in tools:
            latest[str(tool.get("type")), str(tool.get("name"))] = tool
    return list(latest.values())


def flat(tools: Sequence[Any], where: str) -> Iterator[GivenTool]:
    """Yield the tools of a request, including those in namespaces."""
    for place, tool in enumerate(tools):
        at = f"{where}[{place}]"
        if not isinstance(tool, dict):
            raise InvalidRequestError("A tool must be an object.", param=at)
        body = cast("dict[str, Any]", tool)
        if body.get("type") == "namespace":
            yield from _inside(body, at)
        else:
            yield GivenTool(body, at)


def _inside(namespace: dict[str, Any], where: str) -> Iterator[GivenTool]:
    name, about, tools = namespace.get("name"), namespace.get("description"), namespace.get("tools")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError("Invalid namespace name.", param=f"{where}.name")
    if not isinstance(tools, list) or not tools:
        raise InvalidRequestError("A namespace requires a list of `tools`.", param=f"{where}.tools")
    for place, tool in enumerate(cast("list[Any]", tools)):
        at = f"{where}.tools[{place}]"
        if not isinstance(tool, dict):
            raise InvalidRequestError("A tool must be an object.", param=at)
        yield GivenTool(cast("dict[str, Any]", tool), at, name, about if isinstance(about, str) else "")


def tool_refs(tools: Sequence[Mapping[str, Any]]) -> dict[str, ToolRef]:
    refs: dict[str, ToolRef] = {}
    for given in flat(tools, "tools"):
        name = str(given.body.get("name"))
        refs[function_name(name, given.namespace)] = ToolRef(str(given.body.get("type")), name, given.namespace)
    return refs


_INPUT = "input"
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {_INPUT: {"type": "string"}},
    "required": [_INPUT],
    "additionalProperties": False,
}
_SYNTAXES = ("lark", "regex")
_decoder = msgspec.json.Decoder()


def custom_tool(name: str, description: str | None, form: Mapping[str, Any] | None, where: str) -> ClientTool:
    """Create the function that represents a free-text tool. Its grammar is added to its description."""
    parts = [description or "", _grammar(form or {"type": "text"}, where)]
    return ClientTool(name=name, description="\n\n".join(filter(None, parts)), parameters=_PARAMETERS)


def _grammar(form: Mapping[str, Any], where: str) -> str:
    kind = form.get("type")
    if kind == "text":
        return ""
    # One API has the grammar beside the type, the other below it.
    inner: Any = form.get("grammar") or form
    if kind != "grammar" or not isinstance(inner, Mapping):
        raise InvalidRequestError("The format of a tool must be a text or a grammar.", param=f"{where}.format")
    grammar = cast("Mapping[str, Any]", inner)
    syntax, definition = grammar.get("syntax"), grammar.get("definition")
    if syntax not in _SYNTAXES or not isinstance(definition, str):
        message = "A grammar requires a `definition` and the `syntax` lark or regex."
        raise InvalidRequestError(message, param=f"{where}.format")
    return f"The {_INPUT} has to match this {syntax} grammar:\n{definition}"


def input_arguments(text: str) -> str:
    return msgspec.json.encode({_INPUT: text}).decode()


def parse_input(arguments: str) -> str:
    """Return the input text from the arguments, or all arguments if the model did not use the parameter."""
    try:
        given: Any = _decoder.decode(arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return arguments
    text: Any = cast("dict[str, Any]", given).get(_INPUT) if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments
