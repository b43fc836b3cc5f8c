"""Answers the calls of bots, and keeps a record of them."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frontdesk_testing.telegram.bots import Bot
from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.files import Upload
from frontdesk_testing.telegram.methods import account, chats, media, messages, receiving
from frontdesk_testing.telegram.methods.call import Call, Method
from frontdesk_testing.telegram.records import Json
from frontdesk_testing.telegram.schema.calls import check_call
from frontdesk_testing.telegram.world import World

METHODS: dict[str, Method] = {
    **receiving.METHODS,
    **account.METHODS,
    **messages.METHODS,
    **media.METHODS,
    **chats.METHODS,
}
"""The methods that are acted on; those that the schema has besides are answered with 501."""
ELSEWHERE = frozenset(
    {"business_connection_id", "direct_messages_topic_id", "ephemeral_message_parameters", "suggested_post_parameters"}
)
"""The parameters that lead to chats and messages which the fake has not; a call with one is answered with 501."""


@dataclass(slots=True, eq=False)
class BotCall:
    """A decoded call."""

    bot: str
    """The username of the bot."""
    method: str
    parameters: Json
    """The parameters, decoded; as they came, if they were refused."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """The names of the files that came with it, by their parts."""
    result: Any = None
    error: ApiError | None = None


class BotApi:
    """Checks each call, acts on it, and records it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[BotCall] = []
        world.webhooks.on_reply = self._reply

    async def call(self, bot: Bot, method: str, given: Mapping[str, Any], uploads: Mapping[str, Upload]) -> BotCall:
        """Execute a call and return its record with the result or the error."""
        record = self._record(bot, method, given, uploads)
        try:
            record.parameters = check_call(record.method, given, uploads)
            record.result = await self._act(Call(self.world, bot, record.method, record.parameters, uploads))
        except ApiError as error:
            record.error = error
        self.world.change()
        return record

    def refuse(
        self, bot: Bot, method: str, given: Mapping[str, Any], uploads: Mapping[str, Upload], error: ApiError
    ) -> None:
        """Record a call that is rejected without being checked."""
        self._record(bot, method, given, uploads).error = error

    def _record(self, bot: Bot, method: str, given: Mapping[str, Any], uploads: Mapping[str, Upload]) -> BotCall:
        files = {part: upload.filename for part, upload in uploads.items()}
        record = BotCall(bot.user.username, canonical(method), dict(given), files)
        self.calls.append(record)
        self.world.change()
        return record

    async def _act(self, call: Call) -> Any:
        act = METHODS.get(call.method)
        for name in ELSEWHERE.intersection(call.given):
            raise ApiError(501, f"Not Implemented: the fake does not act on the parameter {name}")
        if act is None:
            raise ApiError(501, f"Not Implemented: the fake does not act on {call.method}")
        result: Any = act(call)
        return await result if inspect.isawaitable(result) else result

    async def _reply(self, bot: Bot, body: Json) -> None:
        given = {name: value for name, value in body.items() if name != "method"}
        await self.call(bot, str(body["method"]), given, {})


_CANONICAL = {name.lower(): name for name in METHODS}


def canonical(method: str) -> str:
    """Return a method name in the case of the schema. Bots may use any case."""
    return _CANONICAL.get(method.lower(), method)
