"""The policy that says which channels may share a person's memory and answers."""

from collections.abc import Awaitable
from typing import Literal, Protocol

from frontdesk.data.noun import Value

LinkOperation = Literal["link", "deliver"]


class LinkPolicyContext(Value, frozen=True, kw_only=True):
    """The question to a policy: may what is known on one channel become known on the other?"""

    operation: LinkOperation
    source: str
    """The name of the channel that the memory or the answer comes from."""
    destination: str
    source_tier: str | None = None
    destination_tier: str | None = None


class LinkPolicy(Protocol):
    """Decides about two channels of one person; asked at linking and at every delivery."""

    def __call__(self, context: LinkPolicyContext, /) -> bool | Awaitable[bool]: ...
