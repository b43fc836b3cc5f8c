import os

from agent import agent

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    ApprovalOptions,
    ApproverRule,
    ChannelIdentity,
    PostgresStateStore,
    ProcrastinateTaskRunner,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel

auth = ApiKeyAuth.from_file("keys.jsonl")
page = WebChatChannel(title="Support", prompts=["Where is order 7?", "Please refund order 7"])
telegram = TelegramChannel(
    bot_token=os.environ["BOT_TOKEN"], api_url=os.environ["TELEGRAM_API_URL"], transport="polling"
)
bob = ChannelIdentity(channel="telegram", native_id=os.environ["BOB"])
rule = ApproverRule(approvers=[bob], exclude_requester=True)
store = PostgresStateStore(os.environ["DATABASE_URL"])
host = AgentFrameworkHost(
    agent,
    channels=[InvocationsChannel(auth=auth), ResponsesChannel(auth=auth), page, telegram],
    approvals=ApprovalOptions(tools={"refund": rule}),
    store=store,
    runner=ProcrastinateTaskRunner(store),
    allow_anonymous=True,
)
