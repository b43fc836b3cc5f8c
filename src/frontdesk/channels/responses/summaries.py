"""A compaction as the API shows it. Pure."""

from collections.abc import Sequence
from typing import Any

from agent_framework import Content, Message

from frontdesk.channels.responses.drawing import item_id
from frontdesk.channels.responses.render import usage_of
from frontdesk.channels.responses.wire import CompactionItem, CompactionOut
from frontdesk.data.run import RunRecord

MARK = "fd1"
"""How the seal of a compaction begins."""


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
    seal = f"{MARK}.{run.run_id}.{run.details['seal']}"
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
