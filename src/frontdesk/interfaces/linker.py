"""The interface of linkers, which prove that two identities belong to one person."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from starlette.routing import BaseRoute

from frontdesk.interfaces.abilities import channel_ability, linker_ability
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import Grant, LinkChallenge, LinkProof, LinkQuestion, LinkRecord


@channel_ability
class ObservesLinks(ABC):
    """A channel that shows data that depends on links."""

    @abstractmethod
    async def links_changed(self, people: Sequence[ChannelIdentity]) -> None:
        """Handle that identities of this channel were linked or unlinked.

        Called after the change, and not at all if the process ends in between.
        """


class LinkerContext(Protocol):
    """The host's API for linkers. It stores proofs in progress, and only it changes links."""

    @property
    def public_url(self) -> str | None:
        """The URL of the host for browsers: the default of the linker's own setting."""
        ...

    def now(self) -> float:
        """Return the current time."""
        ...

    def new_id(self, prefix: str) -> str:
        """Return an unguessable id."""
        ...

    async def secret(self, name: str) -> bytes:
        """Return a persistent secret of the host for signatures of a linker. It is the same on every replica."""
        ...

    def command(self, channel: str, name: str) -> str | None:
        """Return a command as typed on a channel, such as `/link`, or None if it does not exist there."""
        ...

    async def keep(self, grant: Grant) -> None:
        """Store a proof in progress. Raises `StoreError` if the id exists."""
        ...

    async def kept(self, grant_id: str) -> Grant | None:
        """Return a proof in progress that is neither used nor expired."""
        ...

    async def exchange(self, grant_id: str, *then: Grant) -> bool:
        """Consume a proof and store others in its place, in one transaction. Return False if another call was first."""
        ...

    async def join(self, proof: LinkProof, *, here: ChannelIdentity | None = None) -> LinkRecord:
        """Create the proven link in one transaction. Raises `LinkRefusedError` if it is not allowed.

        All affected identities are notified, except `here`, which receives the answer.
        """
        ...

    async def find_link(self, identity: ChannelIdentity) -> LinkRecord | None:
        """Return the link of an identity, if any."""
        ...

    async def part(self, identity: ChannelIdentity, *, here: ChannelIdentity | None = None) -> None:
        """Unlink an identity in one transaction. An unlinked one is unchanged. Notifies like `join`."""
        ...

    def say(self, identity: ChannelIdentity, key: str, /, **values: Any) -> str:
        """Return a text of the host's catalogue in the language of a person."""
        ...

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Send a text to a person's direct chat. Return False if the channel can't push, or failed to."""
        ...


class IdentityLinker(Protocol):
    """Starts and completes the proof of a link."""

    name: str
    gives_claims: bool
    """Whether its links carry verified claims."""

    def use(self, host: LinkerContext, /) -> None:
        """Receive the host's link API. Called once, before the host starts."""
        ...

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        """Request a proof from the person behind `identity`."""
        ...

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord | LinkChallenge | None:
        """Check the proof submitted by `identity`.

        A challenge means that another step is required first, None that the person has abandoned the linking.
        """
        ...

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        """Return the link of an identity, if any."""
        ...

    async def unlink(self, identity: ChannelIdentity) -> None: ...


@linker_ability
class SupportsLinkRoutes(ABC):
    """A linker with HTTP routes, such as the callback of a browser sign-in."""

    path: str

    @abstractmethod
    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes, relative to its path."""


@linker_ability
class SupportsLinkReturn(ABC):
    """A linker whose browser flow can end on a page of the host."""

    @abstractmethod
    async def begin_from(self, identity: ChannelIdentity, return_to: str) -> LinkChallenge:
        """Request a proof like `begin`. `return_to` is the path of the page to which the browser returns."""


@linker_ability
class SupportsLinkQuestions(ABC):
    """A linker that asks people to confirm the other identity."""

    @abstractmethod
    async def find_question(self, identity: ChannelIdentity) -> LinkQuestion | None:
        """Return the open question of an identity. It counts as shown from then on."""


@linker_ability
class ReadsClaims(ABC):
    """A linker that derives the subject from verified claims, so that they link without a separate proof."""

    @abstractmethod
    def get_subject(self, claims: Mapping[str, Any]) -> str | None:
        """Return the subject of claims that a channel has verified, or None if they are from another issuer."""


@linker_ability
class SupportsLinkStorePath(ABC):
    """A linker with its own store in the host's state directory."""

    @abstractmethod
    def use_link_store(self, path: str) -> None:
        """Receive the path of the store. Called once, before the host starts."""


@linker_ability
class SupportsLinkStartup(ABC):
    """A linker that opens resources at startup."""

    @abstractmethod
    async def on_startup(self) -> None:
        """Open resources. Called once per process, after the store is open and before the channels start."""


@linker_ability
class SupportsLinkShutdown(ABC):
    """A linker that closes resources at shutdown."""

    @abstractmethod
    async def on_shutdown(self) -> None:
        """Close resources. Called once per process, after the channels have stopped and before the store closes."""
