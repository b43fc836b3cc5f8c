"""Scenarios 4 and 5 of the design on the channel that they name, with a strict fake of its platform."""

import hmac
from typing import Any

import pytest
from agent_framework import Agent

from frontdesk import AgentFrameworkHost, ChannelCommand
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.telegram.channel import SECRET_HEADER
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent
from frontdesk_testing.telegram import fake_telegram
from tests.scenarios.telegram.bot import SECRET, TelegramHost, open_bot

TOKEN = "4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK"
HEADER = SECRET_HEADER.decode()
HOST_COMMANDS = {"new", "sessions", "resume", "cancel"}


async def start(context: Any) -> None:
    await context.reply("I am the concierge.")


COMMANDS = [ChannelCommand("start", "Introduce the bot", start)]


async def _commands_work(bot: TelegramHost, agent: EchoAgent) -> None:
    menu = {
        one["command"]: one["description"] for one in bot.fake.list_calls("setMyCommands")[0].parameters["commands"]
    }
    assert menu["start"] == "Introduce the bot"
    assert menu.keys() >= HOST_COMMANDS
    ann = bot.fake.user("Ann")
    said = [await bot.ask(ann, text) for text in ("/start", "one", "two", "/new", "three", "/sessions", "/resume 2")]
    assert said[0] == "I am the concierge."
    assert said[-1].startswith("We go on where we were")
    assert await bot.ask(ann, "/cancel") == "There is nothing to stop."
    heard = [[one.text for one in seen if one.role == "user"] for seen in agent.seen]
    assert heard == [["one"], ["one", "two"], ["three"]]


async def test_scenario_4_telegram_with_commands_by_polling() -> None:
    agent = EchoAgent()
    settings: Any = {"transport": "polling", "commands": COMMANDS, "register_native_commands": True}
    async with open_bot(agent, **settings) as bot:
        await _commands_work(bot, agent)


async def test_scenario_5_telegram_by_webhook_beside_http_channels() -> None:
    agent = EchoAgent()
    channels = [ResponsesChannel(), InvocationsChannel()]
    async with open_bot(agent, commands=COMMANDS, channels=channels, secret_token="") as bot:
        paths = {getattr(one, "path", "") for one in bot.host.app.routes}
        assert {"/telegram/webhook", "/responses", "/invocations"} <= paths
        await _commands_work(bot, agent)
        for path, body in (("/responses", {"input": "hi"}), ("/invocations", {"message": "hi"})):
            assert (await bot.http.post(path, json=body)).status_code == 200


def _update(number: int, text: str) -> dict[str, Any]:
    chat = {"id": 7, "type": "private", "first_name": "Ann"}
    sender = {"id": 7, "is_bot": False, "first_name": "Ann"}
    return {
        "update_id": number,
        "message": {"message_id": number, "date": 1, "chat": chat, "from": sender, "text": text},
    }


@pytest.mark.parametrize(
    ("settings", "paths"),
    [
        ({}, ["/telegram/webhook", "/telegram/events"]),
        ({"path": "/bots/telegram/webhook"}, ["/bots/telegram/webhook", "/bots/telegram/webhook/events"]),
        ({"path": "/bots/one"}, ["/bots/one/webhook", "/bots/one/events"]),
    ],
    ids=["default", "webhook", "path"],
)
async def test_audit_277_the_webhook_was_at_events_alone(settings: dict[str, Any], paths: list[str]) -> None:
    agent = EchoAgent()
    async with open_bot(agent, **settings) as bot:
        url = bot.fake.list_calls("setWebhook")[-1].parameters["url"]
        assert url == f"{bot.base_url}{paths[0]}"
        ann = bot.fake.user("Ann")
        assert await bot.ask(ann, "by the platform") == "by the platform"
        for number, path in enumerate(paths, 900):
            answer = await bot.http.post(path, json=_update(number, path), headers={HEADER: SECRET})
            assert answer.status_code == 200
            await bot.until(lambda path=path: path in [seen[-1].text for seen in agent.seen])
            assert (await bot.http.post(path, json=_update(999, path))).status_code == 401


def _agent() -> Agent:
    return Agent(client=ScriptedChatClient(lambda messages: "Good day!"), name="Concierge")


def test_audit_278_the_first_example_of_the_design_builds(tmp_path: Any) -> None:
    host = AgentFrameworkHost(
        target=_agent(), channels=[ResponsesChannel(), TelegramChannel(bot_token=TOKEN)], state_dir=tmp_path
    )
    assert [channel.name for channel in host.channels] == ["responses", "telegram"]


async def test_audit_278_the_secret_of_the_webhook_is_derived_from_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with fake_telegram() as fake:
        derived = hmac.new(fake.token.encode(), b"frontdesk telegram webhook secret", "sha256").hexdigest()
        async with open_bot(EchoAgent(), fake=fake, secret_token="") as bot:
            assert fake.list_calls("setWebhook")[-1].parameters["secret_token"] == derived
            assert await bot.ask(bot.fake.user("Ann"), "hello") == "hello"
            for wrong in (fake.token, "", derived[:-1], SECRET):
                answer = await bot.http.post("/telegram/webhook", json=_update(900, "x"), headers={HEADER: wrong})
                assert answer.status_code == 401
        # Another token has another secret, and one that is given wins.
        async with open_bot(EchoAgent(), fake=fake) as bot:
            assert fake.list_calls("setWebhook")[-1].parameters["secret_token"] == SECRET
    assert derived not in caplog.text
    assert derived not in repr(vars(TelegramChannel(bot_token=TOKEN)))
