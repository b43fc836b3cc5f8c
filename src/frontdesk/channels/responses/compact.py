"""Compaction: a conversation goes in, and an item comes out that stands for it.

The item holds no summary, only a reference with a seal that nobody can guess: the summary is kept with the caller's
own things, so that it opens for nobody else, and nobody but the host can make one.
"""

import hmac
from typing import Any

import msgspec

from frontdesk.channels.responses.references import References
from frontdesk.channels.responses.render import COMPACTION_MARK, is_compaction
from frontdesk.channels.responses.wire import CompactBody, CreateBody
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.http.bodies import MAX_VALUES, decode_as
from frontdesk.kit.names import is_plain_id

_decoder = msgspec.json.Decoder(CompactBody)
_NOT_OURS = "This is no compaction of this caller's, or it is kept no longer."


def decode_compact(raw: bytes, max_values: int = MAX_VALUES) -> tuple[CreateBody, str | None]:
    """Decode a body as that of a response, and the instructions for the summary."""
    body = decode_as(_decoder, raw, max_values)
    if body.model is msgspec.UNSET:
        raise InvalidRequestError("A compaction needs `model`, which may be null.", param="model")
    if body.input is None and body.previous_response_id is None:
        raise InvalidRequestError("There is nothing to compact: give `input` or `previous_response_id`.", param="input")
    created = CreateBody(input=body.input, previous_response_id=body.previous_response_id)
    return created, body.instructions


async def _summary_of(references: References, seal: str, where: str) -> str:
    """Return what a compaction stands for; one that is forged, foreign or gone is a bad request."""
    mark, _, rest = seal.partition(".")
    run_id, _, key = rest.partition(".")
    run = await references.compaction(run_id, where) if mark == COMPACTION_MARK and is_plain_id(run_id) else None
    known = "" if run is None else str(run.details.get("seal", ""))
    if run is None or not is_compaction(run) or not hmac.compare_digest(known.encode(), key.encode(errors="replace")):
        raise InvalidRequestError(_NOT_OURS, param=where, code="invalid_encrypted_content")
    return str(run.details["summary"])


async def opened(references: References, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items with the summaries in the place of the compactions.

    Each is a message of the assistant's: it comes from a model that has read what users wrote, so it must not rank
    higher than that.
    """
    rewritten = list(items)
    for place, item in enumerate(items):
        if item.get("type") == "compaction":
            where, seal = f"input[{place}].encrypted_content", item.get("encrypted_content")
            if not isinstance(seal, str):
                raise InvalidRequestError("`encrypted_content` must be a string.", param=where)
            text = f"Summary of the conversation so far:\n{await _summary_of(references, seal, where)}"
            content = [{"type": "output_text", "text": text}]
            rewritten[place] = {"type": "message", "role": "assistant", "content": content}
    return rewritten


def compactor_findings(compactor: Any) -> list[str]:
    """List what is wrong with the operator's choice, a line each."""
    if compactor is None or callable(compactor) or callable(getattr(compactor, "run", None)):
        return []
    return [f"compactor must be an agent or a function, not {type(compactor).__name__}"]
