"""What the OpenAPI document can't say, for the fuzzer."""

import re
from itertools import count
from typing import Any

import schemathesis

_ID = re.compile(r"[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,255}")
_KEY = re.compile("[ -~]{1,255}")
_numbers = count()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """The body and the query string may not name different sessions; a key is not sent with an id, nor used again."""
    if case.headers and isinstance(key := case.headers.get("idempotency-key"), str):
        if "x-agent-invocation-id" in case.headers and _KEY.fullmatch(key):
            del case.headers["idempotency-key"]
        elif _KEY.fullmatch(key):
            case.headers["idempotency-key"] = f"{key[:200]}{next(_numbers)}"
    named = (case.query or {}).get("agent_session_id")
    if isinstance(named, str) and _ID.fullmatch(named) and isinstance(case.body, dict) and "session_id" in case.body:
        del case.query["agent_session_id"]
