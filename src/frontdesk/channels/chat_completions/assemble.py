"""Puts contents together to the one message that a completion has.

One way for streams and for whole results, so that both say the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from agent_framework import AgentResponseUpdate, Content, Message

from frontdesk.channels.chat_completions.wire import CalledCustom, CalledFunction, Delta, MessageOut, ToolCall
from frontdesk.kit.framework.contents import call_arguments, file_name, is_refusal
from frontdesk.kit.openai.answers import piece
from frontdesk.kit.openai.custom_tools import input_of

Emit = Callable[[Delta], None]
_BETWEEN = "\n\n"
"""Stands between two messages of the target's, which are one message here."""
_MEDIA = ("data", "uri")


class _Call:
    """A call of a tool of the client's."""

    __slots__ = ("call_id", "index", "kind", "name", "pieces")

    def __init__(self, call_id: str, name: str, kind: str, index: int) -> None:
        self.call_id = call_id
        self.name = name
        self.kind = kind
        self.index = index
        self.pieces: list[str] = []

    @property
    def arguments(self) -> str:
        return "".join(self.pieces) or "{}"

    def drawn(self, index: int | None = None) -> ToolCall:
        """Draw the whole call."""
        if self.kind == "custom":
            custom = CalledCustom(name=self.name, input=input_of(self.arguments))
            return ToolCall(index=index, id=self.call_id, type="custom", custom=custom)
        function = CalledFunction(name=self.name, arguments=self.arguments)
        return ToolCall(index=index, id=self.call_id, type="function", function=function)


class Assembler:
    """Builds the message of one completion."""

    def __init__(self, client_tools: Mapping[str, str], emit: Emit | None = None) -> None:
        """`client_tools` are the tools of the client's by their names, each with its type."""
        self._client_tools = client_tools
        self._emit = emit
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._known: dict[str, _Call | None] = {}
        self._last: _Call | None = None
        # The pieces of the message that is being said, for those that repeat what came before.
        self._pieces: list[str] = []
        self._declined: list[str] = []
        self._is_new = False
        self._seen: tuple[str | None, str | None, str | None, str | None] | None = None
        self._role = "assistant"

    def update(self, update: AgentResponseUpdate, voice: str | None = None) -> None:
        """Take the next piece of a stream; `voice` tells apart the agents of a workflow."""
        self._follow(update, voice)
        self._feed(update.contents)

    def _follow(self, update: AgentResponseUpdate, voice: str | None) -> None:
        """Begin a message where the framework begins one in the joined result."""
        message_id, author, role = update.message_id, update.author_name, update.role
        seen = self._seen
        if seen is None or voice != seen[3] or _differ(message_id, seen[0]) or _differ(author, seen[1]):
            self._begin(role or "assistant")
        elif role and role != self._role:
            self._begin(role)
        else:
            message_id, author = message_id or seen[0], author or seen[1]
        self._seen = (message_id, author, role, voice)

    def message(self, message: Message) -> None:
        """Take a whole message."""
        self._seen = None
        self._begin(message.role)
        self._feed(message.contents)

    def _begin(self, role: str) -> None:
        self._role = role
        self._is_new = True
        self._pieces, self._declined = [], []
        self._last = None

    def _feed(self, contents: Sequence[Content]) -> None:
        if self._role in ("user", "system"):
            # A workflow may hand out its whole conversation; what was asked is no part of the answer.
            return
        for content in contents:
            kind = content.type
            if kind == "function_call":
                self._call(content)
                continue
            if kind == "text":
                self._say(content)
            elif kind in _MEDIA and content.uri:
                self._show(content)
            elif kind == "oauth_consent_request" and content.consent_link:
                self._add(f"[Consent]({content.consent_link})")
            elif kind == "error":
                self._decline(content.message or content.error_code or "Error")

    def _say(self, content: Content) -> None:
        text = content.text or ""
        if content.additional_properties and is_refusal(content.additional_properties):
            self._decline(piece(self._declined, text, content))
        elif content.merge_mode is not None:
            self._add(piece(self._pieces, text, content))
        else:
            self._pieces.append(text)
            self._add(text)

    def _show(self, content: Content) -> None:
        is_image = (content.media_type or "").startswith("image/")
        self._add(f"{'!' if is_image else ''}[{file_name(content) or content.media_type or 'file'}]({content.uri})")

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._is_new and self._text:
            text = _BETWEEN + text
        self._is_new = False
        self._text.append(text)
        self._tell(Delta(content=text))

    def _decline(self, text: str) -> None:
        if not text:
            return
        self._refusal.append(text)
        self._tell(Delta(refusal=text))

    def _call(self, content: Content) -> None:
        call_id = content.call_id or ""
        if call_id in self._known:
            call = self._known[call_id]
        elif call_id or content.name:
            call = self._begin_call(content)
        else:
            # A piece without an id belongs to the call before it.
            call = self._last
        self._last = call
        if call is None:
            return
        # The framework names a call once more when it pauses for it.
        again = bool(content.user_input_request and call.pieces)
        more = "" if again else piece(call.pieces, call_arguments(content), content)
        if more and call.kind == "function":
            self._tell_call(ToolCall(index=call.index, function=CalledFunction(arguments=more)))

    def _begin_call(self, content: Content) -> _Call | None:
        """Open a call; one of the host's own tools is not shown."""
        name, call_id = content.name or "", content.call_id or f"call_{len(self._known)}"
        kind = self._client_tools.get(name)
        call = None if kind is None else _Call(call_id, name, kind, len(self._calls))
        self._known[call_id] = call
        if call is None:
            return None
        self._calls.append(call)
        if call.kind == "function":
            opened = CalledFunction(name=name, arguments="")
            self._tell_call(ToolCall(index=call.index, id=call_id, type="function", function=opened))
        return call

    def finish(self) -> None:
        """Tell what could not be told in pieces."""
        for call in self._calls:
            if call.kind == "custom":
                # A text has to be read out of its arguments, which is done when they are whole.
                self._tell_call(call.drawn(call.index))
            elif not any(call.pieces):
                self._tell_call(ToolCall(index=call.index, function=CalledFunction(arguments="{}")))

    @property
    def has_calls(self) -> bool:
        """Tell whether tools of the client's are called."""
        return bool(self._calls)

    def drawn(self) -> MessageOut:
        """Return the whole message."""
        calls: Any = [call.drawn() for call in self._calls] if self._calls else msgspec.UNSET
        text = "".join(self._text) if self._text or not (self._calls or self._refusal) else None
        return MessageOut(content=text, refusal="".join(self._refusal) or None, tool_calls=calls)

    def _tell_call(self, call: ToolCall) -> None:
        self._tell(Delta(tool_calls=[call]))

    def _tell(self, delta: Delta) -> None:
        if self._emit is not None:
            self._emit(delta)


def _differ(new: str | None, old: str | None) -> bool:
    return bool(new and old and new != old)
