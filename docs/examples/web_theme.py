"""A page with a colour, a font and a logo of its own."""

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel, WebTheme

# The path of a file does as well.
LOGO = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="3" fill="#8a3b12"/></svg>'


async def echo(text: str) -> str:
    return f"You said: {text}"


page = WebChatChannel(
    title="The Marmalade",
    greeting="Good day! What can we do for you?",
    prompts=["When is breakfast?", "Book a room"],
    theme=WebTheme(accent="#8a3b12", radius=6, font="Georgia, serif", logo=LOGO),
)
host = AgentFrameworkHost(target=echo, channels=[InvocationsChannel(), page])
