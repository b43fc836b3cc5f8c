"""Runs that outlast their connection, and their process: state on disk, and a decision for each kind of request."""

import asyncio
import tempfile

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel


async def storyteller(text: str):
    """Tells what it was given word by word, as a model does."""
    for word in text.split():
        await asyncio.sleep(0.01)
        yield f"{word} "


def hook(request, *, target, protocol_request):
    # A question that is only asked can be asked again. With tools that change things, leave it at `fail`.
    return request.replace(on_interrupt="restart")


host = AgentFrameworkHost(
    target=storyteller,
    channels=[InvocationsChannel(run_hook=hook), ResponsesChannel()],
    state_dir=tempfile.mkdtemp(),
    on_interrupt="fail",
    max_background_runs=50,
    max_waiting_background_runs=500,
    max_background_runs_per_caller=10,
)

if __name__ == "__main__":
    host.serve()
