"""Finds where the messages of a client leave the history of the server. Pure.

The history of the server is authoritative. A client repeats its whole transcript with each run. Only what follows the
last known message is new. If the server has later turns, the client has gone back, and the run begins a branch.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from frontdesk.channels.agui.parse import TEXT_DIGEST, text_digest
from frontdesk.channels.agui.schema import InputMessage, ToolMessage, UserMessage
from frontdesk.identifiers import digest
from frontdesk.models.conversation import TranscriptMessage, run_of_answer

SEPARATOR = "~"
"""Separates a thread from a branch, and a message from its parts. No id of a client in a path can contain it."""


def branch_key(thread_id: str, run_id: str) -> str:
    """Return the session key of the branch of a thread that begins with a run."""
    return f"{thread_id}{SEPARATOR}{digest(run_id)[:32]}"


def is_of_thread(session_key: str | None, thread_id: str) -> bool:
    """Return True if a session is the thread itself or one of its branches."""
    return session_key is not None and session_key.partition(SEPARATOR)[0] == thread_id


def answer_id(shown_id: str) -> str:
    """Return the id of the message that a shown message is a part of."""
    return shown_id.partition(SEPARATOR)[0]


def list_named_runs(messages: Sequence[InputMessage]) -> Iterator[str]:
    """Yield the runs whose answers a client has, the last one first."""
    for message in reversed(messages):
        if not isinstance(message, (UserMessage, ToolMessage)):
            run_id = run_of_answer(answer_id(message.id))
            if run_id is not None:
                yield run_id


class New(NamedTuple):
    """A message of a client that the server does not have."""

    message: UserMessage | ToolMessage
    place: int


class Continuation(NamedTuple):
    """The new messages of a run, and where it continues its thread."""

    new: Sequence[New] = ()
    branches: bool = False
    previous_run_id: str | None = None
    """The run after which the branch begins. None for a branch that begins at the start of the thread."""


class KnownMessages:
    """The messages of a session, by the ids under which clients know them."""

    def __init__(self, messages: Sequence[TranscriptMessage]) -> None:
        self.messages = messages
        self._inputs: dict[str, int] = {}
        self._answers: dict[str, int] = {}
        self._results: dict[str, int] = {}
        self._outputs: set[str] = set()
        """The calls whose results are those of a client."""
        self.calls: dict[str, int] = {}
        """The positions of the calls without a result."""
        for place, known in enumerate(messages):
            role = known.message.role
            is_answer = "originating_channel" in known.message.additional_properties.get("hosting", {})
            if known.message_id is not None:
                (self._inputs if role == "user" else self._answers)[known.message_id] = place
            for content in known.message.contents:
                if content.type == "function_call":
                    self.calls[str(content.call_id)] = place
                elif content.type == "function_result":
                    self.calls.pop(str(content.call_id), None)
                    self._results[str(content.call_id)] = place
                    if not is_answer:
                        self._outputs.add(str(content.call_id))

    def find(self, message: InputMessage) -> int | None:
        """Return the position of a message of a client, also of one whose text was edited."""
        if isinstance(message, UserMessage):
            return self._inputs.get(message.id)
        if isinstance(message, ToolMessage):
            return self._results.get(message.tool_call_id)
        return self._answers.get(answer_id(message.id))

    def is_edited(self, message: InputMessage) -> bool:
        place = self.find(message)
        if place is None or not isinstance(message, UserMessage):
            return False
        sent = self.messages[place].message.additional_properties.get(TEXT_DIGEST)
        return sent is not None and sent != text_digest(message.content)

    def is_output(self, message: InputMessage) -> bool:
        """Return True for the result of a frontend tool that the session has."""
        return isinstance(message, ToolMessage) and message.tool_call_id in self._outputs

    def find_asking_run(self, call_id: str) -> str | None:
        """Return the run that waits for the output of a call."""
        place = self.calls.get(call_id)
        return None if place is None else self.get_run(place)

    def get_run(self, place: int) -> str | None:
        return self.messages[place].run_id

    def run_before(self, place: int) -> str | None:
        """Return the run before the one of a position, or None if that is the first one."""
        run_id = self.get_run(place)
        runs = (self.get_run(earlier) for earlier in reversed(range(place)))
        return next((earlier for earlier in runs if earlier not in (None, run_id)), None)

    def has_later_turn(self, place: int) -> bool:
        """Return True if the session has a turn that began after the run of a position."""
        run_id = self.get_run(place)
        return run_id is not None and any(
            later.message.role == "user" and later.run_id not in (None, run_id) for later in self.messages[place + 1 :]
        )


def continue_thread(messages: Sequence[InputMessage], known: KnownMessages) -> Continuation:
    """Return the new messages of a client, and where they continue the session."""
    edited = next((place for place, message in enumerate(messages) if known.is_edited(message)), None)
    if edited is not None:
        place = known.find(messages[edited])
        new = [New(message, at) for at, message in _from(messages, edited) if isinstance(message, UserMessage)]
        return Continuation(new, branches=True, previous_run_id=None if place is None else known.run_before(place))
    last, place = _last_known(messages, known)
    new = list(_new(messages, last + 1, known))
    if place is None:
        # A client without history, such as a page that was loaded again.
        return Continuation(new)
    if not new:
        return _again(messages, last, place, known)
    if known.has_later_turn(place):
        return Continuation(new, branches=True, previous_run_id=known.get_run(place))
    return Continuation(new)


def _from(messages: Sequence[InputMessage], start: int) -> Iterator[tuple[int, InputMessage]]:
    return ((place, messages[place]) for place in range(start, len(messages)))


def _last_known(messages: Sequence[InputMessage], known: KnownMessages) -> tuple[int, int | None]:
    """Return the last known message of a client, and its position in the session."""
    for last in reversed(range(len(messages))):
        place = known.find(messages[last])
        if place is not None:
            return last, place
    return -1, None


def _new(messages: Sequence[InputMessage], start: int, known: KnownMessages) -> Iterator[New]:
    for place, message in _from(messages, start):
        if not isinstance(message, (UserMessage, ToolMessage)):
            continue
        if isinstance(message, UserMessage) or message.tool_call_id in known.calls:
            yield New(message, place)


def _again(messages: Sequence[InputMessage], last: int, place: int, known: KnownMessages) -> Continuation:
    """Return the last question of a client once more, if its transcript ends with it."""
    run_id = known.get_run(place)
    if run_id is None:
        return Continuation()
    asked: list[New] = []
    for at in reversed(range(last + 1)):
        message = messages[at]
        found = known.find(message)
        if not isinstance(message, (UserMessage, ToolMessage)) or found is None or known.get_run(found) != run_id:
            break
        if isinstance(message, ToolMessage) and not known.is_output(message):
            break
        asked.insert(0, New(message, at))
    if not asked:
        return Continuation()
    return Continuation(asked, branches=True, previous_run_id=known.run_before(place))
