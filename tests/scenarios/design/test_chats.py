"""Scenarios 4 and 5 of the design, on the message channel of the testing kit: commands, by polling and by webhook."""

from typing import Any

import pytest

from frontdesk import ChannelCommand
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.testing import EchoAgent
from tests.scenarios.messages.chat import open_chat


async def start(context: Any) -> None:
    await context.reply("I am the concierge.")


COMMANDS = [ChannelCommand("start", "Introduce the bot", start)]


@pytest.mark.parametrize("intake", ["polling", "webhook"])
async def test_the_menu_is_registered_at_start_and_the_commands_work(intake: Any) -> None:
    agent = EchoAgent()
    async with open_chat(agent, intake=intake, commands=COMMANDS, path="/telegram", name="telegram") as chat:
        shown = {one["name"]: one["description"] for one in (await chat.platform.state()).commands}
        assert shown["start"] == "Introduce the bot"
        assert "new" in shown
        ann = await chat.platform.user("Ann")
        for number, text in enumerate(["/start", "one", "two", "/new", "three"], 1):
            await chat.platform.say(ann, text)
            said = await chat.heard(ann.chat_id, number)
        assert said[0] == "I am the concierge."
    heard = [[one.text for one in seen if one.role == "user"] for seen in agent.seen]
    assert heard == [["one"], ["one", "two"], ["three"]]


async def test_a_webhook_stands_beside_http_doors() -> None:
    doors = [ResponsesChannel(), InvocationsChannel()]
    async with open_chat(EchoAgent(), commands=COMMANDS, channels=doors, path="/telegram", name="telegram") as chat:
        paths = {getattr(one, "path", "") for one in chat.host.app.routes}
        assert {"/telegram/events", "/responses", "/invocations"} <= paths
        ann = await chat.platform.user("Ann")
        await chat.platform.say(ann, "/start")
        assert await chat.heard(ann.chat_id) == ["I am the concierge."]
        answer = await chat.platform.http.post(f"{chat.base_url}/responses", json={"input": "hi"})
        assert answer.status_code == 200
