"""Runs a plain async function, or an async generator that yields its answer in pieces."""

import inspect
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, get_origin

from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message

from frontdesk.abc.target import TargetInfo, TargetStream, TargetTurn
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.framework import is_response
from frontdesk.kit.messages import need_messages
from frontdesk.targets.streams import PlainStream


class FunctionTarget:
    """A function of the text (or, where its parameter is annotated as a list, of all messages, history first)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.native = function
        self.warnings: list[str] = []
        self._generates = inspect.isasyncgenfunction(function)
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        self.findings = _parameter_findings(function, parameters)
        first = parameters[0].annotation if parameters else str
        self._takes_messages = first is list or get_origin(first) is not None
        self._takes_session = any(one.name == "session" for one in parameters[1:])
        self.info = TargetInfo(
            name=getattr(function, "__name__", "function"), kind="function", description=inspect.getdoc(function) or ""
        )

    async def run(self, turn: TargetTurn) -> Any:
        if self._generates:
            stream = await self.stream(turn)
            async for _ in stream:
                pass
            return await stream.final()
        return self._done(turn, _response(await self._call(turn)))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        return PlainStream(await self._updates(turn), lambda result: self._done(turn, result))

    async def _updates(self, turn: TargetTurn) -> AsyncIterator[AgentResponseUpdate]:
        call = await self._prepared(turn)

        async def pieces() -> AsyncIterator[AgentResponseUpdate]:
            if self._generates:
                async for piece in call():
                    yield _update(piece)
            else:
                for update in _response(await call()).to_updates():
                    yield update

        return pieces()

    async def _call(self, turn: TargetTurn) -> Any:
        return await (await self._prepared(turn))()

    async def _prepared(self, turn: TargetTurn) -> Callable[[], Any]:
        need_messages(turn.messages)
        if turn.admitted.request.options:
            name = next(iter(turn.admitted.request.options))
            raise InvalidRequestError(f"This function does not take {name!r}.", param=name)
        said: Any = "\n".join(message.text for message in turn.messages)
        if self._takes_messages:
            said = [*await turn.history(), *turn.messages]
        keywords = {"session": turn.session} if self._takes_session else {}
        return lambda: self.native(said, **keywords)

    def _done(self, turn: TargetTurn, result: AgentResponse[Any]) -> AgentResponse[Any]:
        turn.staged = [*turn.messages, *result.messages]
        return result


def _parameter_findings(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> list[str]:
    needed = [one.name for one in parameters[1:] if one.default is inspect.Parameter.empty and one.name != "session"]
    name = getattr(function, "__name__", "function")
    if not parameters:
        return [f"target: {name}() takes no argument; it needs one for the text or the messages"]
    if needed:
        return [f"target: {name}() needs {', '.join(needed)}; it is called with the input, and `session` if it has one"]
    return []


def _response(value: Any) -> AgentResponse[Any]:
    if is_response(value):
        return value
    if isinstance(value, Message):
        return AgentResponse(messages=[value])
    if isinstance(value, str):
        return AgentResponse(messages=[Message("assistant", [value])])
    if isinstance(value, Content):
        return AgentResponse(messages=[Message("assistant", [value])])
    return AgentResponse(messages=[Message("assistant", [json.dumps(value)])], value=value)


def _update(piece: Any) -> AgentResponseUpdate:
    if isinstance(piece, AgentResponseUpdate):
        return piece
    content = piece if isinstance(piece, Content) else Content.from_text(str(piece))
    return AgentResponseUpdate(contents=[content], role="assistant")
