"""A host for a server. Put your own agent in the place of the stand-in, or the host that `frontdesk init` writes."""

import os

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.testing import EchoAgent


def build_host(state_dir: str = "state") -> AgentFrameworkHost:
    """Build the host: its state is in Postgres if there is a DATABASE_URL, and else in a directory."""
    auth = ApiKeyAuth.from_file(os.environ.get("KEY_FILE", "keys.jsonl"))
    channels = [ResponsesChannel(auth=auth), InvocationsChannel(auth=auth)]
    if "DATABASE_URL" not in os.environ:
        return AgentFrameworkHost(EchoAgent("Concierge"), channels=channels, state_dir=state_dir)
    from frontdesk import PostgresStateStore, ProcrastinateTaskRunner

    store = PostgresStateStore(os.environ["DATABASE_URL"])
    runner = ProcrastinateTaskRunner(store)
    return AgentFrameworkHost(EchoAgent("Concierge"), channels=channels, store=store, runner=runner)
