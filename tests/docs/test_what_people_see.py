"""The page with pictures has a row for every channel, and shows what a host sends."""

import json
from pathlib import Path

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRule, ChannelIdentity
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk_testing import serving
from frontdesk_testing.telegram import fake_telegram
from tests.docs.pages import PAGES, ROOT, blocks, links, tables
from tests.docs.running import example_module

PAGE = ROOT / "docs/guides/what-people-see.md"
CHANNELS = ROOT / "src/frontdesk/channels"


def test_the_page_has_a_row_for_every_channel() -> None:
    channels = {path.parent.name.replace("_", "") for path in CHANNELS.glob("*/channel.py")}
    rows = {row[0].strip("`").removesuffix("Channel").lower() for row in tables(PAGE)["What people see"]}
    assert {name.removesuffix("chat") if name == "webchat" else name for name in rows} == channels


def test_every_picture_is_on_a_page() -> None:
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page) if link.endswith(".png")}
    assert shown == set((ROOT / "docs/images").glob("*.png"))


async def test_callers_get_what_the_page_shows() -> None:
    shown = [json.loads(block.text) for block in blocks("json") if block.page == PAGE]
    agent = example_module(Path(ROOT / "docs/examples/team/agent.py")).agent
    async with fake_telegram() as telegram:
        bob = telegram.user("Bob", user_id=274898002)
        chat = TelegramChannel(bot_token=telegram.token, api_url=telegram.url, transport="polling", live="off")
        rule = ApproverRule(approvers=[ChannelIdentity(channel="telegram", native_id=str(bob.id))])
        channels = [InvocationsChannel(), ResponsesChannel(), chat]
        host = AgentFrameworkHost(agent, channels=channels, approvals=ApprovalOptions(tools={"refund": rule}))
        async with serving(host) as client:
            telegram.say(bob, "Hello")
            await telegram.until(lambda: bool(telegram.shown(telegram.private(bob)).answers))
            (approval,) = (await client.invoke("Please refund order 7"))["approvals"]
            answer = await client.http.post("/v1/responses", json={"input": "Please refund order 7"})
            item = answer.raise_for_status().json()["output"][-1]
    (expected,) = shown[0]["approvals"]
    assert {name: approval[name] for name in expected} | {"id": "apr_1"} == expected
    assert {name: item[name] for name in shown[1]} | {"id": "apr_1"} == shown[1]
