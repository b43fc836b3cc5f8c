"""Runs a plain async function, or an async generator that yields its answer in pieces."""

import inspect
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from typing import Any, get_origin

from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message

from frontdesk.abc.target import TargetInfo, TargetStream, TargetTurn
from frontdesk.data.request import ChannelRequest
from frontdesk.kit.framework.messages import need_messages
from frontdesk.kit.framework.types import is_response
from frontdesk.targets.extras import function_results, refuse_extras
from frontdesk.targets.streams import PlainStream

_LISTS = (list, Sequence, Collection, Iterable)


class FunctionTarget:
    """A function of the text (or, where its parameter is annotated as a list, of all messages, history first)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.native = function
        self.warnings: list[str] = []
        self._generates = inspect.isasyncgenfunction(function)
        parameters = _parameters(function)
        self.findings = _parameter_findings(function, parameters)
        first = parameters[0].annotation if parameters else str
        self._takes_messages = (get_origin(first) or first) in _LISTS
        self._takes_session = any(parameter.name == "session" for parameter in parameters[1:])
        self.info = TargetInfo(
            name=getattr(function, "__name__", "function"),
            kind="function",
            description=inspect.getdoc(function) or "",
            messages=self._takes_messages,
            history="host" if self._takes_messages else None,
        )

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "function")

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        return function_results(turn)

    async def run(self, turn: TargetTurn) -> Any:
        if self._generates:
            stream = await self.stream(turn)
            async for _ in stream:
                pass
            return await stream.final()
        return self._done(turn, _response(await self._call(turn)))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        call = await self._prepared(turn)
        # An answer that came in one piece is kept as it is: updates do not carry its structured value.
        whole: list[AgentResponse[Any]] = []
        updates = _pieces(call) if self._generates else _whole(call, whole)
        return PlainStream(updates, lambda joined: self._done(turn, whole[0] if whole else joined))

    async def _call(self, turn: TargetTurn) -> Any:
        return await (await self._prepared(turn))()

    async def _prepared(self, turn: TargetTurn) -> Callable[[], Any]:
        need_messages(turn.messages)
        self.check(turn.admitted.request)
        argument: Any = "\n".join(message.text for message in turn.messages)
        if self._takes_messages:
            argument = [*await turn.history(), *turn.messages]
        await turn.begin()
        keywords = {"session": turn.session} if self._takes_session else {}
        return lambda: self.native(argument, **keywords)

    def _done(self, turn: TargetTurn, result: AgentResponse[Any]) -> AgentResponse[Any]:
        turn.staged = [*turn.messages, *result.messages]
        return result


async def _pieces(call: Callable[[], Any]) -> AsyncIterator[AgentResponseUpdate]:
    async with aclosing(call()) as pieces:
        async for piece in pieces:
            yield _update(piece)


async def _whole(call: Callable[[], Any], kept: list[AgentResponse[Any]]) -> AsyncIterator[AgentResponseUpdate]:
    kept.append(_response(await call()))
    for place, update in enumerate(kept[0].to_updates()):
        # Without ids, two messages would be joined to one when the updates are put together.
        update.message_id = update.message_id or f"message_{place}"
        yield update


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except NameError:
        # An annotation that exists only for type checkers.
        return list(inspect.signature(function).parameters.values())


def _parameter_findings(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> list[str]:
    required = (parameter.name for parameter in parameters[1:] if parameter.default is inspect.Parameter.empty)
    needed = [name for name in required if name != "session"]
    name = getattr(function, "__name__", "function")
    if not parameters:
        return [f"target: {name}() takes no argument; it needs one for the text or the messages"]
    if parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        return [f"target: {name}() takes {parameters[0].name} by name only; it is called with the input as it is"]
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
    if inspect.isawaitable(value):
        close = getattr(value, "close", None)
        if callable(close):
            close()
        raise TypeError(f"the function returned a {type(value).__name__} instead of an answer; is an await missing?")
    return AgentResponse(messages=[Message("assistant", [json.dumps(value)])], value=value)


def _update(piece: Any) -> AgentResponseUpdate:
    if isinstance(piece, AgentResponseUpdate):
        return piece
    content = piece if isinstance(piece, Content) else Content.from_text(str(piece))
    return AgentResponseUpdate(contents=[content], role="assistant")
