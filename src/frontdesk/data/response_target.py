"""Where an answer goes."""

from typing import Literal, Self

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Noun

TargetKind = Literal["originating", "active", "channels", "identities", "all_linked", "none"]


class Address(Noun, frozen=True, kw_only=True):
    """One destination: a user on a channel."""

    channel: str
    native_id: str

    @classmethod
    def of(cls, identity: ChannelIdentity) -> Self:
        """The address of an identity."""
        return cls(channel=identity.channel, native_id=identity.native_id)


class ResponseTarget(Noun, frozen=True, kw_only=True):
    """Where an answer goes. Hashable; made with the functions below."""

    kind: TargetKind = "originating"
    names: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()
    echo_input: bool = False
    """Also sends the user's words to the other places first."""

    @classmethod
    def originating(cls) -> Self:
        """Back to where the request came from."""
        return cls()

    @classmethod
    def active(cls, *, echo_input: bool = False) -> Self:
        """To the channel where the person was last seen."""
        return cls(kind="active", echo_input=echo_input)

    @classmethod
    def channel(cls, name: str, *, echo_input: bool = False) -> Self:
        """To the person on one channel."""
        return cls.channels([name], echo_input=echo_input)

    @classmethod
    def channels(cls, names: list[str], *, echo_input: bool = False) -> Self:
        """To the person on several channels."""
        return cls(kind="channels", names=tuple(names), echo_input=echo_input)

    @classmethod
    def identity(cls, identity: ChannelIdentity, *, echo_input: bool = False) -> Self:
        """To one identity."""
        return cls.identities([identity], echo_input=echo_input)

    @classmethod
    def identities(cls, identities: list[ChannelIdentity], *, echo_input: bool = False) -> Self:
        """To several identities."""
        return cls(kind="identities", addresses=tuple(Address.of(one) for one in identities), echo_input=echo_input)

    @classmethod
    def all_linked(cls, *, echo_input: bool = False) -> Self:
        """To every channel that the person has linked."""
        return cls(kind="all_linked", echo_input=echo_input)

    @classmethod
    def none(cls) -> Self:
        """To nobody: the run goes to the background, and its result is fetched with the continuation."""
        return cls(kind="none")
