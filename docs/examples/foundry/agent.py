"""A hosted agent: the Responses API and Invocations behind Foundry, with its history in the Foundry project.

A script stands in for the model; put a chat client of the framework in its place. On a laptop it has no platform: then
it answers callers of this machine, and keeps histories in files.
"""

import os
from pathlib import Path

from agent_framework import Agent

from frontdesk import (
    AgentFrameworkHost,
    FoundryHostedAgentHistoryProvider,
    PlatformAuth,
    TrustedEnvironment,
    foundry_response_id,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient

HOSTED = bool(os.environ.get("FOUNDRY_HOSTING_ENVIRONMENT"))


def credential():
    if not HOSTED:
        return None
    from azure.identity.aio import DefaultAzureCredential

    return DefaultAzureCredential()


def reply(messages):
    said = [message.text for message in messages if message.role == "user"]
    return f"You said: {said[-1]}. Before that, you said {len(said) - 1} other things."


history = FoundryHostedAgentHistoryProvider(credential=credential(), local_storage_root=Path.home() / "history")
concierge = Agent(client=ScriptedChatClient(reply), name="Concierge", context_providers=[history])
# In Foundry the platform is the only one who can connect, and says whose request it is.
auth = PlatformAuth(trusted=TrustedEnvironment()) if HOSTED else None

host = AgentFrameworkHost(
    target=concierge,
    channels=[
        ResponsesChannel(auth=auth, response_id_factory=foundry_response_id),
        InvocationsChannel(auth=auth),
    ],
    # The home directory lasts as long as the sandbox; what must outlast it belongs on Postgres.
    state_dir=Path.home() / "state",
    allow_in_process_runner=True,
    on_shutdown=[history.aclose],
)
