"""Compaction: a conversation goes in, and an item comes out that stands for it.

The item holds no summary, only a reference with a seal that nobody can guess: the summary is kept with the caller's
own things, so that it opens for nobody else, and nobody but the host can make one.
"""

import hmac
from collections.abc import Sequence
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.channels.responses.drawing import item_id
from frontdesk.channels.responses.references import References
from frontdesk.channels.responses.render import usage_of
from frontdesk.channels.responses.wire import CompactBody, CompactionItem, CompactionOut, CreateBody
from frontdesk.data.run import RunRecord
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.bodies import MAX_VALUES, decode_as
from frontdesk.kit.names import is_plain_id

_decoder = msgspec.json.Decoder(CompactBody)
_MARK = "fd1"
_NOT_OURS = "This is no compaction of this caller's, or it is kept no longer."


def decode_compact(raw: bytes, max_values: int = MAX_VALUES) -> tuple[CreateBody, str | None]:
    """The body as that of a response, and the instructions for the summary."""
    body = decode_as(_decoder, raw, max_values)
    if body.input is None and body.previous_response_id is None:
        raise InvalidRequestError("There is nothing to compact: give `input` or `previous_response_id`.", param="input")
    created = CreateBody(input=body.input, previous_response_id=body.previous_response_id)
    return created, body.instructions


def is_compaction(run: RunRecord) -> bool:
    """Whether a run is a compaction and no response."""
    return "summary" in run.details


def draw_compaction(run: RunRecord) -> CompactionOut:
    """A compaction as the API shows it: the user's messages, then the item that stands for all the rest."""
    said: Sequence[Message] = run.input or ()
    output: list[Any] = [
        {
            "type": "message",
            "id": item_id("msg", run.run_id, place),
            "status": "completed",
            "role": "user",
            "content": [_part(content) for content in message.contents],
        }
        for place, message in enumerate(said)
    ]
    seal = f"{_MARK}.{run.run_id}.{run.details['seal']}"
    output.append(CompactionItem(id=item_id("cmp", run.run_id, len(output)), encrypted_content=seal))
    usage = usage_of(run.details["usage"])
    return CompactionOut(id=run.run_id, created_at=int(run.created_at), output=output, usage=usage)


def _part(content: Content) -> dict[str, Any]:
    if content.type == "text":
        return {"type": "input_text", "text": content.text or ""}
    if content.type in ("data", "uri") and (content.media_type or "").startswith("image/"):
        return {"type": "input_image", "image_url": content.uri, "detail": _detail(content)}
    if content.type in ("data", "uri") and content.uri:
        name = content.additional_properties.get("filename") or "file"
        where = "file_data" if content.uri.startswith("data:") else "file_url"
        return {"type": "input_file", "filename": name, where: content.uri}
    return {"type": "input_text", "text": ""}


def _detail(content: Content) -> str:
    return str(content.additional_properties.get("detail") or "auto")


async def _summary_of(references: References, seal: str, where: str) -> str:
    """What a compaction stands for; one that is forged, foreign or gone is a bad request."""
    mark, _, rest = seal.partition(".")
    run_id, _, key = rest.partition(".")
    run = await references.compaction(run_id, where) if mark == _MARK and is_plain_id(run_id) else None
    known = "" if run is None else str(run.details.get("seal", ""))
    if run is None or not is_compaction(run) or not hmac.compare_digest(known.encode(), key.encode(errors="replace")):
        raise InvalidRequestError(_NOT_OURS, param=where, code="invalid_encrypted_content")
    return str(run.details["summary"])


async def opened(references: References, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items with the summaries in the place of the compactions.

    Each is a message of the assistant's: it comes from a model that has read what users wrote, so it must not rank
    higher than that.
    """
    found = list(items)
    for place, item in enumerate(items):
        if item.get("type") == "compaction":
            where, seal = f"input[{place}].encrypted_content", item.get("encrypted_content")
            if not isinstance(seal, str):
                raise InvalidRequestError("`encrypted_content` must be a string.", param=where)
            text = f"Summary of the conversation so far:\n{await _summary_of(references, seal, where)}"
            content = [{"type": "output_text", "text": text}]
            found[place] = {"type": "message", "role": "assistant", "content": content}
    return found


def compactor_findings(compactor: Any) -> list[str]:
    """What is wrong with the operator's choice, a line each."""
    if compactor is None or callable(compactor) or callable(getattr(compactor, "run", None)):
        return []
    return [f"compactor must be an agent or a function, not {type(compactor).__name__}"]
