"""Checks the recipients of proactive messages, and describes invalid ones in error messages for operators."""

from collections.abc import Mapping

from frontdesk.access.gate import Gate
from frontdesk.errors import ForbiddenError, LinkRequiredError, NotFoundError
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import ChecksRecipients
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.identity import Caller, ChannelIdentity


class Recipients:
    """People who can receive messages and for whom the target can run."""

    def __init__(self, store: HostStateStore, gate: Gate, channels: Mapping[str, Channel]) -> None:
        self._store = store
        self._gate = gate
        self._channels = channels

    async def authorize(self, who: ChannelIdentity) -> Allowed:
        """Return the admission of a person. Raise an operator-facing error if access is denied."""
        try:
            return await self._gate.authorize(Caller(identity=who), who.channel)
        except ForbiddenError as error:
            raise not_admitted(who, error) from None

    async def require_known(self, who: ChannelIdentity) -> None:
        """Raise if a person is unknown to the host and the channel reports that they do not exist."""
        channel = self._channels.get(who.channel)
        if not isinstance(channel, ChecksRecipients) or await self._store.identities.find(who) is not None:
            return
        if not await channel.has_recipient(who):
            raise NotFoundError(
                f"No person with id {who.native_id!r} on channel {who.channel!r}. "
                f"`frontdesk people list --channel {who.channel}` lists the known people.",
                code="unknown_recipient",
                param="to",
            )


def not_admitted(who: ChannelIdentity, error: ForbiddenError) -> ForbiddenError:
    """Return the refusal with an operator-facing message. The original text addresses the refused person."""
    reason = "has to link an account first" if isinstance(error, LinkRequiredError) else "may not come in"
    return type(error)(
        f"{who.native_id!r} on {who.channel!r} {reason} ({error.code}): the allowlist and require_link of the channel "
        "decide who may.",
        code=error.code,
    )
