"""Profile 2, link first: on one page people come in once they have linked it with the page where they are known.

frontdesk serve docs/examples/profile_link.py:host

Open http://127.0.0.1:8000/work and http://127.0.0.1:8000/chat side by side, and write in both.
"""

from frontdesk import AgentFrameworkHost, AuthPolicy, OneTimeCodeIdentityLinker
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


# Two pages stand in for two chat apps, such as Teams and Telegram: any chat channel can be linked in the same way.
work = WebChatChannel(name="work", path="/work", title="Work")
chat = WebChatChannel(name="chat", path="/chat", title="Chat", allowlist=AuthPolicy.require_link())
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel(), work, chat], linker=OneTimeCodeIdentityLinker())
