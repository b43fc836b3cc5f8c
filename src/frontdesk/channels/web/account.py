"""The account of a visitor: its identity and its links with other accounts."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from agent_framework import Content, Message
from starlette.routing import BaseRoute, Route

from frontdesk.asgi.messages import below, send_json
from frontdesk.channels.web.pages import DATA_HEADERS
from frontdesk.channels.web.parse import decode, session_key
from frontdesk.channels.web.render import storable
from frontdesk.channels.web.wire import (
    MAIN,
    AnswerLinkBody,
    BeginLinkBody,
    Elsewhere,
    EmptyBody,
    EnterCodeBody,
    Overheard,
    ShownFile,
)
from frontdesk.chat.i18n.wording import person_phrase
from frontdesk.errors import InvalidRequestError, LinkRequiredError, NotFoundError, UnsupportedError
from frontdesk.framework.contents import file_name
from frontdesk.http.endpoint import BodyDeadline, HttpCall, HttpEndpoint
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.conversation import TranscriptMessage
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.link import LinkChallenge, LinkQuestion, LinkRecord

_MAX_BYTES = 2_048
_MAX_CODE_LENGTH = 100
_MAX_CHALLENGE_LENGTH = 300
_ANSWERS = ("confirm", "yes", "reject", "no", "cancel")
"""The words by which a question is answered in a chat; they are no codes."""
_NO_LINKER = "This host has no identity linker."


class Account:
    """Serves the account requests of the page. They act for the visitor in the cookie, not for the linked person."""

    def __init__(self, path: str, context: ChannelContext, deadline: BodyDeadline) -> None:
        self._path, self._context = path, context
        self._deadline = deadline

    def routes(self, endpoint: Callable[..., HttpEndpoint]) -> list[BaseRoute]:
        return [
            Route("/api/account", endpoint=endpoint(GET=self.show)),
            Route("/api/account/link", endpoint=endpoint(POST=self.begin)),
            Route("/api/account/code", endpoint=endpoint(POST=self.enter)),
            Route("/api/account/answer", endpoint=endpoint(POST=self.answer)),
            Route("/api/account/unlink", endpoint=endpoint(POST=self.unlink)),
        ]

    async def show(self, call: HttpCall) -> None:
        await self._answer(call)

    async def begin(self, call: HttpCall) -> None:
        body = await self._body(call, BeginLinkBody)
        # A frame can't be gone back to: its sign-in is in a tab of its own.
        back = None if body.embedded else below(call.scope, self._path).decode() or "/"
        challenge = await self._context.links.begin(call.caller, return_to=back)
        await self._answer(call, challenge=challenge)

    async def enter(self, call: HttpCall) -> None:
        """Accept a code of another account. Nothing is linked before its owner has confirmed."""
        code = (await self._body(call, EnterCodeBody)).code.strip()
        if not code or len(code) > _MAX_CODE_LENGTH or code.partition(" ")[0].lower() in _ANSWERS:
            raise InvalidRequestError("Invalid code.", param="code", code="code_refused")
        await self._complete(call, code)

    async def answer(self, call: HttpCall) -> None:
        """Confirm or reject the other side of a link, as displayed."""
        body = await self._body(call, AnswerLinkBody)
        if not 0 < len(body.challenge_id) <= _MAX_CHALLENGE_LENGTH or " " in body.challenge_id:
            raise InvalidRequestError("Question not found.", param="challenge_id")
        await self._complete(call, f"{'confirm' if body.confirm else 'reject'} {body.challenge_id}")

    async def unlink(self, call: HttpCall) -> None:
        """Separate the visitor from their other accounts."""
        await self._body(call, EmptyBody)
        parted = await self._context.links.unlink(call.caller)
        await self._answer(call, outcome="parted" if parted else "alone")

    async def _complete(self, call: HttpCall, proof: str) -> None:
        ended = await self._context.links.complete(call.caller, proof)
        if isinstance(ended, LinkRecord):
            return await self._answer(call, outcome="linked")
        await self._answer(call, outcome="" if ended is not None else "given_up")

    async def _body(self, call: HttpCall, kind: type[Any]) -> Any:
        return decode(kind, await call.json_body(limit=_MAX_BYTES, deadline=self._deadline))

    async def _answer(self, call: HttpCall, *, challenge: LinkChallenge | None = None, outcome: str = "") -> None:
        status = await self._context.links.status(call.caller)
        if status is None and call.scope["method"] != "GET":
            raise UnsupportedError(_NO_LINKER)
        body: dict[str, Any] = {
            "you": _render_identity(call.caller.identity),
            "way": None,
            "linked": False,
            "others": [],
        }
        if status is not None:
            body |= {
                "way": status.way,
                "linked": status.account.linked,
                "name": None if status.name is None else storable(status.name),
                "others": [_render_identity(other) for other in status.account.others],
                "question": None if status.question is None else self._question(status.question),
            }
        if challenge is not None and challenge.url is not None:
            body["url"] = challenge.url
        elif challenge is not None and challenge.code is not None:
            body |= {"code": challenge.code, "seconds_left": challenge.expires_at - self._context.now()}
        await send_json(call.send, 200, msgspec.json.encode({**body, "outcome": outcome}), DATA_HEADERS)

    def _question(self, question: LinkQuestion) -> dict[str, Any]:
        return {
            "challenge_id": question.challenge_id,
            "other": _render_identity(question.other),
            "waits_for": question.waits_for,
            "seconds_left": max(0.0, question.expires_at - self._context.now()),
        }


def _render_identity(identity: ChannelIdentity) -> dict[str, str]:
    """Return an identity with a short plain form of its name, which its owner has chosen."""
    values = person_phrase(identity).values
    return {
        "channel": storable(identity.channel),
        "id": storable(values["id"]),
        "name": storable(values.get("name", "")),
    }


MAX_TURNS = 50
_MAX_MESSAGE_LENGTH = 32_000
"""The number of characters that are shown of one message."""
NOTHING = Elsewhere()


async def read_elsewhere(
    context: ChannelContext, channel: str, caller: Caller, chat: str, before: int | None = None
) -> Elsewhere:
    """Return the messages of a person on other channels: the last turns, or those before a position.

    Messages that are already in the mailbox are omitted. The result is empty for a person without an account on another
    channel.
    """
    with suppress(LinkRequiredError, NotFoundError, UnsupportedError):
        others = (await context.links.whoami(caller)).others
        if all(other.channel == channel for other in others):
            return NOTHING
        key = None if chat == MAIN else session_key(chat)
        page = await context.sessions.transcript(caller, key=key, before=before, limit=MAX_TURNS)
        times = [said.at for said in page.messages if said.at is not None]
        # Of what was said before the first time that is known, it is only known that it was earlier.
        first = min(times, default=0.0)
        messages = [
            shown
            for place, said in enumerate(page.messages)
            if channel not in said.shown_on
            and (shown := _overheard(said, f"{page.before or 0}.{place}", first)) is not None
        ]
        return Elsewhere(messages=messages, before=page.before, since=first if page.before is not None else 0.0)
    return NOTHING


def _overheard(said: TranscriptMessage, place: str, first: float) -> Overheard | None:
    """Return a message in its display form, or None for non-messages such as tool results."""
    message: Message = said.message
    if message.role not in ("user", "assistant") or said.channel is None:
        return None
    text = storable("".join(content.text or "" for content in message.contents if content.type == "text"))[
        :_MAX_MESSAGE_LENGTH
    ]
    files = tuple(_file(content) for content in message.contents if content.type == "data")
    if not text.strip() and not files:
        return None
    at = first if said.at is None else said.at
    role: Any = message.role
    return Overheard(id=place, role=role, at=at, origin=said.channel, text=text, files=files)


def _file(content: Content) -> ShownFile:
    """Return a file by name only. Its bytes belong to another channel."""
    return ShownFile(id="", media_type=storable(content.media_type or ""), name=storable(file_name(content)))
