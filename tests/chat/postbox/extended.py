"""Postbox with all that only some platforms have: verified claims and events that are answered at once."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from frontdesk import UnauthenticatedError, chat
from frontdesk.models.identity import Caller
from frontdesk_testing import ChatPerson, PlatformCall, PlatformError
from tests.chat.postbox.channel import Event, PostboxChannel, build_body
from tests.chat.postbox.platform import SECRET, Postbox

CLAIMS = b"postbox-claims"
PING = "ping"


class ExtendedPostboxChannel(PostboxChannel, chat.AnswersAtOnce):
    """Proves the `sub` of the person who has sent an event, and answers `ping` at once."""

    signature_headers = (*PostboxChannel.signature_headers, CLAIMS)
    emits_verified_claims = True
    reads_feedback = True

    async def verify(self, headers: chat.Headers, body: bytes, now: float) -> chat.Proof:
        await super().verify(headers, body, now)
        named, _, signature = headers.get(CLAIMS, b"").partition(b".")
        chat.verify_hmac(self._secret, named, signature)
        return chat.Proof(claims={"sub": named.decode()})

    def read(self, event: bytes, bot: chat.BotIdentity, proof: chat.Proof | None) -> chat.Inbound | None:
        said = chat.decode_event(event, Event)
        if proof is not None and proof.claims["sub"] != subject(said.user.id):
            raise UnauthenticatedError("The event was sent by another person.")
        if said.kind == "feedback":
            return chat.InboundFeedback(
                at=said.at,
                sender=chat.Sender(id=said.user.id),
                place=chat.Destination(chat_id=said.chat, kind="group" if said.group else "direct"),
                message_id=said.message,
                value="up" if said.data == "up" else "down",
            )
        if said.kind in ("opened", "closed"):
            place = chat.Destination(chat_id=said.chat, reference={"mailbox": said.chat})
            person = chat.Sender(id=said.user.id, name=said.user.name)
            is_open = said.kind == "opened"
            return chat.MembershipChange(event_id=said.id, at=said.at, place=place, present=is_open, by=person)
        if said.kind == "invoke":
            place, claims = chat.Destination(chat_id=said.chat), {} if proof is None else proof.claims
            sender = chat.Sender(id=said.user.id, name=said.user.name, claims=claims)
            return chat.Invoke(event_id=said.id, at=said.at, sender=sender, place=place, name=said.data)
        inbound = super().read(event, bot, proof)
        if inbound is None or proof is None:
            return inbound
        return msgspec.structs.replace(inbound, sender=msgspec.structs.replace(inbound.sender, claims=proof.claims))

    async def edit(self, message_id: str, message: chat.OutboundMessage, destination: chat.Destination) -> None:
        await self._call("edit", {**build_body(message), "id": message_id, "live": message.live})

    async def answer_now(self, invoke: chat.Invoke, caller: Caller) -> chat.InvokeAnswer | None:
        if invoke.name != PING:
            return None
        return chat.InvokeAnswer(body=msgspec.json.encode({"pong": caller.claims["sub"]}))


class ExtendedPostbox(Postbox):
    """Signs who has sent an event, and lets people stop an answer."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped: set[str] = set()

    async def stop(self, who: ChatPerson) -> None:
        (*_, message) = await self.shown(who.chat_id)
        self._stopped.add(message.message_id)

    def answer(self, call: PlatformCall) -> Any:
        if call.path == "edit" and (body := call.json())["live"] and body["id"] in self._stopped:
            raise PlatformError(409)
        return super().answer(call)

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        try:
            user: Any = msgspec.json.decode(body)["user"]["id"]
        except (msgspec.DecodeError, TypeError, KeyError):
            user = "nobody"
        named = subject(user)
        mark = hmac.new(SECRET.encode(), named.encode(), hashlib.sha256).hexdigest()
        return {**super().signed(body, at=at), CLAIMS.decode(): f"{named}.{mark}"}


def subject(user_id: str) -> str:
    return f"subject-{user_id}"
