"""Calls that a model's service has made itself, and their outcomes, from items to framework contents. Pure.

They are history: nothing of them is run again, whoever sends them. A content keeps the item that it was read from, so
that it becomes the same item again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from agent_framework import Content
from agent_framework.exceptions import ContentError

Contents = list[Content]
_ITEM = "openai_item"
_PICTURE = re.compile(r"https?://[^\s]+\Z|data:image/[\w.+-]+;base64,", re.ASCII)

_MOST = 10_000
"""The number of entries of an item's lists that are read; the item itself keeps all."""

OUTPUTS = frozenset({"shell_call_output", "local_shell_call_output", "computer_call_output", "apply_patch_call_output"})
"""The types of items that are the outcomes of calls in other items."""


def tool_contents(item: Mapping[str, Any]) -> Contents | None:
    """Return what an item says to a target; `None` if it is no item of this kind."""
    kind = item.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return None
    contents = reader(item)
    for content in contents[:1]:
        content.additional_properties[_ITEM] = dict(item)
    return contents


def original_item(content: Content) -> dict[str, Any] | None:
    """Return the item that a content was read from, if it was read from one."""
    item: Any = content.additional_properties.get(_ITEM)
    return cast("dict[str, Any]", item) if isinstance(item, dict) else None


def _id(item: Mapping[str, Any]) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _status(item: Mapping[str, Any]) -> str | None:
    status = item.get("status")
    return status if isinstance(status, str) else None


def _entries(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a list, and nothing for anything else."""
    given = cast("list[Any]", value)[:_MOST] if isinstance(value, list) else []
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
    """Return a picture by its address or its data; nothing for what is neither."""
    if not isinstance(url, str) or not _PICTURE.match(url):
        return None
    try:
        return Content.from_uri(url, media_type="image/png")
    except (ContentError, ValueError):
        return None


def _shell(item: Mapping[str, Any]) -> Contents:
    action = _object(item.get("action")) or {}
    given: Any = action.get("commands") or action.get("command") or []
    listed = cast("list[Any]", given)[:_MOST] if isinstance(given, list) else []
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
