"""Renders outcomes of runs as the contents and structured results of tool calls. Pure."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from agent_framework import Content, WorkflowRunResult
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from frontdesk.channels.mcp.questions import OpenQuestion
from frontdesk.framework.contents import file_name
from frontdesk.framework.outputs import extract_messages, output_json, read_output
from frontdesk.framework.types import is_response, whole_outputs
from frontdesk.models.run import RunRecord
from frontdesk.streaming.pieces import ConsentPiece, MediaPiece, Piece, PieceAssembler, QuestionPiece, TextPiece

META = "frontdesk/"
"""The prefix of our keys in `_meta`."""


class Outcome(NamedTuple):
    """A run that has ended, with what it put out."""

    run: RunRecord
    result: Any
    pieces: Sequence[Piece]

    @property
    def asks(self) -> bool:
        """Return True if the run waits for answers."""
        return any(isinstance(piece, QuestionPiece) for piece in self.pieces)


def build_outcome(run: RunRecord, result: Any) -> Outcome:
    """Return the outcome of a run, as pieces that belong to no protocol."""
    assembler = PieceAssembler(run.run_id)
    if is_response(result):
        for message in result.messages:
            assembler.message(message)
    elif isinstance(result, WorkflowRunResult):
        for output in whole_outputs(result):
            for message in extract_messages(output):
                assembler.message(message)
    if result is not None:
        assembler.finish(result)
    return Outcome(run, result, assembler.take())


def tool_result(outcome: Outcome, questions: Sequence[OpenQuestion] = ()) -> CallToolResult:
    """Return the result of a call. `questions` are those that it still waits for."""
    run = outcome.run
    failed = run.status != "completed"
    content, text = _contents(outcome)
    if failed:
        failure = "The run was cancelled." if run.status == "cancelled" else "The run did not complete."
        text = run.failure.message if run.failure is not None else failure
        content.append(TextContent(type="text", text=text))
    if questions:
        content.append(TextContent(type="text", text=_describe_waiting(run, questions)))
    if not content:
        # Some clients reject a result without contents.
        content.append(TextContent(type="text", text=""))
    structured: dict[str, Any] = {"status": "input_required" if questions else run.status, "text": text}
    structured["run_id"] = run.run_id
    meta: dict[str, Any] = {f"{META}run_id": run.run_id}
    if run.session_key is not None:
        structured["session"] = meta[f"{META}session"] = run.session_key
    if questions:
        structured["questions"] = [_question_out(question) for question in questions]
    structured.update(_data(outcome.result))
    result = CallToolResult(content=content, structured_content=structured, is_error=failed)
    result.meta = meta
    return result


def error_result(message: str, code: str) -> CallToolResult:
    """Return the result of a call that was rejected, for a model that can correct its arguments."""
    structured = {"status": "failed", "text": message, "code": code}
    return CallToolResult(
        content=[TextContent(type="text", text=message)], structured_content=structured, is_error=True
    )


def _contents(outcome: Outcome) -> tuple[list[ContentBlock], str]:
    """Return the blocks of an answer, one for each text of a message, and all of its text."""
    blocks: list[ContentBlock] = []
    said: list[str] = []
    texts: list[str] = []
    message_id = ""

    def end_text() -> None:
        if text := "".join(texts):
            blocks.append(TextContent(type="text", text=text))
            said.append(text)
        texts.clear()

    for number, piece in enumerate(outcome.pieces):
        if isinstance(piece, TextPiece) and piece.message_id == message_id:
            texts.append(piece.text)
            continue
        end_text()
        message_id = piece.message_id
        if isinstance(piece, TextPiece):
            texts.append(piece.text)
        elif isinstance(piece, MediaPiece) and (block := _media(piece.content, f"{outcome.run.run_id}:{number}")):
            blocks.append(block)
        elif isinstance(piece, ConsentPiece):
            blocks.append(TextContent(type="text", text=f"Open this address to give access: {piece.link}"))
    end_text()
    return blocks, "\n\n".join(said)


def _media(content: Content, name: str) -> ContentBlock | None:
    uri = content.uri or ""
    media_type = content.media_type or "application/octet-stream"
    if not uri.startswith("data:"):
        # Links to the platform of a model, such as ids of hosted files, are of no use to a client.
        known = uri.startswith(("https://", "http://"))
        title = file_name(content) or uri.rpartition("/")[2] or uri
        return ResourceLink(type="resource_link", uri=uri, name=title, mime_type=media_type) if known else None
    data = _base64_in(uri)
    if data is None:
        return None
    if media_type.startswith("image/"):
        return ImageContent(type="image", data=data, mime_type=media_type)
    if media_type.startswith("audio/"):
        return AudioContent(type="audio", data=data, mime_type=media_type)
    return EmbeddedResource(type="resource", resource=_resource(content, data, media_type, name))


def _resource(content: Content, data: str, media_type: str, name: str) -> TextResourceContents | BlobResourceContents:
    uri = f"urn:frontdesk:{name}"
    if media_type.startswith("text/") or media_type.endswith(("json", "xml")):
        try:
            text = base64.b64decode(data).decode()
            return TextResourceContents(uri=uri, mime_type=media_type, text=text)
        except (UnicodeDecodeError, ValueError):
            pass
    return BlobResourceContents(uri=uri, mime_type=media_type, blob=data)


def _base64_in(uri: str) -> str | None:
    """Return the data of a data URI as base64."""
    head, comma, data = uri.partition(",")
    if not comma:
        return None
    if not head.endswith(";base64"):
        return base64.b64encode(unquote_to_bytes(data)).decode()
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data


def _data(result: Any) -> dict[str, Any]:
    """Return the structured value of an answer, or the outputs of a workflow, as JSON."""
    if is_response(result):
        return {} if result.value is None else {"value": json.loads(output_json(result.value))}
    if isinstance(result, WorkflowRunResult):
        return {"outputs": [_output(output) for output in whole_outputs(result)]}
    return {}


def _output(output: Any) -> Any:
    if isinstance(output, str):
        return output
    said = read_output(output)
    if said is None:
        return json.loads(output_json(output))
    return {"text": "\n\n".join(message.text for message in said)}


def _describe_waiting(run: RunRecord, questions: Sequence[OpenQuestion]) -> str:
    lines = ["This call waits for input before it can continue:"]
    for question in questions:
        people = f" It waits for {', '.join(question.waits_for)}." if question.waits_for else ""
        url = f" Answer it at {question.url}." if question.url else ""
        lines.append(f"- {question.text}{people}{url}")
    if run.session_key is not None:
        lines.append(
            f'When it is answered, call this tool with an empty message and session "{run.session_key}" for the result.'
        )
    return "\n".join(lines)


def _question_out(question: OpenQuestion) -> dict[str, Any]:
    out: dict[str, Any] = {"id": question.id, "tool": question.tool, "question": question.text}
    if question.arguments is not None:
        out["arguments"] = question.arguments
    if question.waits_for:
        out["waits_for"] = list(question.waits_for)
    if question.url:
        out["url"] = question.url
    return out
