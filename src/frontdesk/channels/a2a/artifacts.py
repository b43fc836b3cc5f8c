"""Turns the answers of a target into parts of artifacts. Pure."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
from agent_framework import AgentResponseUpdate, Content, Message

from frontdesk.channels.a2a.modes import JSON, TEXT, is_accepted
from frontdesk.channels.a2a.parse import DATA_PART
from frontdesk.channels.a2a.schema import ArtifactOut, PartOut
from frontdesk.framework.contents import file_name
from frontdesk.framework.outputs import json_form, output_json, read_output
from frontdesk.framework.types import is_event, is_response, list_updates
from frontdesk.models.conversation import answer_message_id
from frontdesk.streaming.pieces import ConsentPiece, MediaPiece, Piece, PieceAssembler, TextPiece

_DATA = "a2a_data"
_encoder = msgspec.json.Encoder(enc_hook=json_form)


class DataPiece(Piece, frozen=True, kw_only=True):
    value: Any


class PartAssembler(PieceAssembler):
    """Adds pieces for outputs of workflows that are data."""

    def add(self, update: Any) -> None:
        if is_event(update) and update.type == "output":
            output: Any = update.data
            if not isinstance(output, AgentResponseUpdate) and read_output(output) is None:
                shown = Content.from_text(output_json(output), additional_properties={_DATA: True})
                self.message(Message("assistant", [shown]))
                return
        super().add(update)

    def on_text(self, content: Content) -> None:
        if content.additional_properties and _DATA in content.additional_properties:
            value = msgspec.json.decode(content.text or "null")
            self._add(DataPiece(message_id=self.message_id, value=value))
            return
        super().on_text(content)


def encode(value: Any) -> bytes:
    return _encoder.encode(value)


def build_part(content: Content) -> PartOut | None:
    """Return the part of a content of a message, or None if it has none."""
    kind = content.type
    if kind == "text":
        if content.additional_properties and DATA_PART in content.additional_properties:
            return PartOut(data=msgspec.json.decode(content.text or "null"), media_type=JSON)
        return PartOut(text=content.text or "")
    if kind == "data" or (kind == "uri" and (content.uri or "").startswith("data:")):
        return _raw_part(content)
    if kind == "uri":
        part = PartOut(url=content.uri or "")
    elif kind == "hosted_file":
        part = PartOut(data={"fileId": content.file_id})
    else:
        return None
    return _describe(part, content)


def _raw_part(content: Content) -> PartOut:
    head, _, data = (content.uri or "").partition(",")
    part = PartOut(raw=data) if head.endswith(";base64") else PartOut(url=content.uri or "")
    return _describe(part, content)


def _describe(part: PartOut, content: Content) -> PartOut:
    if content.media_type:
        part.media_type = content.media_type
    if name := file_name(content):
        part.filename = name
    return part


def part_of_piece(piece: Piece, modes: Collection[str]) -> PartOut | None:
    """Return the part of a piece in a form that the client accepts, or None."""
    if isinstance(piece, TextPiece):
        return text_part(piece.text, modes)
    if isinstance(piece, DataPiece):
        return data_part(piece.value, modes)
    if isinstance(piece, MediaPiece):
        part = build_part(piece.content)
        kind = piece.content.media_type or "application/octet-stream"
        return part if part is None or is_accepted(kind, modes) else None
    if isinstance(piece, ConsentPiece):
        return PartOut(url=piece.link)
    return None


def text_part(text: str, modes: Collection[str]) -> PartOut | None:
    if is_accepted(TEXT, modes):
        return PartOut(text=text)
    return PartOut(data=text, media_type=JSON) if is_accepted(JSON, modes) else None


def data_part(value: Any, modes: Collection[str]) -> PartOut | None:
    if is_accepted(JSON, modes):
        return PartOut(data=value, media_type=JSON)
    return PartOut(text=output_json(value)) if is_accepted(TEXT, modes) else None


def read_structured_value(result: Any) -> Any:
    """Return the structured output of an agent as JSON, or None."""
    value = result.value if is_response(result) else None
    return None if value is None else msgspec.json.decode(output_json(value))


def list_pieces(run_id: str, result: Any) -> Sequence[Piece]:
    assembler = PartAssembler(run_id)
    if is_response(result):
        for message in result.messages:
            assembler.message(message)
    else:
        for update in list_updates(result):
            assembler.add(update)
    return assembler.pieces


def is_plain(result: Any) -> bool:
    """Return True if an answer is one message with one text, the most common case."""
    if not is_response(result) or len(result.messages) != 1 or result.messages[0].role != "assistant":
        return False
    contents = result.messages[0].contents
    return len(contents) == 1 and contents[0].type == "text" and not contents[0].additional_properties


def build_artifacts(run_id: str, result: Any, modes: Collection[str]) -> list[ArtifactOut]:
    """Return an artifact for each message of an answer. Calls, reasoning and refusals are left out."""
    if result is None:
        return []
    value = read_structured_value(result)
    if value is None and is_plain(result):
        part = text_part(result.messages[0].contents[0].text or "", modes)
        return [] if part is None else [ArtifactOut(artifact_id=answer_message_id(run_id, 0), parts=[part])]
    artifacts = list(group_pieces(list_pieces(run_id, result), modes))
    if value is not None and (part := data_part(value, modes)) is not None:
        if artifacts:
            artifacts[-1].parts = [part, *(one for one in artifacts[-1].parts if one.text is msgspec.UNSET)]
        else:
            artifacts.append(ArtifactOut(artifact_id=answer_message_id(run_id, 0), parts=[part]))
    return artifacts


def group_pieces(pieces: Sequence[Piece], modes: Collection[str]) -> Iterator[ArtifactOut]:
    """Yield the artifacts of pieces. Consecutive texts are one part."""
    artifact: ArtifactOut | None = None
    for piece in pieces:
        if isinstance(piece, TextPiece) and (piece.is_refusal or not piece.text):
            continue
        part = part_of_piece(piece, modes)
        if part is None:
            continue
        if artifact is None or artifact.artifact_id != piece.message_id:
            if artifact is not None:
                yield artifact
            artifact = ArtifactOut(artifact_id=piece.message_id, parts=[part])
        elif isinstance(part.text, str) and isinstance(artifact.parts[-1].text, str):
            artifact.parts[-1].text += part.text
        else:
            artifact.parts.append(part)
    if artifact is not None:
        yield artifact


def refusal_text(run_id: str, result: Any) -> str | None:
    """Return the text of a refusal, if the target has refused and said nothing else."""
    if result is None or is_plain(result):
        return None
    texts = [piece for piece in list_pieces(run_id, result) if isinstance(piece, TextPiece) and piece.text]
    if not texts or not all(piece.is_refusal for piece in texts):
        return None
    return "".join(piece.text for piece in texts)
