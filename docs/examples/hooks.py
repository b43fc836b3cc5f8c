"""Three hooks around a workflow: one makes its typed input, one changes the answer, one the pieces of a stream."""

from dataclasses import dataclass

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, WorkflowRunResult, handler

from frontdesk import AgentFrameworkHost, ChannelRequest, ChannelResponseContext, HostedRunResult, RequestError
from frontdesk.channels.invocations import InvocationsChannel


@dataclass
class Stay:
    """What the workflow takes."""

    nights: int
    guest: str


class Price(Executor):
    @handler
    async def price(self, stay: Stay, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"{stay.guest}: {stay.nights * 120} euros")


def build():
    return WorkflowBuilder(name="price", start_executor=Price(id="price"), output_from="all").build()


class TooLongError(RequestError):
    """We take bookings for up to 30 nights."""

    status = 422
    code = "stay_too_long"


def to_stay(request: ChannelRequest, *, target, protocol_request) -> ChannelRequest:
    """Before the request is admitted: from what the caller sent to what the workflow takes."""
    nights = int(request.input["nights"])
    if nights > 30:
        raise TooLongError(param="nights")
    guest = protocol_request.headers.get("x-guest", "Guest")
    return request.replace(input=Stay(nights=nights, guest=guest))


def in_symbols(text: str) -> str:
    return text.replace("euros", "€")


async def shorten(
    result: HostedRunResult[WorkflowRunResult], *, context: ChannelResponseContext
) -> HostedRunResult[WorkflowRunResult]:
    """After it was recorded, on a copy: what this channel shows of the result."""
    for event in result.result:
        if event.type == "output":
            event.data = in_symbols(event.data)
    return result


def shorten_update(update):
    """Each piece of a stream, on a copy; `None` would drop it."""
    if update.type == "output":
        update.data = in_symbols(update.data)
    return update


host = AgentFrameworkHost(
    target=build,
    channels=[InvocationsChannel(run_hook=to_stay, response_hook=shorten, stream_transform_hook=shorten_update)],
)
