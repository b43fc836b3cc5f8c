"""What the OpenAPI document can't say, for the fuzzer."""

import re
from typing import Any

import schemathesis

_ID = re.compile(r"[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,255}")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """The body and the query string may not name different sessions."""
    named = (case.query or {}).get("agent_session_id")
    if isinstance(named, str) and _ID.fullmatch(named) and isinstance(case.body, dict) and "session_id" in case.body:
        del case.query["agent_session_id"]
