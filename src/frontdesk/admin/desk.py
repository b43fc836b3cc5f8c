"""Takes the requests of operators, and answers them as JSON trees: the same ones for a program and for the socket."""

from collections.abc import Mapping
from typing import Any, cast

from frontdesk.admin.actions import AdminActions, AdminParts, operator_name
from frontdesk.admin.queries import AdminQueries
from frontdesk.admin.speaking import Speaker, need_speaking
from frontdesk.data.identity import ChannelIdentity
from frontdesk.errors import InvalidRequestError


class AdminDesk:
    """Everything that an operator can ask for."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._queries = AdminQueries(parts.store)

    async def call(self, name: str, given: Mapping[str, Any]) -> Any:
        """Answer a request: `page`, `show`, `counts`, `state`, `act`, `deliver` or `run`, with its parameters."""
        if name == "page":
            page = await self._queries.page(
                _text(given, "kind"), _texts(given, "filters"), after=_optional(given, "after"), limit=_limit(given)
            )
            return page._asdict()
        if name == "show":
            named = _texts(given, "name")
            return await self._show(_text(given, "kind"), named, given)
        if name == "counts":
            return dict(await self._parts.deliveries.counts())
        if name == "state":
            path = getattr(self._parts.store, "path", None)
            return {"path": None if path is None else str(path)}
        if name == "act":
            actions = AdminActions(self._parts, _text(given, "by"))
            kind, action = _text(given, "kind"), _text(given, "action")
            seen, reason = _text(given, "seen"), _optional(given, "reason")
            return await actions.act(kind, action, _texts(given, "name"), seen=seen, reason=reason)
        if name in ("deliver", "run"):
            return await self._speak(name, given)
        raise InvalidRequestError(f"There is no call {name!r}.", param="call")

    async def _show(self, kind: str, named: Mapping[str, str], given: Mapping[str, Any]) -> Any:
        """Show a row; who has read what a question asks for is noted before it is shown."""
        content = given.get("content") is True
        shown = await self._queries.show(kind, named, content=content)
        if content and kind == "approvals":
            action = "exported" if given.get("export") is True else "read"
            await AdminActions(self._parts, _optional(given, "by") or "unknown").note_read(shown, action)
        return shown

    async def _speak(self, name: str, given: Mapping[str, Any]) -> Any:
        speaker = Speaker(need_speaking(self._parts.speaking), operator_name(_text(given, "by")))
        text, key = _text(given, "text"), _optional(given, "idempotency_key")
        to = _texts(given, "to")
        if name == "deliver" and set(to) == {"person"}:
            return await speaker.deliver(to["person"], text, idempotency_key=key)
        who = _identity(to)
        work = speaker.deliver if name == "deliver" else speaker.run
        return await work(who, text, idempotency_key=key)


def _identity(to: Mapping[str, str]) -> ChannelIdentity:
    if set(to) != {"channel", "id"} or not all(to.values()):
        raise InvalidRequestError("to must have a channel and the id of a user there.", param="to")
    return ChannelIdentity(channel=to["channel"], native_id=to["id"])


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if type(value) is not str:
        raise InvalidRequestError(f"{name} must be a text.", param=name)
    return value


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    return None if given.get(name) is None else _text(given, name)


def _texts(given: Mapping[str, Any], name: str) -> dict[str, str]:
    value: Any = given.get(name, {})
    if not isinstance(value, dict):
        raise InvalidRequestError(f"{name} must be an object.", param=name)
    texts = cast("dict[str, Any]", value)
    return {key: _text(texts, key) for key in texts}


def _limit(given: Mapping[str, Any]) -> int:
    limit = given.get("limit", 50)
    if type(limit) is not int:
        raise InvalidRequestError("limit must be a number.", param="limit")
    return limit
