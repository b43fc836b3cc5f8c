"""What the document can't say, for the fuzzer."""

import re
from collections.abc import Iterator
from typing import Any, TypeGuard

import schemathesis

_CALLS = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
_ID = re.compile("[A-Za-z0-9_-]{1,64}")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Nothing is continued that nobody said; calls have their outputs; a name is used once; 1e17 is no integer."""
    if not isinstance(case.body, dict):
        return
    previous = case.body.get("previous_response_id")
    if isinstance(previous, str) and _ID.fullmatch(previous):
        del case.body["previous_response_id"]
    for name in ("max_output_tokens", "max_tool_calls", "top_logprobs"):
        value = case.body.get(name)
        if isinstance(value, float) and value.is_integer():
            case.body[name] = int(value)
    if _are_objects(given := case.body.get("input")):
        case.body["input"] = list(_with_calls(given))
    if _are_objects(tools := case.body.get("tools")):
        case.body["tools"] = [_name(tool, place) for place, tool in enumerate(tools)]


def _are_objects(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _name(tool: dict[str, Any], place: int) -> dict[str, Any]:
    name = tool.get("name")
    return {**tool, "name": f"{name[:50]}-{place}"} if isinstance(name, str) and _ID.fullmatch(name) else tool


def _with_calls(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for place, item in enumerate(items):
        call_id = item.get("call_id")
        if item.get("type") in _CALLS and isinstance(call_id, str):
            own = call_id[:50] + f"-{place}" if 1 <= len(call_id) <= 64 else call_id
            item = {**item, "call_id": own}
            is_output = item["type"].endswith("_output")
            if is_output:
                yield {"type": "function_call", "call_id": own, "name": "look", "arguments": "{}"}
            yield item
            if not is_output:
                yield {"type": "function_call_output", "call_id": own, "output": "seen"}
            continue
        yield item
