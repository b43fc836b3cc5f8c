"""Sends notices to people, beside any answer."""

import asyncio
from collections.abc import Mapping, Sequence

from frontdesk.abc.channel import Channel, ChannelCommand
from frontdesk.abc.linker import HearsLinks
from frontdesk.abc.store import HostStateStore
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.request import AdmittedRequest
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import read_payload, reference_of, send
from frontdesk.errors import FrontdeskError
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.chat.commands import locale_of
from frontdesk.kit.chat.texts import ENGLISH, Texts
from frontdesk.loggers import host as log

WORK_GOES_ON = ENGLISH["background.works"]
"""The text for a caller in a chat whose run goes on in the background, in English."""
_CANCEL = "cancel"
LONGEST = 10.0
"""The seconds that a platform may take for it."""


class DirectNotifier:
    """Sends notices through the channels that can push."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        store: HostStateStore,
        planner: Planner,
        outbox: OutboxSender,
        texts: Texts | None = None,
    ) -> None:
        self._texts = texts or Texts()
        self._channels = channels
        self._store = store
        self._planner = planner
        self._outbox = outbox
        self._cancelling: set[str] = set()
        """The channels that have a command with which a person cancels background runs."""

    def offer(self, channel: str, commands: Sequence[ChannelCommand]) -> None:
        """Note the commands of a channel, to mention them in notices."""
        if any(command.name == _CANCEL for command in commands):
            self._cancelling.add(channel)

    def work_goes_on(self, admitted: AdmittedRequest, event: InboxItem) -> Sequence[Delivery]:
        """Make the notice that a run goes on in the background; to be written with the run."""
        can_cancel = admitted.request.channel in self._cancelling
        locale = locale_of(admitted.request, admitted.caller.identity)
        text = self._texts.say("background.works", locale)
        if can_cancel:
            text = f"{text} {self._texts.say('background.cancel', locale, command=_CANCEL)}"
        return self._planner.for_event(self._planner.progress(admitted, text), event)

    async def links_changed(self, people: Sequence[ChannelIdentity]) -> None:
        """Let the channels take note that identities of theirs were linked or separated; failures are only logged."""
        for name, channel in self._channels.items():
            theirs = [identity for identity in people if identity.channel == name]
            if not theirs or not isinstance(channel, HearsLinks):
                continue
            try:
                await channel.links_changed(theirs)
            except FrontdeskError as error:
                log.warning("%s could not take note of a link: %s", name, error)

    def can_tell(self, identity: ChannelIdentity) -> bool:
        """Tell whether the channel of an identity can push."""
        return identity.channel in self._planner.pushing

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Send a text to a person's direct chat, if that is possible; failures are only logged."""
        parts = self._planner.notice(identity, text, owner="")
        if not parts:
            return False
        try:
            async with asyncio.timeout(LONGEST):
                # Not in the context of the present request: the notice is for another person.
                await spawn_clean(self._push(self._channels[identity.channel], parts))
        except Exception as error:  # A platform's client may raise anything; what was done before stays done.
            log.warning("a person on %s could not be told of a change: %s", identity.channel, type(error).__name__)
            return False
        return True

    def notes(self, people: Sequence[ChannelIdentity], text: str, *, owner: str) -> Sequence[Delivery]:
        """Make notices for people in their direct chats; to be written with the change that they report."""
        return [row for person in people for row in self._planner.notice(person, text, owner=owner)]

    async def send(self, notes: Sequence[Delivery]) -> None:
        """Send notices that were written."""
        await self._outbox.wake(notes)

    async def _push(self, channel: Channel, parts: Sequence[Delivery]) -> None:
        for part in parts:
            await send(channel, part, read_payload(part), await reference_of(self._store.identities, part))
