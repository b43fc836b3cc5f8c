"""The wire format of the page's API, and the form of messages in storage."""

from typing import Any, Literal

import msgspec

from frontdesk.display.escaping import ArgumentField
from frontdesk.framework.request_forms import FormField

MAIN = "main"
"""The conversation that goes on in the person's tracked session, as on every other channel."""

State = Literal["done", "live", "stopped", "removed"]
Role = Literal["user", "assistant", "notice"]


class Button(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    data: str


class Person(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person or a role as displayed on a card. A role has no id."""

    name: str = ""
    id: str = ""
    channel: str = ""
    verified: bool = False
    """Whether a link has verified the name."""
    is_operator: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that requires approval. The page fetches its arguments."""

    approval_id: str
    tool: str
    outcome: str = ""
    """The decision; empty while it waits."""
    reason: str = ""
    by: str = ""
    """The name of the person who has decided it, if others decide it too."""
    decider: Person | None = None
    """The person who has decided it; `None` in cards of earlier versions."""
    asked_for: Person | None = None
    """The person for whom the run asked, if others decide it too."""
    at: float = 0.0
    """When it was decided."""
    fields: tuple[ArgumentField, ...] | None = None
    """The arguments of a decided call, unless they are too long or no object."""
    arguments: str = ""
    """The arguments of a decided call as a text, without `fields`."""


class SentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file in a request or response, in base64."""

    media_type: str
    data: str
    name: str = ""


class ShownFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of a message. Its id, which is empty if storing failed, is used to fetch the bytes."""

    id: str
    media_type: str
    name: str = ""
    size: int = 0


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    name: str
    state: Literal["running", "done", "failed", "stopped"] = "done"
    seconds: float | None = None
    arguments: str = ""
    result: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    title: str
    url: str = ""


class Form(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    """The short name of the question."""
    fields: tuple[FormField, ...]
    answered: bool = False


class Content(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    text: str = ""
    role: Role = "assistant"
    code: str = ""
    """The code of the error that a notice is about."""
    is_literal: bool = False
    """Whether the text is displayed as it is, and not as Markdown, which can hide parts of it."""
    origin: str = ""
    """The channel on which it was asked, if that was another one."""
    run: str = ""
    """The run that has answered, if it was asked on the page: a branch can begin behind it."""
    question: Question | None = None
    buttons: tuple[Button, ...] = ()
    files: tuple[ShownFile, ...] = ()
    tools: tuple[Tool, ...] = ()
    citations: tuple[Source, ...] = ()
    form: Form | None = None


class Part(Content, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one message before its files are stored."""

    media: tuple[SentFile, ...] = ()


class Message(Content, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a conversation in display form."""

    number: int
    at: float
    state: State = "done"
    epoch: int = 0
    """The number of times that its text was begun anew; within one epoch a text only grows."""
    length: int = 0
    """The number of characters of the text, as code points."""
    client_id: str = ""
    """The id by which the page knows a message that it has sent."""


class StoredMessage(Message, frozen=True, kw_only=True, omit_defaults=True):
    """A stored message. Its text is truncated, and the rest is kept in separate values."""

    key: str
    """The key of what was sent: a second message with it is the same one."""


class Overheard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    role: Role
    at: float
    origin: str
    text: str = ""
    files: tuple[ShownFile, ...] = ()


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    messages: list[Overheard] = []
    before: int | None = None
    """The position before which the part before this one ends; `None` if there is none."""
    since: float = 0.0
    """The time from which on nothing is missing."""


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The display form of a visitor's message, stored with its event."""

    client_id: str
    text: str = ""
    files: tuple[ShownFile, ...] = ()


class FormAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of a form, and the number of the message with the form."""

    number: int
    values: dict[str, Any]


class SendBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    client_id: str
    text: str = ""
    choice: str = ""
    """The data of a button that was pressed."""
    form: FormAnswer | None = None
    instead_of: int = 0
    """The number of an earlier message of theirs, in whose place this one is said on a branch; 0 goes on as it is."""
    files: tuple[SentFile, ...] = ()
    keep: tuple[str, ...] = ()
    """The files of that earlier message which this one has too, by their ids."""
    locale: str = ""


class StopBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to stop the answer in progress."""

    client_id: str


class ChatBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a conversation: its title or archived state."""

    title: str | None = None
    archived: bool | None = None


class DecideBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a question. The digest is that of the displayed question."""

    approved: bool
    digest: str
    reason: str = ""


class EmptyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request without fields."""


class BeginLinkBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    embedded: bool = False
    """Whether the page is in a frame, to which no sign-in can go back."""


class EnterCodeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: str


class AnswerLinkBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The confirmation or rejection that another account belongs to the visitor."""

    challenge_id: str
    confirm: bool


class NewBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a new conversation. The same client id returns the same conversation."""

    client_id: str
