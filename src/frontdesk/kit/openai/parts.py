"""Parts of messages of the OpenAI APIs, from the wire to framework contents. Pure."""

import base64
import binascii
import mimetypes
import re
from collections.abc import Sequence
from typing import Any, cast

from agent_framework import Content

from frontdesk.errors import InvalidRequestError

Urls = list[tuple[Content, str]]
"""The pictures and files that are named by their address, each with its place in the request."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)((?:;[\w.+=-]+)*);base64,", re.ASCII)
_DETAILS = ("low", "high", "auto", "original")
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}


class Item:
    """One item or part and its place, for errors that name it."""

    def __init__(self, body: dict[str, Any], where: str, host_tools: Sequence[str] = ()) -> None:
        self.body = body
        self.where = where
        self.host_tools = host_tools

    def text(self, name: str) -> str:
        value = self.body.get(name)
        if not isinstance(value, str):
            raise InvalidRequestError(f"`{name}` must be a string.", param=f"{self.where}.{name}")
        return value

    def call_id(self) -> str:
        value = self.text("call_id")
        if not 1 <= len(value) <= 64:
            raise InvalidRequestError("A call_id has 1 to 64 characters.", param=f"{self.where}.call_id")
        return value


def read_parts(parts: Any, where: str, urls: Urls) -> list[Content]:
    """Read the parts of a message or of a function's output."""
    if not isinstance(parts, list):
        raise InvalidRequestError("`content` must be a string or a list of parts.", param=where)
    return [_part(part, f"{where}[{place}]", urls) for place, part in enumerate(cast("list[Any]", parts))]


def _part(part: Any, where: str, urls: Urls) -> Content:
    if not isinstance(part, dict):
        raise InvalidRequestError("A part must be an object.", param=where)
    item = Item(cast("dict[str, Any]", part), where)
    kind = item.body.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text"):
        return Content.from_text(item.text("text"))
    if kind == "refusal":
        return Content.from_text(item.text("refusal"), additional_properties={"core": {"model_output_kind": "refusal"}})
    if kind == "input_image":
        return _image(item, urls)
    if kind == "input_file":
        return _file(item, urls)
    if kind == "input_audio":
        return _audio(item)
    raise InvalidRequestError(f"Unknown content type: {kind!r}.", param=f"{where}.type")


def _image(item: Item, urls: Urls) -> Content:
    detail = item.body.get("detail")
    if detail is not None and detail not in _DETAILS:
        raise InvalidRequestError(f"`detail` must be one of {', '.join(_DETAILS)}.", param=f"{item.where}.detail")
    content = _media(item, "image_url", "image/png", urls)
    if detail is not None:
        content.additional_properties["detail"] = detail
    return content


def _media(item: Item, name: str, otherwise: str, urls: Urls) -> Content:
    if item.body.get("file_id") is not None:
        raise InvalidRequestError("File ids are not known here: send the data or a URL.", param=f"{item.where}.file_id")
    url, where = item.text(name), f"{item.where}.{name}"
    if url.startswith("data:"):
        return Content.from_uri(url, media_type=_data_media_type(url, where))
    if not url.startswith(("https://", "http://")) or any(ord(character) <= 32 for character in url):
        raise InvalidRequestError("A URL must begin with https://, http:// or data:.", param=where)
    media_type = mimetypes.guess_type(url.partition("?")[0])[0] or otherwise
    content = Content.from_uri(url, media_type=media_type)
    urls.append((content, where))
    return content


def _data_media_type(url: str, where: str) -> str:
    head = _DATA_URL.match(url)
    if head is None:
        raise InvalidRequestError("A data URL needs a media type and base64.", param=where)
    _need_base64(url[head.end() :], where)
    return head.group(1)


def _file(item: Item, urls: Urls) -> Content:
    name = None if item.body.get("filename") is None else item.text("filename")
    if item.body.get("file_url") is not None:
        content = _media(item, "file_url", "application/octet-stream", urls)
    elif item.body.get("file_id") is not None:
        raise InvalidRequestError("File ids are not known here: send the data or a URL.", param=f"{item.where}.file_id")
    else:
        data, where = item.text("file_data"), f"{item.where}.file_data"
        media_type = mimetypes.guess_type(name or "")[0] or "application/octet-stream"
        if data.startswith("data:"):
            media_type = _data_media_type(data, where)
        else:
            _need_base64(data, where)
            data = f"data:{media_type};base64,{data}"
        content = Content.from_uri(data, media_type=media_type)
    if name is not None:
        content.additional_properties["filename"] = name
    return content


def _audio(item: Item) -> Content:
    audio: Any = item.body.get("input_audio")
    where = f"{item.where}.input_audio"
    if not isinstance(audio, dict):
        raise InvalidRequestError("`input_audio` must be an object.", param=where)
    inner = Item(cast("dict[str, Any]", audio), where)
    media_type = _AUDIO.get(inner.text("format"))
    if media_type is None:
        raise InvalidRequestError(f"`format` must be one of {', '.join(_AUDIO)}.", param=f"{where}.format")
    _need_base64(inner.text("data"), f"{where}.data")
    return Content.from_uri(f"data:{media_type};base64,{inner.text('data')}", media_type=media_type)


def _need_base64(data: str, where: str) -> None:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("This is not base64.", param=where) from None
