"""Says something to a person first, beside any answer."""

import asyncio
from collections.abc import Mapping, Sequence

from frontdesk.abc.channel import Channel, ChannelCommand
from frontdesk.abc.store import HostStateStore
from frontdesk.data.delivery import Delivery
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.request import AdmittedRequest
from frontdesk.delivery.outbox import Outbox
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import read_payload, reference_of, send
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import host as log

WORK_GOES_ON = "I am working on it; this may take a while."
"""The words with which an asker in a chat is told that their run goes on in the background."""
_HOW_TO_CANCEL = "/{} stops it."
_CANCEL = "cancel"
LONGEST = 10.0
"""How many seconds a platform may take for it."""


class DirectNotifier:
    """Speaks through the channels that can push."""

    def __init__(
        self, channels: Mapping[str, Channel], store: HostStateStore, planner: Planner, outbox: Outbox
    ) -> None:
        self._channels = channels
        self._store = store
        self._planner = planner
        self._outbox = outbox
        self._cancelling: set[str] = set()
        """The channels that have a command with which a person cancels what goes on."""

    def offer(self, channel: str, commands: Sequence[ChannelCommand]) -> None:
        """Take note of the commands of a channel, to tell people of them."""
        if any(one.name == _CANCEL for one in commands):
            self._cancelling.add(channel)

    def work_goes_on(self, admitted: AdmittedRequest) -> Sequence[Delivery]:
        """Make what tells an asker in a chat that their run goes on in the background; to be written with the run."""
        can_cancel = admitted.request.channel in self._cancelling
        text = f"{WORK_GOES_ON} {_HOW_TO_CANCEL.format(_CANCEL)}" if can_cancel else WORK_GOES_ON
        return self._planner.progress(admitted, text)

    def can_tell(self, identity: ChannelIdentity) -> bool:
        """Whether the channel of an identity can speak first."""
        return identity.channel in self._planner.pushing

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Says something in a person's direct chat, if that can be done; what goes wrong is only logged."""
        said = self._planner.notice(identity, text, owner="")
        if not said:
            return False
        try:
            async with asyncio.timeout(LONGEST):
                # Apart from the present request: whoever it belongs to, this is said to another.
                await spawn_clean(self._say(self._channels[identity.channel], said))
        except Exception as error:  # Whatever a platform's client raises: what was done before stays done.
            log.warning("somebody on %s could not be told of a change: %s", identity.channel, type(error).__name__)
            return False
        return True

    def notes(self, people: Sequence[ChannelIdentity], text: str, *, owner: str) -> Sequence[Delivery]:
        """What takes a word to people in their direct chats; to be written with what it tells of."""
        return [row for one in people for row in self._planner.notice(one, text, owner=owner)]

    async def send(self, notes: Sequence[Delivery]) -> None:
        """Has notes sent that were written."""
        await self._outbox.wake(notes)

    async def _say(self, channel: Channel, parts: Sequence[Delivery]) -> None:
        for part in parts:
            await send(channel, part, read_payload(part), await reference_of(self._store.identities, part))
