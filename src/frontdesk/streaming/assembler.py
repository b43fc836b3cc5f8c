"""Reads the updates of a target in one order for all channels: messages, texts, calls and their results.

A channel derives from `StreamAssembler` and renders what its methods receive. Streams and complete results take the
same way, so a stored result equals what was streamed. `PieceAssembler` renders everything as plain pieces.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from agent_framework import AgentResponseUpdate, Content, Message

from frontdesk.framework.contents import call_arguments, join_call
from frontdesk.framework.outputs import extract_messages
from frontdesk.framework.state_updates import state_in
from frontdesk.framework.types import is_event
from frontdesk.framework.workflow_requests import REQUEST_INFO, is_request

HOST_CALLS = frozenset(
    {
        "function_call",
        "mcp_server_tool_call",
        "code_interpreter_tool_call",
        "search_tool_call",
        "shell_tool_call",
        "computer_tool_call",
    }
)
HOST_RESULTS = frozenset(
    {
        "function_result",
        "mcp_server_tool_result",
        "code_interpreter_tool_result",
        "search_tool_result",
        "shell_tool_result",
        "computer_tool_result",
    }
)
MEDIA = frozenset({"data", "uri", "hosted_file"})


def text_delta(pieces: list[str], text: str, content: Content) -> str:
    """Return the text that a content adds to the previous pieces. A snapshot repeats them."""
    if content.merge_mode == "replace":
        said = "".join(pieces)
        if text.startswith(said):
            text = text[len(said) :]
        else:
            pieces.clear()
    pieces.append(text)
    return text


class Call:
    """A call without a result so far."""

    __slots__ = ("content", "index", "is_client", "item", "message", "number", "pieces")

    def __init__(self, content: Content, *, is_client: bool = False, number: int = 0) -> None:
        self.content = content
        """The call, joined from its fragments. For a client's call only the first fragment."""
        self.is_client = is_client
        self.number = number
        """The number of calls before it."""
        self.message = 0
        self.pieces: list[str] = []
        """The fragments of its arguments."""
        self.item: Any = None
        """The object by which the channel displays it, if it does."""
        self.index = 0
        """The position of that object in the channel's output."""


class StreamAssembler:
    """Finds the messages and calls in the updates of one run. Subclasses override the `on_` methods that they need."""

    def __init__(self, client_tools: Container[str] = ()) -> None:
        """`client_tools` has the names of the functions that the client executes."""
        self._offered = client_tools
        self._fresh = True
        self._boundary = False
        self._message = 0
        self._role = "assistant"
        self._voice: str | None = None
        self._author: str | None = None
        self._message_id: str | None = None
        self._calls: dict[str, Call] = {}
        self._last_call: Call | None = None
        self._call_count = 0

    def add(self, update: Any) -> None:
        """Add whatever a stream yields: an update, or an event of a workflow."""
        if isinstance(update, AgentResponseUpdate):
            self.update(update)
        elif is_event(update) and update.type == "output":
            output: Any = update.data
            if isinstance(output, AgentResponseUpdate):
                self.update(output, update.executor_id)
                return
            for message in extract_messages(output):
                self.message(message)

    def update(self, update: AgentResponseUpdate, voice: str | None = None) -> None:
        """Add the next part of a stream. Messages begin where the framework begins them in the joined result.

        `voice` distinguishes the agents of a workflow, whose results are joined one by one.
        """
        if not update.contents and (changed := state_in(update)) is not None:
            self.on_state(*changed)
            return
        message_id, role, author = update.message_id, update.role, update.author_name
        if (
            self._fresh
            or voice != self._voice
            or (message_id and self._message_id and message_id != self._message_id)
            or (author and self._author and author != self._author)
            or (role and role != self._role)
        ):
            self._begin(role or "assistant")
            self._fresh, self._voice = False, voice
        self._message_id = message_id or self._message_id
        self._author = author or self._author
        self._feed(update.contents)

    def message(self, message: Message) -> None:
        """Add a complete message."""
        self._begin(message.role)
        self._fresh = True
        self._feed(message.contents)

    def _begin(self, role: str) -> None:
        # A message without contents does not end the one before it: the framework leaves it out.
        self._boundary = True
        self._message += 1
        self._role = role
        self._message_id = self._author = self._last_call = None

    def _feed(self, contents: Sequence[Content]) -> None:
        for content in contents:
            kind = content.type
            if kind == "usage":
                continue
            if self._boundary:
                self._boundary = False
                self.on_message()
            if self._role == "user" or self._role == "system":
                # A workflow may output its whole conversation. The input is no part of the answer.
                return
            if kind == "text":
                self._last_call = None
                if content.text or content.annotations:
                    self.on_text(content)
                continue
            if kind in HOST_CALLS:
                if kind != "function_call":
                    self._last_call = None
                self._call(content)
                continue
            self._last_call = None
            self._feed_other(kind, content)

    def _feed_other(self, kind: str, content: Content) -> None:
        if kind == "text_reasoning":
            self.on_reasoning(content)
        elif kind in HOST_RESULTS:
            self._result(content)
        elif kind == "function_approval_request" and content.function_call is not None:
            self.on_question(content)
        elif kind in MEDIA:
            self.on_media(content)
        elif kind == "image_generation_tool_result":
            self.on_images(content)
        elif kind == "error":
            self.on_error(content.message or content.error_code or "Error")
        elif kind == "oauth_consent_request":
            self.on_consent(content.consent_link or "")

    def _call(self, content: Content) -> None:
        if is_request(content) and REQUEST_INFO not in self._offered:
            # A question of a workflow. It is displayed at the end, when it is stored.
            return
        call = self._calls.get(content.call_id) if content.call_id else self._last_call
        if not (content.call_id or content.name) and content.type == "function_call" and (call is None or self._fresh):
            # A fragment of no call. In a complete message every fragment is joined to its call.
            return
        if call is None:
            call = self._begin_call(content)
        elif not call.is_client:
            call.content = join_call(call.content, content)
        if content.type == "function_call" and call.message != self._message:
            # A fragment without an id belongs to the call that is the last of its message.
            call.message = self._message
            self._last_call = call
        if content.type == "function_call":
            # The framework announces a call again when it pauses for it.
            again = bool(content.user_input_request and call.pieces)
            more = "" if again else text_delta(call.pieces, call_arguments(content), content)
            if more:
                self.on_arguments(call, more)

    def _begin_call(self, content: Content) -> Call:
        is_client = content.type == "function_call" and bool(content.name) and content.name in self._offered
        call = Call(content, is_client=is_client, number=self._call_count)
        self._call_count += 1
        self._calls[content.call_id or f"{content.type} {call.number}"] = call
        self.on_call(call)
        return call

    def _result(self, content: Content) -> None:
        call_id = content.call_id or ""
        call = self._calls.get(call_id)
        if call is not None:
            if call.is_client:
                return
            del self._calls[call_id]
        self.on_result(call, content)

    def on_message(self) -> None:
        """Receive that a message begins with the content that follows."""

    def on_text(self, content: Content) -> None:
        """Receive a text, which may be a refusal and may have annotations."""

    def on_reasoning(self, content: Content) -> None: ...

    def on_call(self, call: Call) -> None:
        """Receive a new call. Each call is announced once."""

    def on_arguments(self, call: Call, delta: str) -> None:
        """Receive more of the arguments of a function call."""

    def on_result(self, call: Call | None, content: Content) -> None:
        """Receive a result. The call is None if this run did not announce it."""

    def on_question(self, content: Content) -> None:
        """Receive an approval request. It may be displayed after the run is stored."""

    def on_media(self, content: Content) -> None: ...

    def on_images(self, content: Content) -> None:
        """Receive images generated by a tool. A repeated image replaces its draft."""

    def on_error(self, message: str) -> None: ...

    def on_state(self, snapshot: Any, delta: Sequence[Mapping[str, Any]]) -> None:
        """Receive a change of the shared state: a snapshot, or `UNSET` and operations of JSON Patch (RFC 6902)."""

    def on_consent(self, link: str) -> None:
        """Receive a link at which the user gives a tool access."""
