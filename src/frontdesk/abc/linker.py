"""The proof that two identities are one person's."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from starlette.routing import BaseRoute

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant, LinkChallenge, LinkProof, LinkQuestion, LinkRecord


@runtime_checkable
class HearsLinks(Protocol):
    """A channel that shows people what depends on their links."""

    async def links_changed(self, people: Sequence[ChannelIdentity]) -> None:
        """Take note that identities of this channel were linked with others or separated from them.

        It is called behind the change, and not if this process ends in between.
        """
        ...


class LinkDesk(Protocol):
    """The host's side of linking: it keeps what was begun, and alone changes who is who."""

    def now(self) -> float:
        """Return the time."""
        ...

    def new_id(self, prefix: str) -> str:
        """Make an unguessable id."""
        ...

    async def secret(self, name: str) -> bytes:
        """Return a secret of the host's, made once and kept, for a linker to sign with; the same on every replica."""
        ...

    def command(self, channel: str, name: str) -> str | None:
        """Return what people type on a channel for a command, such as `/link`; `None` where there is none."""
        ...

    async def keep(self, grant: Grant) -> None:
        """Keep a proof that was begun; one with the same id is a `StoreError`."""
        ...

    async def kept(self, grant_id: str) -> Grant | None:
        """Return a proof that was begun, is not used up and has not ended."""
        ...

    async def exchange(self, grant_id: str, *then: Grant) -> bool:
        """Use a proof up and keep others in its place, in one transaction; `False` if somebody else was first."""
        ...

    async def join(self, proof: LinkProof, *, here: ChannelIdentity | None = None) -> LinkRecord:
        """Link what was proved, in one transaction; a `LinkRefusedError` when it may not be.

        All whom it changes something for are told, but the one who is answered here.
        """
        ...

    async def link_of(self, identity: ChannelIdentity) -> LinkRecord | None:
        """Return the link of an identity, if there is one."""
        ...

    async def part(self, identity: ChannelIdentity, *, here: ChannelIdentity | None = None) -> None:
        """Separate an identity again, in one transaction; one that has no link stays as it is. Tell as `join`."""
        ...

    def say(self, identity: ChannelIdentity, key: str, /, **values: Any) -> str:
        """Return a sentence of the host's catalogue of texts in the language of a person."""
        ...

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Say something to a person in their direct chat; false where the channel can't speak first, or failed to."""
        ...


class IdentityLinker(Protocol):
    """Begins and completes the proof."""

    name: str
    gives_claims: bool
    """Whether its links carry verified claims."""

    def use(self, desk: LinkDesk) -> None:
        """Take the host's desk; called once, before the host starts."""
        ...

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        """Ask the person behind `identity` for a proof."""
        ...

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord | LinkChallenge | None:
        """Check the proof that `identity` brings.

        A challenge means that somebody has to do something first, `None` that the person has given it up.
        """
        ...

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        """Return the link of an identity, if there is one."""
        ...

    async def unlink(self, identity: ChannelIdentity) -> None:
        """Separate the identity again."""
        ...


@runtime_checkable
class SupportsLinkRoutes(Protocol):
    """A linker to which a browser comes back."""

    path: str

    def routes(self) -> Sequence[BaseRoute]:
        """Return what it serves, below its path."""
        ...


@runtime_checkable
class SupportsLinkReturn(Protocol):
    """A linker whose ceremony in a browser can end on a page of the host."""

    async def begin_from(self, identity: ChannelIdentity, return_to: str) -> LinkChallenge:
        """Ask for a proof as `begin` does; `return_to` is the path of the page to which the browser goes back."""
        ...


@runtime_checkable
class SupportsLinkQuestions(Protocol):
    """A linker that asks people to confirm the other side."""

    async def question_of(self, identity: ChannelIdentity) -> LinkQuestion | None:
        """Return the open question of an identity, which counts as shown from then on."""
        ...


@runtime_checkable
class ReadsClaims(Protocol):
    """A linker that knows who verified claims speak of, so that they link without a ceremony."""

    def subject_of(self, claims: Mapping[str, Any]) -> str | None:
        """Return the subject of claims that a channel has verified; `None` if another issuer has made them."""
        ...


@runtime_checkable
class SupportsLinkStorePath(Protocol):
    """A linker that keeps its own store, under the host's state directory."""

    def use_link_store(self, path: str) -> None:
        """Take the path of the store; called once, before the host starts."""
        ...


@runtime_checkable
class SupportsLinkStartup(Protocol):
    """A linker that opens something before it is asked."""

    async def on_startup(self) -> None:
        """Open what the linker needs; called once a process, after the store is open and before the channels start."""
        ...


@runtime_checkable
class SupportsLinkShutdown(Protocol):
    """A linker that closes something at the end."""

    async def on_shutdown(self) -> None:
        """Close what the linker has opened; called once a process, after the channels and before the store closes."""
        ...
