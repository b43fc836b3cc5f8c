"""A host for a server. Put your own agent in the place of the stand-in, or the host that `frontdesk init` writes."""

import os

from agent_framework import Agent

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient


def build_host(state_dir: str = "state") -> AgentFrameworkHost:
    """Build the host: its state is in Postgres if there is a DATABASE_URL, and else in a directory."""
    agent = Agent(client=ScriptedChatClient(lambda messages: messages[-1].text), name="Concierge")
    auth = ApiKeyAuth.from_file(os.environ.get("KEY_FILE", "keys.jsonl"))
    channels = [ResponsesChannel(auth=auth), InvocationsChannel(auth=auth)]
    if "DATABASE_URL" not in os.environ:
        return AgentFrameworkHost(agent, channels=channels, state_dir=state_dir)
    from frontdesk import PostgresStateStore, ProcrastinateTaskRunner

    store = PostgresStateStore(os.environ["DATABASE_URL"])
    runner = ProcrastinateTaskRunner(store)
    return AgentFrameworkHost(agent, channels=channels, store=store, runner=runner)
