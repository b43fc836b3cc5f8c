"""Replies of channels and commands, and the targets of responses."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

from msgspec import structs

from frontdesk.models.base import StoredRecord
from frontdesk.models.identity import ChannelIdentity, identity_findings

ReplyPlace = Literal["here", "direct", "only_me"]
"""The place of a reply: the conversation of its event, the sender's direct chat, or the sender's eyes alone."""


class ReplyButton(StoredRecord, frozen=True):
    """A button under a reply. The platform sends `data` back when it is pressed."""

    text: str
    data: str


class Reply(StoredRecord, frozen=True):
    """A reply to an event, stored in the transaction that finishes the event, then sent like any answer."""

    text: str = ""
    blocks: tuple[str, ...] = ()
    """More paragraphs behind the text."""
    buttons: tuple[ReplyButton, ...] = ()
    """Shown by channels that have buttons; others show the text alone."""
    media: tuple[Any, ...] = ()
    """Framework contents with data or a URI, sent behind the text."""
    to: ReplyPlace = "here"
    """`only_me` is shown by the platform to the sender alone, as a pop-up of a button is. Where a platform can't do
    that, it goes to the sender's direct chat."""
    replaces: str | None = None
    """The receipt of a message of ours that its first part takes the place of, if it can still be changed; not of one
    that is shown to the sender alone."""

    @property
    def only_acknowledges(self) -> bool:
        """Return True if it has no content and only acknowledges a click to the platform."""
        return self.to == "only_me" and not self.full_text and not self.media

    @property
    def full_text(self) -> str:
        """Return all paragraphs, separated by empty lines."""
        return "\n\n".join(paragraph for paragraph in (self.text, *self.blocks) if paragraph)


def as_reply(given: "Reply | str") -> Reply:
    return Reply(given) if isinstance(given, str) else given


ORIGINATING_NAME = "originating"
"""In `ResponseTarget.channels` this stands for where the request came from; no channel may have it as its name."""

TargetKind = Literal["originating", "active", "channels", "identities", "all_linked", "none"]


class ResponseTargetKind(StrEnum):
    """The kinds of a `ResponseTarget`. Each is equal to its string value."""

    ORIGINATING = "originating"
    ACTIVE = "active"
    CHANNELS = "channels"
    IDENTITIES = "identities"
    ALL_LINKED = "all_linked"
    NONE = "none"


class Address(StoredRecord, frozen=True, kw_only=True):
    """One destination: a user on a channel."""

    channel: str
    native_id: str
    attributes: Mapping[str, Any] = {}
    """The attributes given with the address; without any, the stored ones are used."""

    def __hash__(self) -> int:
        # Attributes are a mapping, which has no hash; two that differ in them alone are rare.
        return hash((self.channel, self.native_id))

    @classmethod
    def of(cls, identity: ChannelIdentity) -> Self:
        """Return the address of an identity for comparison: without attributes."""
        return cls(channel=identity.channel, native_id=identity.native_id)

    @classmethod
    def from_given(cls, identity: ChannelIdentity) -> Self:
        return cls(channel=identity.channel, native_id=identity.native_id, attributes=identity.attributes)

    @property
    def plain(self) -> Self:
        return self.replace(attributes={}) if self.attributes else self


class ResponseTarget(StoredRecord, frozen=True, kw_only=True):
    """The destination of an answer. Hashable. Use one of the values below or a factory method."""

    originating: ClassVar["ResponseTarget"]
    """Back to where the request came from."""
    active: ClassVar["ResponseTarget"]
    """To the channel where the person was last seen."""
    all_linked: ClassVar["ResponseTarget"]
    """To every channel that the person has linked."""
    none: ClassVar["ResponseTarget"]
    """Nowhere: the run goes to the background, and its result is fetched with the continuation."""

    kind: TargetKind = "originating"
    names: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()
    echo_input: bool = False
    """Whether the user's message is sent to the other places first."""

    def __post_init__(self) -> None:
        if type(self.kind) is not str:
            # A `ResponseTargetKind` is stored as its text.
            structs.force_setattr(self, "kind", str(self.kind))

    def __call__(self, *, echo_input: bool = False) -> Self:
        """Return the target with the user's message sent first: `ResponseTarget.active(echo_input=True)`."""
        if echo_input and self.kind in ("originating", "none"):
            raise TypeError(f"echo_input has no effect on ResponseTarget.{self.kind}")
        return self.replace(echo_input=echo_input) if echo_input else self

    @classmethod
    def channel(cls, name: str, *, echo_input: bool = False) -> Self:
        """Send the answer to the person on one channel."""
        return cls.channels([name], echo_input=echo_input)

    @classmethod
    def channels(cls, names: Sequence[str], *, echo_input: bool = False) -> Self:
        """Send the answer to the person on several channels. `"originating"` is the channel of the request."""
        given: Any = names
        if isinstance(given, str) or not all(isinstance(name, str) for name in given):
            raise TypeError(
                f"channels must be a list of names, got {given!r}. For one channel use ResponseTarget.channel"
            )
        return cls(kind="channels", names=tuple(names), echo_input=echo_input)

    @classmethod
    def identity(cls, identity: ChannelIdentity, *, echo_input: bool = False) -> Self:
        """Send the answer to one identity."""
        return cls.identities([identity], echo_input=echo_input)

    @classmethod
    def identities(cls, identities: Sequence[ChannelIdentity], *, echo_input: bool = False) -> Self:
        """Send the answer to several identities, with the attributes given here or else the stored ones."""
        given: Any = identities
        if isinstance(given, ChannelIdentity) or not all(isinstance(item, ChannelIdentity) for item in given):
            raise TypeError(f"identities must be a list of ChannelIdentity(channel, native_id), got {given!r}")
        wrong = [finding for item in given for finding in identity_findings(item)]
        if wrong:
            raise TypeError(f"identities: {'; '.join(wrong)}")
        return cls(kind="identities", addresses=tuple(map(Address.from_given, identities)), echo_input=echo_input)


ResponseTarget.originating = ResponseTarget()
ResponseTarget.active = ResponseTarget(kind="active")
ResponseTarget.all_linked = ResponseTarget(kind="all_linked")
ResponseTarget.none = ResponseTarget(kind="none")
