"""Reads the parameters of a call from its query and its body: JSON, a form, or a form with files."""

import re
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from frontdesk_testing.telegram.errors import bad_request
from frontdesk_testing.telegram.files import Upload

_BOUNDARY = re.compile(r"boundary=(?:\"([^\"]{1,200})\"|([^;\s]{1,200}))")
_NAME = re.compile(r"(?<![\w*])name=\"([^\"]*)\"")
_FILENAME = re.compile(r"(?<!\w)filename=\"([^\"]*)\"")
_EXTENDED = re.compile(r"(?<!\w)filename\*=")

Parameters = tuple[dict[str, Any], dict[str, Upload]]
"""The parameters, and the files by the names of their parts."""


def read_parameters(query: str, content_type: str, body: bytes) -> Parameters:
    """Return the parameters of a call, and its files."""
    given: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    kind = content_type.partition(";")[0].strip().lower()
    if not body:
        return given, {}
    if kind == "application/json":
        return {**given, **_json(body)}, {}
    if kind == "application/x-www-form-urlencoded":
        return {**given, **dict(parse_qsl(_text(body), keep_blank_values=True))}, {}
    if kind == "multipart/form-data":
        fields, uploads = read_multipart(content_type, body)
        return {**given, **fields}, uploads
    return given, {}


def _json(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise bad_request("can't parse JSON object") from None


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise bad_request("strings must be encoded in UTF-8") from None


def read_multipart(content_type: str, body: bytes) -> Parameters:
    """Return the fields and files of a form in several parts."""
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise bad_request("boundary parameter not found")
    separator = b"\r\n--" + (match.group(1) or match.group(2)).encode()
    # The first separator has no line before it.
    pieces = (b"\r\n" + body).split(separator)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise bad_request("boundary of a part not found")
    fields: dict[str, Any] = {}
    uploads: dict[str, Upload] = {}
    for piece in pieces[1:-1]:
        head, found, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        headers = _headers(head)
        disposition = headers.get("content-disposition", "")
        name = _NAME.search(disposition)
        if not found or name is None:
            raise bad_request("part of the form has no name")
        filename = _FILENAME.search(disposition)
        if filename is None and _EXTENDED.search(disposition) is None:
            fields[name.group(1)] = _text(content)
        else:
            shown = filename.group(1) if filename else "file"
            uploads[name.group(1)] = Upload(content, shown, headers.get("content-type", ""))
    return fields, uploads


def _headers(head: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in _text(head).split("\r\n"))
    return {name.strip().lower(): value.strip() for name, _, value in lines}
