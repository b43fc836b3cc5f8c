"""What the document can't say, for the fuzzer."""

from collections.abc import Iterator
from typing import Any

import schemathesis


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Every call has its own id and its output, and every output its call; and 1e17 is an integer to JSON Schema only."""
    if not isinstance(case.body, dict):
        return
    for name in ("max_output_tokens", "max_tool_calls", "top_logprobs"):
        value = case.body.get(name)
        if isinstance(value, float) and value.is_integer():
            case.body[name] = int(value)
    given = case.body.get("input")
    if isinstance(given, list) and all(isinstance(item, dict) for item in given):
        case.body["input"] = list(_with_calls(given))


def _with_calls(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for place, item in enumerate(items):
        call_id = item.get("call_id")
        if item.get("type") in ("function_call", "function_call_output") and isinstance(call_id, str):
            own = call_id[:50] + f"-{place}" if 1 <= len(call_id) <= 64 else call_id
            item = {**item, "call_id": own}
            if item["type"] == "function_call_output":
                yield {"type": "function_call", "call_id": own, "name": "look", "arguments": "{}"}
            yield item
            if item["type"] == "function_call":
                yield {"type": "function_call_output", "call_id": own, "output": "seen"}
            continue
        yield item
