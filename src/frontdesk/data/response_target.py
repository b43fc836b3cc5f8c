"""The destinations that a request can choose for its answer."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Noun

ORIGINATING_NAME = "originating"
"""In `ResponseTarget.channels` this stands for where the request came from; no channel may have it as its name."""

TargetKind = Literal["originating", "active", "channels", "identities", "all_linked", "none"]


class Address(Noun, frozen=True, kw_only=True):
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
        """Return the address of an identity, as it is compared with others: without attributes."""
        return cls(channel=identity.channel, native_id=identity.native_id)

    @classmethod
    def given(cls, identity: ChannelIdentity) -> Self:
        """Return the address of an identity with the attributes that it has."""
        return cls(channel=identity.channel, native_id=identity.native_id, attributes=identity.attributes)

    @property
    def plain(self) -> Self:
        """Return the address without attributes."""
        return self.replace(attributes={}) if self.attributes else self


class ResponseTarget(Noun, frozen=True, kw_only=True):
    """The destination of an answer. Hashable; one of the values below, or made with the functions."""

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

    def __call__(self, *, echo_input: bool = False) -> Self:
        """Return the target with the user's message sent ahead: `ResponseTarget.active(echo_input=True)`."""
        if echo_input and self.kind in ("originating", "none"):
            raise TypeError(f"echo_input has no effect on ResponseTarget.{self.kind}")
        return self.replace(echo_input=echo_input) if echo_input else self

    @classmethod
    def channel(cls, name: str, *, echo_input: bool = False) -> Self:
        """Send the answer to the person on one channel."""
        return cls.channels([name], echo_input=echo_input)

    @classmethod
    def channels(cls, names: Sequence[str], *, echo_input: bool = False) -> Self:
        """Send the answer to the person on several channels; `"originating"` is where the request came from."""
        given: Any = names
        if isinstance(given, str) or not all(isinstance(name, str) for name in given):
            raise TypeError(
                f"channels takes a list of names, and not {given!r}; for one there is ResponseTarget.channel"
            )
        return cls(kind="channels", names=tuple(names), echo_input=echo_input)

    @classmethod
    def identity(cls, identity: ChannelIdentity, *, echo_input: bool = False) -> Self:
        """Send the answer to one identity."""
        return cls.identities([identity], echo_input=echo_input)

    @classmethod
    def identities(cls, identities: Sequence[ChannelIdentity], *, echo_input: bool = False) -> Self:
        """Send the answer to several identities, each with the attributes given here, or else with the stored ones."""
        given: Any = identities
        if isinstance(given, ChannelIdentity) or not all(isinstance(item, ChannelIdentity) for item in given):
            raise TypeError(f"identities takes a list of ChannelIdentity(channel, native_id), and not {given!r}")
        return cls(kind="identities", addresses=tuple(map(Address.given, identities)), echo_input=echo_input)


ResponseTarget.originating = ResponseTarget()
ResponseTarget.active = ResponseTarget(kind="active")
ResponseTarget.all_linked = ResponseTarget(kind="all_linked")
ResponseTarget.none = ResponseTarget(kind="none")
