"""How a person proves that two identities are theirs."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from starlette.routing import BaseRoute

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant, LinkChallenge, LinkProof, LinkRecord


class LinkDesk(Protocol):
    """What the host does for a linker: it keeps what was begun, and alone changes who is who."""

    def now(self) -> float:
        """The time."""
        ...

    def new_id(self, prefix: str) -> str:
        """An unguessable id."""
        ...

    async def secret(self, name: str) -> bytes:
        """A secret of the host's, made once and kept, with which a linker can sign; the same on every replica."""
        ...

    def command(self, channel: str, name: str) -> str | None:
        """What people type on a channel for a command, such as `/link`; `None` where there is no such command."""
        ...

    async def keep(self, grant: Grant) -> None:
        """Keeps a proof that was begun; one with the same id is a `StoreError`."""
        ...

    async def kept(self, grant_id: str) -> Grant | None:
        """A proof that was begun, is not used up and has not ended."""
        ...

    async def exchange(self, grant_id: str, *then: Grant) -> bool:
        """Uses a proof up and keeps others in its place, in one transaction; `False` if somebody else was first."""
        ...

    async def join(self, proof: LinkProof, *, here: ChannelIdentity | None = None) -> LinkRecord:
        """Links what was proved, in one transaction; a `LinkRefusedError` when it may not be.

        All whom it changes something for are told, but the one who is answered here.
        """
        ...

    async def link_of(self, identity: ChannelIdentity) -> LinkRecord | None:
        """The link of an identity, if there is one."""
        ...

    async def part(self, identity: ChannelIdentity, *, here: ChannelIdentity | None = None) -> None:
        """Separates an identity again, in one transaction; one that has no link stays as it is. Tells as `join`."""
        ...

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Says something to a person in their direct chat; false where the channel can't speak first, or failed to."""
        ...


class IdentityLinker(Protocol):
    """Begins and completes the proof."""

    name: str
    gives_claims: bool
    """Whether its links carry verified claims."""

    def use(self, desk: LinkDesk) -> None:
        """Told once, before the host starts."""
        ...

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        """Asks the person behind `identity` for a proof."""
        ...

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord | LinkChallenge | None:
        """Checks the proof that `identity` brings.

        A challenge means that somebody has to do something first, `None` that the person has given it up.
        """
        ...

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        """The link of an identity, if there is one."""
        ...

    async def unlink(self, identity: ChannelIdentity) -> None:
        """Separates the identity again."""
        ...


@runtime_checkable
class SupportsLinkRoutes(Protocol):
    """A linker to which a browser comes back."""

    path: str

    def routes(self) -> Sequence[BaseRoute]:
        """What it serves, below its path."""
        ...


@runtime_checkable
class ReadsClaims(Protocol):
    """A linker that knows who verified claims speak of, so that they link without a ceremony."""

    def subject_of(self, claims: Mapping[str, Any]) -> str | None:
        """The subject of claims that a channel has verified; `None` if they are not of the linker's own issuer."""
        ...


@runtime_checkable
class SupportsLinkStorePath(Protocol):
    """A linker that keeps its own store, under the host's state directory."""

    def use_link_store(self, path: str) -> None:
        """Told once, before the host starts."""
        ...
