"""The account of a visitor: who they are, and how they are linked with their other accounts."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Route

from frontdesk.abc.channel import ChannelContext
from frontdesk.channels.web.pages import DATA_HEADERS
from frontdesk.channels.web.parse import decode
from frontdesk.channels.web.render import storable
from frontdesk.channels.web.wire import AnswerLinkBody, BeginLinkBody, EmptyBody, EnterCodeBody
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import LinkChallenge, LinkQuestion, LinkRecord
from frontdesk.errors import InvalidRequestError, UnsupportedError
from frontdesk.kit.chat.people import person_phrase
from frontdesk.kit.http.asgi import below, send_json
from frontdesk.kit.http.endpoint import BodyDeadline, HttpCall, HttpEndpoint

_MOST_BYTES = 2_048
_LONGEST_CODE = 100
_LONGEST_CHALLENGE = 300
_ANSWERS = ("confirm", "yes", "reject", "no", "cancel")
"""The words by which a question is answered in a chat; they are no codes."""
_NO_LINKER = "This host has nothing to link accounts with."


class Account:
    """Answers what the page asks about its visitor, as whom the cookie names and not as the person behind it."""

    def __init__(self, path: str, context: ChannelContext, deadline: BodyDeadline) -> None:
        self._path, self._context = path, context
        self._deadline = deadline

    def routes(self, endpoint: Callable[..., HttpEndpoint]) -> list[BaseRoute]:
        """Return the routes below the channel's path."""
        return [
            Route("/api/account", endpoint=endpoint(GET=self.show)),
            Route("/api/account/link", endpoint=endpoint(POST=self.begin)),
            Route("/api/account/code", endpoint=endpoint(POST=self.enter)),
            Route("/api/account/answer", endpoint=endpoint(POST=self.answer)),
            Route("/api/account/unlink", endpoint=endpoint(POST=self.unlink)),
        ]

    async def show(self, call: HttpCall) -> None:
        """Answer with who the visitor is, and with the question that waits for them."""
        await self._answer(call)

    async def begin(self, call: HttpCall) -> None:
        """Begin a link: answer with a code to enter elsewhere, or with the address of a sign-in."""
        body = await self._body(call, BeginLinkBody)
        # A frame can't be gone back to: its sign-in is in a tab of its own.
        back = None if body.embedded else below(call.scope, self._path).decode() or "/"
        challenge = await self._context.begin_link(call.caller, return_to=back)
        await self._answer(call, challenge=challenge)

    async def enter(self, call: HttpCall) -> None:
        """Take a code of another account; nothing is linked before its owner was shown and confirmed."""
        code = (await self._body(call, EnterCodeBody)).code.strip()
        if not code or len(code) > _LONGEST_CODE or code.partition(" ")[0].lower() in _ANSWERS:
            raise InvalidRequestError("That is no code.", param="code", code="code_refused")
        await self._complete(call, code)

    async def answer(self, call: HttpCall) -> None:
        """Confirm or refuse the other side of a link, as it was shown."""
        body = await self._body(call, AnswerLinkBody)
        if not 0 < len(body.challenge_id) <= _LONGEST_CHALLENGE or " " in body.challenge_id:
            raise InvalidRequestError("There is no such question.", param="challenge_id")
        await self._complete(call, f"{'confirm' if body.confirm else 'reject'} {body.challenge_id}")

    async def unlink(self, call: HttpCall) -> None:
        """Separate the visitor from their other accounts."""
        await self._body(call, EmptyBody)
        parted = await self._context.unlink(call.caller)
        await self._answer(call, outcome="parted" if parted else "alone")

    async def _complete(self, call: HttpCall, proof: str) -> None:
        ended = await self._context.complete_link(call.caller, proof)
        if isinstance(ended, LinkRecord):
            return await self._answer(call, outcome="linked")
        await self._answer(call, outcome="" if ended is not None else "given_up")

    async def _body(self, call: HttpCall, kind: type[Any]) -> Any:
        return decode(kind, await call.json_body(limit=_MOST_BYTES, deadline=self._deadline))

    async def _answer(self, call: HttpCall, *, challenge: LinkChallenge | None = None, outcome: str = "") -> None:
        status = await self._context.link_status(call.caller)
        if status is None and call.scope["method"] != "GET":
            raise UnsupportedError(_NO_LINKER)
        body: dict[str, Any] = {"you": _shown(call.caller.identity), "way": None, "linked": False, "others": []}
        if status is not None:
            body |= {
                "way": status.way,
                "linked": status.account.linked,
                "name": None if status.name is None else storable(status.name),
                "others": [_shown(other) for other in status.account.others],
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
            "other": _shown(question.other),
            "waits_for": question.waits_for,
            "seconds_left": max(0.0, question.expires_at - self._context.now()),
        }


def _shown(identity: ChannelIdentity) -> dict[str, str]:
    """Return an identity with the short, plain form of its name, which its owner has chosen."""
    values = person_phrase(identity).values
    return {
        "channel": storable(identity.channel),
        "id": storable(values["id"]),
        "name": storable(values.get("name", "")),
    }
