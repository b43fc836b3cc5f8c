"""Each caller may ask ten times a minute; two answers are made at once for one caller, and fifty for all."""

from frontdesk import AgentFrameworkHost, HttpLimits, RateLimit
from frontdesk.channels.invocations import InvocationsChannel


async def echo(text: str) -> str:
    return text


limits = HttpLimits(per_caller=RateLimit(10, per_seconds=60), max_running_per_caller=2, max_running=50)
host = AgentFrameworkHost(target=echo, channels=[InvocationsChannel(limits=limits)])
