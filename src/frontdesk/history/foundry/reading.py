"""Converts items of Foundry's response service, from any author, into framework messages. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from agent_framework import Content, Message
from agent_framework.exceptions import ContentError

from frontdesk.framework.contents import refusal
from frontdesk.history.foundry.writing import EXTRAS, OWN
from frontdesk.loggers import store as log
from frontdesk.openai.tools import OUTPUTS, tool_contents

_JOINING = frozenset({"function_call", "reasoning", "mcp_call", "custom_tool_call"})
"""Items that others write beside the message that they belong to."""
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})


def read(items: Iterable[Mapping[str, Any] | None], *, is_cut: bool = False) -> list[Message]:
    """Convert items to messages. Missing items and items of unknown types are omitted.

    With `is_cut` there are earlier items. Leading results whose calls are among those are skipped.
    """
    messages: list[Message] = []
    calls: dict[str, Content] = {}
    for item in items:
        contents = None if item is None else _contents(item, calls)
        if item is not None and contents:
            _append(messages, item, contents)
    while is_cut and messages and messages[0].role == "tool":
        del messages[0]
    return messages


def _append(messages: list[Message], item: Mapping[str, Any], contents: Sequence[Content]) -> None:
    own, role = _own(item), _role(item)
    last = messages[-1] if messages else None
    beside = last is not None and last.role == role and (item.get("type") in _JOINING or _only_thinks(last))
    if last is not None and (own.get("joins") if own else beside):
        last.contents.extend(contents)
        return
    messages.append(
        Message(
            role,
            list(contents),
            author_name=_text(own, "author_name"),
            message_id=_text(own, "message_id") or _text(item, "id"),
            additional_properties=dict(_get_mapping(own, "properties")),
        )
    )


def _only_thinks(message: Message) -> bool:
    return message.role == "assistant" and all(content.type == "text_reasoning" for content in message.contents)


def _own(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return _get_mapping(item, OWN)


def _get_mapping(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner: Any = value.get(name)
    return cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {}


def _text(value: Mapping[str, Any], name: str) -> str | None:
    inner = value.get(name)
    return inner if isinstance(inner, str) else None


def _role(item: Mapping[str, Any]) -> str:
    own = _own(item).get("role")
    if own in ("user", "assistant", "system", "tool"):
        return str(own)
    kind = item.get("type")
    if kind in ("message", None):
        return _ROLES.get(str(item.get("role")), "user")
    if kind == "mcp_approval_response":
        return "user"
    return "tool" if kind in _OUTPUTS else "assistant"


def _contents(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content] | None:
    contents = _exact(item)
    if contents is None:
        kind = item.get("type") or "message"
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        contents = tool_contents(item) if reader is None else reader(item, calls)
    for content in contents or ():
        content.raw_representation = item
        asked = content.function_call if content.type == "function_approval_request" else None
        if asked is not None:
            calls[str(item.get("id"))] = calls[str(content.id)] = asked
    return contents


def _exact(item: Mapping[str, Any]) -> list[Content] | None:
    """Return the contents stored under our own key, or None if missing or incompatible with this framework version."""
    kept: Any = _own(item).get("contents")
    if not isinstance(kept, list) or not kept:
        return None
    try:
        return [Content.from_dict(content) for content in cast("list[Mapping[str, Any]]", kept)]
    except (ContentError, AttributeError, KeyError, TypeError, ValueError) as error:
        log.warning("Foundry item read without our metadata: %s", type(error).__name__)
        return None


def _message(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    given: Any = item.get("content")
    if isinstance(given, str):
        return [Content.from_text(given)]
    parts = cast("list[Any]", given) if isinstance(given, list) else []
    contents = _parts(parts)
    extras: Any = _own(item).get(EXTRAS)
    if isinstance(extras, list) and len(cast("list[Any]", extras)) == len(contents):
        for content, extra in zip(contents, cast("list[Any]", extras), strict=True):
            if isinstance(extra, Mapping):
                _add_extra(content, cast("Mapping[str, Any]", extra))
    return contents


def _add_extra(content: Content, extra: Mapping[str, Any]) -> None:
    """Add the data to a content that its part can't represent."""
    content.additional_properties = dict(_get_mapping(extra, "additional_properties"))
    annotations: Any = extra.get("annotations")
    if isinstance(annotations, list):
        content.annotations = cast(
            "Any", [part for part in cast("list[Any]", annotations) if isinstance(part, Mapping)]
        )


def _parts(parts: Sequence[Any]) -> list[Content]:
    contents = (_part(cast("Mapping[str, Any]", part)) for part in parts if isinstance(part, Mapping))
    return [content for content in contents if content is not None]


def _part(part: Mapping[str, Any]) -> Content | None:
    kind = part.get("type")
    if kind in _TEXTS:
        return Content.from_text(_text(part, "text") or "")
    if kind == "refusal":
        return refusal(_text(part, "refusal") or "")
    if kind == "input_image":
        return _read_file(part, "image_url", "image/png")
    if kind == "input_file":
        return _read_file(part, "file_data", "application/octet-stream") or _read_file(
            part, "file_url", "application/octet-stream"
        )
    return None


def _read_file(part: Mapping[str, Any], name: str, otherwise: str) -> Content | None:
    """Return an image or file by its data, its URL or its id at the service."""
    uri, file_id = _text(part, name), _text(part, "file_id")
    kept = {key: part[key] for key in ("filename", "detail") if part.get(key)}
    if uri is None:
        return None if file_id is None else Content.from_hosted_file(file_id, additional_properties=kept)
    if name == "file_data" and not uri.startswith("data:"):
        uri = f"data:{otherwise};base64,{uri}"
    media_type = uri[5:].partition(";")[0] if uri.startswith("data:") else otherwise
    try:
        return Content.from_uri(uri, media_type=media_type or otherwise, additional_properties=kept)
    except (ContentError, ValueError):
        return None


def _call(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    arguments = item.get("arguments") if item.get("type") == "function_call" else item.get("input")
    call_id = str(item.get("call_id") or item.get("id"))
    return [Content.from_function_call(call_id, str(item.get("name")), arguments=str(arguments or "{}"))]


def _output(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    given: Any = item.get("output")
    call_id = str(item.get("call_id"))
    if isinstance(given, list):
        given = _parts(cast("list[Any]", given))
    if item.get("type") == "custom_tool_call_output" and call_id.startswith("mcp_"):
        return [Content.from_mcp_server_tool_result(call_id, output=given)]
    return [Content.from_function_result(call_id, result=given)]


def _read_reasoning(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    given: Any = item.get("summary") or item.get("content")
    parts = [content.text or "" for content in _parts(cast("list[Any]", given) if isinstance(given, list) else [])]
    sealed = _text(item, "encrypted_content")
    return [Content.from_text_reasoning(id=_text(item, "id"), text="\n".join(parts), protected_data=sealed)]


def _question(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    request_id = str(item.get("id"))
    call = Content.from_function_call(request_id, str(item.get("name")), arguments=str(item.get("arguments") or "{}"))
    return [Content.from_function_approval_request(request_id, call)]


def _answer(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    request_id = str(item.get("approval_request_id"))
    call = calls.get(request_id) or Content.from_function_call(request_id, "", arguments="{}")
    return [Content.from_function_approval_response(item.get("approve") is True, request_id, call)]


def _mcp_call(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    call_id, label = str(item.get("id")), _text(item, "server_label")
    call = Content.from_mcp_server_tool_call(
        call_id, str(item.get("name")), server_name=label, arguments=_text(item, "arguments")
    )
    output = item.get("output")
    return [call] if output is None else [call, Content.from_mcp_server_tool_result(call_id, output=output)]


def _image(item: Mapping[str, Any], calls: dict[str, Content]) -> list[Content]:
    result = _text(item, "result")
    outputs = _read_file({"image_url": f"data:image/png;base64,{result}"}, "image_url", "image/png") if result else None
    return [Content.from_image_generation_tool_result(image_id=_text(item, "id"), outputs=outputs)]


_OUTPUTS = OUTPUTS | {"function_call_output", "custom_tool_call_output"}
_READERS: dict[str, Callable[[Mapping[str, Any], dict[str, Content]], list[Content]]] = {
    "message": _message,
    "output_message": _message,
    "function_call": _call,
    "function_call_output": _output,
    "custom_tool_call": _call,
    "custom_tool_call_output": _output,
    "reasoning": _read_reasoning,
    "mcp_approval_request": _question,
    "mcp_approval_response": _answer,
    "mcp_call": _mcp_call,
    "image_generation_call": _image,
}
