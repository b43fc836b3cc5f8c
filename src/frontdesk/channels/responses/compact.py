"""Compaction: replaces a conversation by an item that refers to its summary.

The item contains only a reference with an unguessable seal. The summary is stored with the caller's own data. So other
callers cannot open it, and only the host can create one.
"""

import hmac
from typing import Any

import msgspec

from frontdesk.channels.responses.references import References
from frontdesk.channels.responses.render import COMPACTION_MARK, is_compaction
from frontdesk.channels.responses.schema import CompactBody, CreateBody
from frontdesk.errors import InvalidRequestError
from frontdesk.http.bodies import MAX_VALUES, decode_as
from frontdesk.identifiers import is_plain_id

_decoder = msgspec.json.Decoder(CompactBody)
_NOT_OURS = "Compaction not found: it belongs to another caller or has expired."


def decode_compact(raw: bytes, max_values: int = MAX_VALUES) -> tuple[CreateBody, str | None]:
    """Decode a body as that of a response, and return the instructions for the summary."""
    body = decode_as(_decoder, raw, max_values)
    if body.model is msgspec.UNSET:
        raise InvalidRequestError("A compaction requires `model`, which may be null.", param="model")
    if body.input is None and body.previous_response_id is None:
        raise InvalidRequestError("A compaction requires `input` or `previous_response_id`.", param="input")
    created = CreateBody(input=body.input, previous_response_id=body.previous_response_id)
    return created, body.instructions


async def _extract_summary(references: References, seal: str, where: str) -> str:
    """Return the summary of a compaction. Raise a bad request error if it is forged, foreign or gone."""
    mark, _, rest = seal.partition(".")
    run_id, _, key = rest.partition(".")
    run = await references.compaction(run_id, where) if mark == COMPACTION_MARK and is_plain_id(run_id) else None
    known = "" if run is None else str(run.details.get("seal", ""))
    if run is None or not is_compaction(run) or not hmac.compare_digest(known.encode(), key.encode(errors="replace")):
        raise InvalidRequestError(_NOT_OURS, param=where, code="invalid_encrypted_content")
    return str(run.details["summary"])


async def open_summaries(references: References, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace compaction items by their summaries.

    Each becomes an assistant message: it comes from a model that has read user text, so it must not rank higher.
    """
    rewritten = list(items)
    for place, item in enumerate(items):
        if item.get("type") == "compaction":
            where, seal = f"input[{place}].encrypted_content", item.get("encrypted_content")
            if not isinstance(seal, str):
                raise InvalidRequestError("`encrypted_content` must be a string.", param=where)
            text = f"Summary of the conversation so far:\n{await _extract_summary(references, seal, where)}"
            content = [{"type": "output_text", "text": text}]
            rewritten[place] = {"type": "message", "role": "assistant", "content": content}
    return rewritten


def compactor_findings(compactor: Any) -> list[str]:
    if compactor is None or callable(compactor) or callable(getattr(compactor, "run", None)):
        return []
    return [f"compactor must be an agent or a function, not {type(compactor).__name__}"]
