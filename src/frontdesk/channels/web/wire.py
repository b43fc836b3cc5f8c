"""The bodies of the page's API, and the messages as they are stored and sent."""

from typing import Any, Literal

import msgspec

from frontdesk.kit.framework.request_forms import FormField

MAIN = "main"
"""The conversation that goes on in the person's tracked session, as on every other channel."""

State = Literal["done", "live", "stopped", "removed"]
Role = Literal["user", "assistant", "notice"]


class Button(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that a workflow offers."""

    text: str
    data: str


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that waits for an approval; the page asks for its arguments."""

    approval_id: str
    tool: str
    outcome: str = ""
    """The decision; empty while it waits."""
    reason: str = ""
    by: str = ""
    """The person who has decided it, if that was not the visitor."""
    at: float = 0.0
    """When it was decided, if others decide it too."""


class SentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file on its way, in base64."""

    media_type: str
    data: str
    name: str = ""


class ShownFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of a message; its bytes are fetched by its id, which is empty if they could not be kept."""

    id: str
    media_type: str
    name: str = ""
    size: int = 0


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call of an answer, as far as the channel shows it."""

    id: str
    name: str
    state: Literal["running", "done", "failed", "stopped"] = "done"
    seconds: float | None = None
    arguments: str = ""
    result: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source that an answer cites."""

    title: str
    url: str = ""


class Form(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The question of a workflow as a form."""

    id: str
    """The short name of the question."""
    fields: tuple[FormField, ...]
    answered: bool = False


class Content(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one message."""

    text: str = ""
    role: Role = "assistant"
    code: str = ""
    """The code of the error that a notice is about."""
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
    """The content of one message, before its files are kept."""

    media: tuple[SentFile, ...] = ()


class Message(Content, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a conversation, as a page gets it."""

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
    """A message as it is stored: the text holds its beginning, and what does not fit lies in values of its own."""

    key: str
    """The key of what was sent: a second message with it is the same one."""


class Overheard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that was said on another channel, in the same session."""

    id: str
    role: Role
    at: float
    origin: str
    text: str = ""
    files: tuple[ShownFile, ...] = ()


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what was said on other channels, in its order."""

    messages: list[Overheard] = []
    before: int | None = None
    """The position before which the part before this one ends; `None` if there is none."""
    since: float = 0.0
    """The time from which on nothing is missing."""


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The shown form of a message that a visitor has sent; kept with its event."""

    client_id: str
    text: str = ""
    files: tuple[ShownFile, ...] = ()


class FormAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of a form, and the number of the message that asks for them."""

    number: int
    values: dict[str, Any]


class SendBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message that a visitor sends, or a choice that they make."""

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
    """A wish to stop what is being answered."""

    client_id: str


class ChatBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a conversation: a title, or whether it is archived."""

    title: str | None = None
    archived: bool | None = None


class DecideBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a question; the digest is that of the question as it was shown."""

    approved: bool
    digest: str
    reason: str = ""


class EmptyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wish that needs no words."""


class BeginLinkBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wish for a code, or for the address of a sign-in."""

    embedded: bool = False
    """Whether the page is in a frame, to which no sign-in can go back."""


class EnterCodeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A code that another account has issued."""

    code: str


class AnswerLinkBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to the question whether another account is the visitor's own."""

    challenge_id: str
    confirm: bool


class NewBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wish for a new conversation; the same client id is the same conversation."""

    client_id: str
