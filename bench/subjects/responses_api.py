"""What all subjects have in common that speak the OpenAI Responses API."""

from __future__ import annotations

import json
from typing import Any

from bench.subjects.base import Case, Subject

PATH = "/responses"


class ResponsesApi(Subject):
    # Created, in progress, an item, its part, and the first delta.
    idle_events = 5

    def request(self, case: Case) -> tuple[str, bytes]:
        return PATH, to_json({"model": "stub", "input": case, "stream": case != "json"})

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        previous = {"previous_response_id": session_id} if session_id else {}
        return PATH, to_json({"model": "stub", "input": text, **previous})

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body)["id"]


def to_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
