"""How a person proves that two identities are theirs."""

from typing import Protocol, runtime_checkable

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import LinkChallenge, LinkRecord


class IdentityLinker(Protocol):
    """Begins and completes the proof."""

    name: str

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        """Asks the person behind `identity` for a proof."""
        ...

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord:
        """Checks the proof."""
        ...

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        """The link of an identity, if there is one."""
        ...

    async def unlink(self, identity: ChannelIdentity) -> None:
        """Separates the identity again."""
        ...


@runtime_checkable
class SupportsLinkStorePath(Protocol):
    """A linker that keeps its own store, under the host's state directory."""

    def use_link_store(self, path: str) -> None:
        """Told once, before the host starts."""
        ...
