"""Every kind of target that hears a conversation: each repeats the last words, and notes all that it had in mind."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_framework import (
    Agent,
    AgentExecutor,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    Content,
    Message,
    WorkflowBuilder,
    tool,
)

from frontdesk.scripted import ScriptedChatClient
from tests.scenarios.cast import call


@dataclass
class Mind:
    """What the model of a target was told, a list of texts for each call; and what its tool has really paid."""

    heard: list[list[str]] = field(default_factory=list[list[str]])
    paid: list[int] = field(default_factory=list[int])
    results: list[str] = field(default_factory=list[str])
    """What the tools have answered, as the model was told."""

    def reply(self, messages: Sequence[Message]) -> str | list[Content]:
        """Repeats the last words; `pay 5` calls the tool, and its result is told."""
        self.heard.append([text for text in map(_text, messages) if text])
        said = _text(messages[-1])
        self.results += [str(one.result) for one in messages[-1].contents if one.type == "function_result"]
        if messages[-1].role == "tool":
            return "it is paid"
        if said.startswith("pay"):
            amount = int(said.removeprefix("pay "))
            return [call("pay", f"call-{amount}", amount=amount)]
        return f"you said {said}"

    def agent(self) -> Agent:
        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            self.paid.append(amount)
            return f"paid {amount}"

        return Agent(ScriptedChatClient(self.reply), name="Concierge", tools=[pay])

    def builder(self) -> WorkflowBuilder:
        executor = AgentExecutor(self.agent(), id="concierge")
        return WorkflowBuilder(name="desk", start_executor=executor, output_from=[executor])


def _text(message: Message) -> str:
    # The framework's `Message.text` puts blanks between the pieces.
    return "".join(content.text or "" for content in message.contents if content.type == "text")


class DuckTyped:
    """Anything of the shape `SupportsAgentRun`; what it has in mind is what it remembers, and then what it is told."""

    id = name = "duck"
    description = "Repeats."

    def __init__(self, mind: Mind) -> None:
        self.mind = mind

    def run(self, messages: Any = None, *, stream: bool = False, session: AgentSession | None = None) -> Any:
        known = self.get_known(session)
        known.extend(messages)
        answer = str(self.mind.reply(known))
        known.append(Message("assistant", [answer]))
        return _updates(answer) if stream else _response(answer)

    def get_known(self, session: AgentSession | None) -> list[Message]:
        """What it remembers of the session, to be added to."""
        return []

    def create_session(self, **options: Any) -> AgentSession:
        return AgentSession(**options)

    def get_session(self, service_session_id: str, **options: Any) -> AgentSession:
        return AgentSession(service_session_id=service_session_id, **options)


class WithoutSession(DuckTyped):
    """Has no use for a session."""

    def run(self, messages: Any = None, *, stream: bool = False) -> Any:  # type: ignore[override]
        return super().run(messages, stream=stream)


class InState(DuckTyped):
    """Remembers in its session's state, as the framework's own example of a custom agent does."""

    def get_known(self, session: AgentSession | None) -> list[Message]:
        return [] if session is None else session.state.setdefault("memory", {}).setdefault("messages", [])


class ById(DuckTyped):
    """Remembers by the id of the session, in itself."""

    def __init__(self, mind: Mind) -> None:
        super().__init__(mind)
        self.memory: dict[str, list[Message]] = {}

    def get_known(self, session: AgentSession | None) -> list[Message]:
        return [] if session is None else self.memory.setdefault(session.session_id, [])


class AtService(DuckTyped):
    """Remembers at a service, under an id that the service has given."""

    service: dict[str, list[Message]]

    def __init__(self, mind: Mind) -> None:
        super().__init__(mind)
        self.service = {}

    def get_known(self, session: AgentSession | None) -> list[Message]:
        if session is None:
            return []
        if session.service_session_id is None:
            session.service_session_id = f"thread-{len(self.service)}"
        return self.service.setdefault(str(session.service_session_id), [])


class OfTheFramework(AtService):
    """The same, from a package of the framework's."""

    __module__ = "agent_framework_elsewhere"


class Delegating(DuckTyped):
    """Hands everything on to an `Agent` that it has made itself."""

    def __init__(self, mind: Mind) -> None:
        super().__init__(mind)
        self.agent = mind.agent()

    def run(self, messages: Any = None, *, stream: bool = False, session: AgentSession | None = None) -> Any:
        return self.agent.run(messages, stream=stream, session=session)  # type: ignore[call-overload]


async def _updates(answer: str) -> AsyncIterator[AgentResponseUpdate]:
    for word in (answer[:4], answer[4:]):
        await asyncio.sleep(0)
        yield AgentResponseUpdate(contents=[Content.from_text(word)], role="assistant", message_id="m")


async def _response(answer: str) -> AgentResponse[Any]:
    await asyncio.sleep(0)
    return AgentResponse(messages=[Message("assistant", [answer])])


@dataclass(frozen=True)
class Kind:
    """A kind of target, with what the host is told about it."""

    make: Callable[[Mind], Any]
    asks: bool = False
    history: str | None = None
    keeper: str | None = "host"
    """Who keeps the history, as `TargetInfo` says it."""

    def options(self) -> dict[str, Any]:
        return {} if self.history is None else {"history": self.history}


KINDS: dict[str, Kind] = {
    "agent": Kind(Mind.agent, asks=True, keeper="provider"),
    "agent that keeps its own": Kind(Mind.agent, asks=True, history="agent", keeper="agent"),
    "workflow as agent": Kind(lambda mind: lambda: mind.builder().build().as_agent(), asks=True, keeper="provider"),
    "workflow": Kind(lambda mind: lambda: mind.builder().build(), asks=True, keeper=None),
    "function of a builder": Kind(lambda mind: mind.builder, asks=True, keeper=None),
    "builder": Kind(Mind.builder, asks=True, keeper=None),
    "duck": Kind(DuckTyped),
    "duck that takes no session": Kind(WithoutSession),
    "duck that remembers in its state": Kind(InState),
    "duck that remembers in its state, and is let": Kind(InState, history="agent", keeper="agent"),
    "duck that remembers by id": Kind(ById),
    "duck that remembers by id, and is let": Kind(ById, history="agent", keeper="agent"),
    "duck that remembers at a service": Kind(AtService),
    "duck that remembers at a service, and is let": Kind(AtService, history="agent", keeper="agent"),
    "duck of the framework": Kind(OfTheFramework, keeper="agent"),
    "duck that delegates": Kind(Delegating, asks=True),
}
ASKING = [name for name, kind in KINDS.items() if kind.asks]
