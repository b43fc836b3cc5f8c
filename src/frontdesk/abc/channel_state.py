"""The calls of a context that are about the channel itself: not made for a caller, and blind to other channels."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

from frontdesk.data.channel_value import StoredValue
from frontdesk.data.delivery import InboxItem
from frontdesk.data.leadership import Leadership
from frontdesk.data.reply_token import SealedToken


class ChannelStorage(Protocol):
    """Small values that a channel keeps, such as tokens: sealed, the same on all replicas, and for no other channel."""

    async def get(self, key: str) -> StoredValue | None:
        """Return a value with its version; `None` if there is none, or it has expired.

        One that was sealed with a key which the host does not have is a `SealError`.
        """
        ...

    async def set(self, key: str, value: Any, *, expires_at: float | None = None) -> str:
        """Keep a value in place of the one that is there; return its version.

        Here and below, one that is no JSON or has more than 65,536 bytes is a `ValueError`.
        """
        ...

    async def compare_and_set(
        self, key: str, expected_version: str | None, value: Any, *, expires_at: float | None = None
    ) -> str | None:
        """Keep a value unless it was changed since it was read; return its version, or `None` if it was.

        With `None` as the version it is kept if there is no value. Of many at once, over all replicas, one succeeds.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove a value, if there is one."""
        ...


class ChannelStateContext(Protocol):
    """The calls that a channel needs to work on many replicas."""

    def leadership(self, name: str) -> AbstractAsyncContextManager[Leadership]:
        """Wait until this process is the only one that runs the block, over all replicas; for a poller and the like.

        Names are per channel. When the leadership can't be kept, the block is cancelled and left with a
        `LeadershipLostError`; to go on, ask again. A process that dies is followed when its lease ends.
        """
        ...

    def channel_storage(self, name: str, *, holds_tokens: bool = True) -> ChannelStorage:
        """Return a storage for values of this channel; ask for it in `contribute`, so that warnings name the channel.

        The values are encrypted if the host has a `seal_key`. A host without one warns of a storage that holds tokens
        of other services; what is only as confidential as the conversations in the host's own store needs none.
        """
        ...

    def seal_reply_token(self, item: InboxItem, token: str, *, expires_at: float) -> InboxItem:
        """Return an event with the interaction token or reply URL that its platform gave, encrypted.

        Every part that goes back to it has it as `PushPart.reply_token`. For channels with `needs_seal_key`; without
        the host's `seal_key` it is a `SealError`. Never put a token into `details`, `attributes` or `reference`.
        """
        ...

    def open_reply_token(self, token: SealedToken | None) -> str | None:
        """Return the token of a part; `None` if there is none, or it has expired."""
        ...

    async def settle_delivery(
        self,
        *,
        receipt: str | None = None,
        key: str | None = None,
        status: Literal["delivered", "failed"],
        reason: str | None = None,
        at: float | None = None,
    ) -> bool:
        """Note what the platform says of a part that it has accepted, named by its receipt or its idempotency key.

        A failure makes a dead letter of it. False means that no delivery of this channel is known by that name, or
        that it is still being sent: let the platform say it again. `at` is the time that the platform gives; of two
        statements the later one counts, and one that was made before changes nothing.
        """
        ...

    async def is_finished(self, item: InboxItem) -> bool:
        """Tell whether an event that was accepted is finished; one that is forgotten is."""
        ...

    async def end_deliveries(
        self, place: str, *, reason: str, before: float | None = None, also: Callable[[str], bool] | None = None
    ) -> int:
        """End what waits to be sent to a conversation or a person, because the platform has closed it to the bot.

        They become dead letters with the reason, a code as that of a `PushRefusedError`; return how many. What was
        queued at or after `before` is left, and so is what is being sent at the moment. `also` chooses further places
        by their names, such as the threads of a chat.
        """
        ...

    async def alias_conversation(self, old: str, new: str) -> None:
        """Let a conversation that the platform has moved go on: events of either name find the same session and queue.

        What is pushed to any of its names goes to the newest one. To say the same again changes nothing; a name that
        the conversation had before, or a second one for the same old name, is a `ValueError`.
        """
        ...
