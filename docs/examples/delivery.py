"""Answers that go elsewhere: a backend asks over HTTP, and the answer appears on a screen of the house.

frontdesk serve docs/examples/delivery.py:host
"""

from frontdesk import (
    AgentFrameworkHost,
    Channel,
    ChannelContribution,
    ChannelIdentity,
    HostedRunResult,
    PushesParts,
    PushPart,
    PushRefusedError,
    PushTerms,
    ResponseTarget,
    RetryPolicy,
)
from frontdesk.channels.invocations import InvocationsChannel

SCREENS: dict[str, list[str]] = {"reception": [], "bar": []}
"""What each screen shows; it is printed too, where a real channel would call a platform."""


class ScreenChannel(Channel, PushesParts):
    """Shows texts of at most 40 characters on the screens of the house."""

    name = "screens"
    path = "/screens"
    requires_auth_when_public = False
    # A screen shows a part once, however often it is sent with the same key.
    push_is_idempotent = True
    push_terms = PushTerms(per_destination=50.0, retry=RetryPolicy(attempts=5, first_delay=0.1))

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def contribute(self, context) -> ChannelContribution:
        return ChannelContribution()

    def parts(self, result: HostedRunResult) -> list[str]:
        """How a result is cut is decided once, before anything is sent."""
        text = result.result.text
        return [text[start : start + 40] for start in range(0, len(text), 40)]

    async def push_part(self, part: PushPart) -> str | None:
        screen = SCREENS.get(part.identity.native_id)
        if screen is None:
            raise PushRefusedError("There is no such screen.", code="no_such_screen")
        if part.idempotency_key not in self._shown:
            self._shown.add(part.idempotency_key)
            screen.append(part.content)
            print(f"on the screen {part.identity.native_id}: {part.content}", flush=True)
        return f"line {len(screen)}"


def hook(request, *, target, protocol_request):
    """Only the operator's own code may send an answer to somebody else; a caller can't."""
    screen = request.metadata.get("screen")
    if screen is None:
        return request
    there = ChannelIdentity(channel="screens", native_id=screen)
    return request.replace(response_target=ResponseTarget.identity(there, echo_input=True))


async def answer(text: str) -> str:
    return f"You said: {text}"


host = AgentFrameworkHost(target=answer, channels=[InvocationsChannel(run_hook=hook), ScreenChannel()])

if __name__ == "__main__":
    host.serve()
