"""Handles operators' requests and returns JSON trees, for Python programs and for the socket."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from frontdesk.access.joining import JoinStep
from frontdesk.access.principals import REFRESH_SECONDS
from frontdesk.admin.actions import AdminActions, AdminParts, operator_name
from frontdesk.admin.messages import AdminMessaging, require_messaging
from frontdesk.admin.queries import AdminQueries
from frontdesk.errors import InvalidRequestError
from frontdesk.loggers import audit
from frontdesk.models.identity import ChannelIdentity

MAX_STEPS = 200
"""The most identities that one call lists or joins."""


class AdminPrincipals:
    """Acts as one operator: `list` the steps, `join` each, `switch` the hosts to the rule, `close` the rest."""

    def __init__(self, parts: AdminParts, by: str) -> None:
        self._parts = parts
        self._by = operator_name(by)

    async def act(self, action: str, *, after: str | None, limit: int) -> dict[str, Any]:
        """Perform an action for a page of identities. Return its steps and the position of the next page."""
        if action == "switch":
            return await self._switch()
        if action not in ("list", "join", "close"):
            raise InvalidRequestError(f"Unknown action {action!r} on principals.", param="action")
        joiner = self._parts.joiner
        steps, last = await joiner.steps(_place(after), min(max(limit, 1), MAX_STEPS))
        for step in steps if action != "list" else ():
            if step.outcome != "conflict":
                await joiner.join(step, by=self._by)
                if action == "close":
                    await joiner.close(step)
        place = None if last is None else msgspec.json.encode(last).decode()
        return {"items": [_render_step(step) for step in steps], "next": place, "channels": await joiner.sources()}

    async def _switch(self) -> dict[str, Any]:
        rule = await self._parts.joiner.rule.join()
        await self._parts.reload_principals()
        audit.info("principals of channels with a shared auth joined: actor=%s", self._by)
        # Twice the interval, so that every host has looked once even if one look was late.
        seconds = 0.0 if self._parts.store.lease_seconds is None else 2 * REFRESH_SECONDS
        return {"homes": dict(rule.homes), "wait_seconds": seconds}


def _place(after: str | None) -> tuple[str, str] | None:
    if after is None:
        return None
    try:
        return msgspec.json.decode(after, type=tuple[str, str])
    except msgspec.DecodeError:
        raise InvalidRequestError("Invalid cursor for principals.", param="after") from None


def _render_step(step: JoinStep) -> dict[str, Any]:
    return {
        "outcome": step.outcome,
        "id": step.identity.native_id,
        "channel": step.identity.channel,
        "joins": step.home.channel,
        "person": step.key,
        "person_there": step.home_key,
        "reason": step.reason,
    }


class AdminService:
    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._queries = AdminQueries(parts.store)

    async def call(self, name: str, given: Mapping[str, Any]) -> Any:
        """Handle a request: `page`, `show`, `counts`, `state`, `act`, `principals`, `deliver` or `run`."""
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
        if name == "principals":
            joining = AdminPrincipals(self._parts, _text(given, "by"))
            return await joining.act(_text(given, "action"), after=_optional(given, "after"), limit=_limit(given))
        raise InvalidRequestError(f"Unknown call {name!r}.", param="call")

    async def _show(self, kind: str, named: Mapping[str, str], given: Mapping[str, Any]) -> Any:
        """Return a row. Reading the content of a question is written to the audit log first."""
        content = given.get("content") is True
        shown = await self._queries.show(kind, named, content=content)
        if content and kind == "approvals":
            action = "exported" if given.get("export") is True else "read"
            await AdminActions(self._parts, _optional(given, "by") or "unknown").note_read(shown, action)
        return shown

    async def _speak(self, name: str, given: Mapping[str, Any]) -> Any:
        speaker = AdminMessaging(require_messaging(self._parts.speaking), operator_name(_text(given, "by")))
        text, key = _text(given, "text"), _optional(given, "idempotency_key")
        to = _texts(given, "to")
        if name == "deliver" and set(to) == {"person"}:
            return await speaker.deliver(to["person"], text, idempotency_key=key)
        who = _identity(to)
        work = speaker.deliver if name == "deliver" else speaker.run
        return await work(who, text, idempotency_key=key)


def _identity(to: Mapping[str, str]) -> ChannelIdentity:
    if set(to) != {"channel", "id"} or not all(to.values()):
        raise InvalidRequestError("to requires a channel and the id of a user on it.", param="to")
    return ChannelIdentity(channel=to["channel"], native_id=to["id"])


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if type(value) is not str:
        raise InvalidRequestError(f"{name} must be a string.", param=name)
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
