"""The actions of a test on the platform, and its queries."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from frontdesk_testing.messages.platform.bot import Bot
from frontdesk_testing.messages.platform.faults import Fault, Faults
from frontdesk_testing.messages.platform.journal import Journal
from frontdesk_testing.messages.platform.records import RefusedError, Settings
from frontdesk_testing.messages.platform.webhooks import Webhooks
from frontdesk_testing.messages.platform.world import World


class Platform:
    """The parts of the platform."""

    def __init__(self, journal: Journal, settings: Settings) -> None:
        self.world = World(settings)
        self.bot = Bot(self.world, journal)
        self.faults = Faults()
        self.webhooks = Webhooks(self.world, self.bot)


Action = Callable[[Platform, dict[str, Any]], Awaitable[Any]]
Question = Callable[[Platform, Mapping[str, str]], Awaitable[Any]]


async def _user(platform: Platform, body: dict[str, Any]) -> Any:
    user = platform.world.add_user(body.get("user_id", ""), body["name"], body.get("locale", ""))
    return {"user_id": user.user_id, "name": user.name, "chat_id": platform.world.direct(user.user_id)}


async def _group(platform: Platform, body: dict[str, Any]) -> Any:
    return platform.world.add_group(body["title"], body["members"], body.get("chat_id", ""), body.get("admins", ()))


async def _say(platform: Platform, body: dict[str, Any]) -> Any:
    event = platform.world.say(body.pop("user_id"), body.pop("chat_id", ""), body)
    platform.webhooks.deliver(event)
    return event


async def _edit(platform: Platform, body: dict[str, Any]) -> Any:
    event = platform.world.edit_own(body["user_id"], body["chat_id"], body["message_id"], body["text"])
    platform.webhooks.deliver(event)
    return event


async def _click(platform: Platform, body: dict[str, Any]) -> Any:
    event = platform.world.click(body["user_id"], body["chat_id"], body["message_id"], body["data"])
    platform.webhooks.deliver(event)
    return event


async def _report(platform: Platform, body: dict[str, Any]) -> Any:
    event = platform.world.report(body["chat_id"], body["message_id"], body["status"], body["reason"])
    platform.webhooks.deliver(event)
    return event


async def _fault(platform: Platform, body: dict[str, Any]) -> Any:
    fault = msgspec.convert(body, Fault)
    if fault.user_id:
        fault = msgspec.structs.replace(fault, chat_id=platform.world.direct(fault.user_id))
    platform.faults.add(fault)
    return {}


async def _clear_faults(platform: Platform, body: dict[str, Any]) -> Any:
    platform.faults.clear()
    return {}


async def _settings(platform: Platform, body: dict[str, Any]) -> Any:
    for name, value in body.items():
        if name not in Settings.__struct_fields__:
            raise RefusedError(400, "bad_request", f"There is no setting {name!r}.")
        setattr(platform.world.settings, name, value)
    return platform.world.settings


async def _redeliver(platform: Platform, body: dict[str, Any]) -> Any:
    state = platform.world.events[body["event_id"]]
    await platform.webhooks.attempt(state)
    return state


async def _release(platform: Platform, body: dict[str, Any]) -> Any:
    await platform.webhooks.release(body["event_ids"])
    return {}


async def _log(platform: Platform, query: Mapping[str, str]) -> Any:
    return platform.bot.journal.entries[int(query.get("after", "0")) :]


async def _chat(platform: Platform, query: Mapping[str, str]) -> Any:
    return list(platform.world.place(query["chat_id"]).messages.values())


async def _events(platform: Platform, query: Mapping[str, str]) -> Any:
    world = platform.world
    return list((world.open if "open" in query else world.events).values())


async def _state(platform: Platform, query: Mapping[str, str]) -> Any:
    return {
        "changes": platform.world.changes,
        "accepted": len(platform.bot.journal.entries),
        "duplicates": platform.bot.duplicates,
        "struck": platform.faults.counts(),
        "webhook_verified": platform.webhooks.verified,
        "commands": platform.bot.menu("", ""),
        "clicks": platform.world.clicks,
        "private": platform.world.private,
    }


async def _menu(platform: Platform, query: Mapping[str, str]) -> Any:
    return platform.bot.menu(query.get("scope", ""), query.get("locale", ""))


async def _wait_for_change(platform: Platform, query: Mapping[str, str]) -> Any:
    return await platform.world.wait_for_change(int(query["after"]), min(float(query.get("seconds", "10")), 30.0))


ACTIONS: dict[str, Action] = {
    "users": _user,
    "groups": _group,
    "say": _say,
    "edit": _edit,
    "click": _click,
    "report": _report,
    "faults": _fault,
    "faults/clear": _clear_faults,
    "settings": _settings,
    "redeliver": _redeliver,
    "release": _release,
}

QUESTIONS: dict[str, Question] = {
    "log": _log,
    "chat": _chat,
    "events": _events,
    "state": _state,
    "menu": _menu,
    "changed": _wait_for_change,
}
