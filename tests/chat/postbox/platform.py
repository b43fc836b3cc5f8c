"""Postbox itself: a made-up chat platform in the loop of a test."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from frontdesk.chat import Button
from frontdesk_testing import ChatFile, ChatPlatformBase, PlatformCall, PlatformError, PlatformEvent

TOKEN, SECRET = "a token of postbox", "a secret of postbox"


class Postbox(ChatPlatformBase):
    mention = "@porter"
    base_path = "/api"
    missing_status = 410

    def encode(self, event: PlatformEvent) -> bytes:
        files = [{"id": key, "type": file.media_type, "size": len(file.data)} for key, file in event.files.items()]
        body = {"id": event.event_id, "at": event.at, "kind": event.kind, "message": event.message_id, "files": files}
        body |= {"user": {"id": event.sender.id, "name": event.sender.name}, "to_bot": event.mentions_bot}
        body |= {"chat": event.chat_id, "group": event.is_group, "thread": event.thread_id, "album": event.album}
        click = event.event_id if event.kind == "click" else ""
        return msgspec.json.encode({**body, "text": event.text, "data": event.data, "click": click})

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        mark = hmac.new(SECRET.encode(), b"%d.%b" % (at, body), hashlib.sha256).hexdigest()
        return {"postbox-time": str(int(at)), "postbox-signature": mark}

    def answer(self, call: PlatformCall) -> Any:
        if call.headers.get("authorization") != f"Bearer {TOKEN}":
            raise PlatformError(401)
        if call.method == "GET":
            return self.files[call.path.removeprefix("files/")].data
        body = call.json()
        match call.path:
            case "me":
                return {"id": "bot", "name": "porter"}
            case "open":
                return {"id": self.people[body["user"]].chat_id}
            case "send":
                if not (body["text"].strip() or body["files"]) or len(body["text"].encode("utf-16-le")) > 2_000:
                    raise PlatformError(400)
                shown = {"thread_id": body["thread"], "reply_to": body["reply_to"], **_build_shown(body)}
                return {"id": self.add_message(body["chat"], key=body["key"], **shown)}
            case "edit":
                if not self.edit_message(body["id"], **_build_shown(body)):
                    raise PlatformError(304)
            case "delete":
                self.delete_message(body["id"])
            case "answer":
                self.notices[body["click"]] = body["text"]
            case "typing" | "commands":
                pass
            case _:
                raise PlatformError(404)
        return {}


def _build_shown(body: Any) -> dict[str, Any]:
    files = (
        ChatFile(media_type=file["type"], data=base64.b64decode(file["data"]), name=file["name"])
        for file in body["files"]
    )
    buttons = tuple(Button(**button) for button in body["buttons"])
    return {"text": body["text"], "buttons": buttons, "files": tuple(files)}
