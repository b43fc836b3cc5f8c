"""Where an answer goes, and the rows that take it there; made before anything is written."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from agent_framework import AgentResponse, Message

from frontdesk.abc.channel import Channel
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import Delivery, Route
from frontdesk.data.identity import ChannelIdentity, PushGroup
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.response_target import Address
from frontdesk.data.result import HostedRunResult
from frontdesk.data.run import RunRecord, RunStatus
from frontdesk.delivery.push import can_push, encode_content, parts_of
from frontdesk.delivery.routing import Allow, allow_all, route, wanted
from frontdesk.errors import CodecError, FrontdeskError, RequestError
from frontdesk.ids import Ids
from frontdesk.kit.hooks import show_result
from frontdesk.loggers import deliveries as log

ACTIVE_WINDOW = 300.0
"""For how many seconds a person counts as being where they were last seen, if the operator says nothing else."""
Result = HostedRunResult[Any]
Known = Callable[[str], Awaitable[Sequence[ChannelIdentity]]]
"""The identities of an owner."""
AsksAllow = Callable[[str, str], Awaitable[bool]]
"""Whether what was said on one channel may be heard on another, as the link policy has it."""
_UNKNOWN: Mapping[str, Any] = {}
"""The reference of a place that is looked up when something is sent there."""


class Planner:
    """Knows who can be reached where, and what each destination gets."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        ids: Ids,
        clock: Clock,
        *,
        known: Known | None = None,
        allow: AsksAllow | None = None,
        active_window: float = ACTIVE_WINDOW,
    ) -> None:
        """`allow` is asked about each channel that an answer would go to; without, it may go everywhere.

        `active_window` is for how many seconds a person counts as being where they were last seen.
        """
        self._store = store
        self._channels = channels
        self._ids = ids
        self._clock = clock
        self._known = known or store.identities.of_owner
        self._allow = allow
        self._active_window = active_window
        self.pushing = frozenset(name for name, channel in channels.items() if can_push(channel))

    async def route(self, admitted: AdmittedRequest) -> Route:
        """The destinations of an answer, as things are now."""
        target = admitted.request.response_target
        # Not the identity that a hook has set: on a wire, whoever called is answered.
        origin = admitted.caller.identity
        if target.kind == "active":
            return await self._follow(admitted, origin)
        by_name = target.kind in ("channels", "all_linked")
        known = await self._identities(admitted) if by_name else ()
        named = {one.channel for one in wanted(target, known, origin)}
        allow = await self._decided(origin.channel, named & self.pushing)
        return route(target, origin=origin, known=known, pushing=self.pushing, allow=allow)

    async def _follow(self, admitted: AdmittedRequest, origin: ChannelIdentity) -> Route:
        """Find the destinations of an answer that goes to where the person is."""
        waiting = not admitted.pushes and not admitted.request.background
        seen = await self._store.identities.last_seen(admitted.owner)
        known = () if waiting or origin.channel in self.pushing else await self._identities(admitted)
        places = known if seen is None else (seen.identity, *known)
        named = {one.channel for one in places}
        return route(
            admitted.request.response_target,
            origin=origin,
            known=known,
            last_seen=seen,
            pushing=self.pushing,
            allow=await self._decided(origin.channel, named & self.pushing),
            active_since=self._clock.now() - self._active_window,
            waiting=waiting,
        )

    async def _decided(self, source: str, names: Collection[str]) -> Allow:
        """What the link policy says of some channels, as something that need not be asked again."""
        if self._allow is None:
            return allow_all
        allowed = {name for name in names if await self._allow(source, name)}
        return lambda _, there: there in allowed

    async def _identities(self, admitted: AdmittedRequest) -> Sequence[ChannelIdentity]:
        """Where the person is known; whoever speaks for the first time is known by that."""
        found = await self._known(admitted.owner)
        return found if any(one.key == admitted.identity.key for one in found) else [*found, admitted.identity]

    async def rows(
        self, admitted: AdmittedRequest, result: Any, run: RunRecord, way: Route, said: Sequence[Message]
    ) -> list[Delivery]:
        """What is sent for a result, a row a part; `said` are the words that it answers."""
        answer = HostedRunResult(result=result, run=_slim(run))
        owner, request = admitted.owner, admitted.request
        rows: list[Delivery] = []
        if way.originating and self._goes_back(admitted):
            # The channel that asked gets its own words back, such as the message that it answers.
            own = answer.replace(run=answer.run.replace(details=run.details))
            back = await self._answer(owner, request, own, admitted.caller.identity, originating=True)
            rows += self._named(back)
        if not way.destinations:
            return rows
        words = _echo(said) if request.response_target.echo_input else None
        echo = answer.replace(result=words) if words is not None and words.messages else None
        # A group that several of them share gets an answer once.
        served = {one.destination for one in rows}
        for who in await self._people(admitted.owner, way.destinations):
            group = await self.group_of(who)
            if group is not None and (who.channel, group.conversation_id) in served:
                continue
            parts = self._named(await self._answer(owner, request, answer, who, echo, group=group))
            served.update(one.destination for one in parts)
            rows += parts
        return rows

    async def _people(self, owner: str, addresses: Sequence[Address]) -> Sequence[ChannelIdentity]:
        """Return those who get an answer, with the attributes that were given or else the newest."""
        known = {Address.of(one): one for one in await self._known(owner)}
        found: list[ChannelIdentity] = []
        for address in addresses:
            named = ChannelIdentity(address.channel, address.native_id, address.attributes)
            found.append(known.get(address) or await self.with_attributes(named))
        return found

    async def with_attributes(self, who: ChannelIdentity) -> ChannelIdentity:
        """Return somebody with the attributes that they were named with, or else with the newest that are known."""
        record = None if who.attributes else await self._store.identities.find(who)
        return who if record is None else record.identity

    async def group_of(self, who: ChannelIdentity) -> PushGroup | None:
        """Return the group in which somebody is spoken to; elsewhere than in shared conversations it is none."""
        if self._channels[who.channel].conversation_scope != "per_conversation":
            return None
        return (await self._store.identities.reach(who)).group

    def _goes_back(self, admitted: AdmittedRequest) -> bool:
        """Tell whether an answer for its origin is a delivery: after an event, or where `active` has led back to."""
        if admitted.pushes:
            return True
        is_active = admitted.request.response_target.kind == "active"
        return is_active and admitted.request.background and admitted.caller.identity.channel in self.pushing

    async def failure_notice(
        self, request: ChannelRequest, who: ChannelIdentity, text: str, *, owner: str = "", run_id: str = ""
    ) -> list[Delivery]:
        """Says why there is no answer, where the answer would have gone; no hook sees it, because nothing was said."""
        blank = self._blank(owner, request, who, run_id, originating=True)
        return self._plain(blank, text, "failed", request.details)

    def reply(self, request: ChannelRequest, who: ChannelIdentity, text: str, key: str) -> list[Delivery]:
        """The channel's own words to where a request came from; the same key gives the same ids."""
        blank = self._blank("", request, who, f"run_{key}", originating=True)
        rows = self._plain(blank, text, "completed", request.details)
        return [one.replace(delivery_id=f"dlv_{key}_{one.part}", answer_id=f"ans_{key}") for one in rows]

    def notice(self, who: ChannelIdentity, text: str, *, owner: str) -> list[Delivery]:
        """Tells somebody in their direct chat what the host has done; nothing where the channel can't speak first."""
        if who.channel not in self.pushing:
            return []
        blank = self._blank(owner, ChannelRequest(channel=who.channel), who, self._ids.new("run"), originating=False)
        return self._plain(blank, text, "completed")

    def progress(self, admitted: AdmittedRequest, text: str) -> list[Delivery]:
        """Tell whoever asked how their run goes, where they asked; nothing where the channel can't speak first."""
        who = admitted.caller.identity
        if who.channel not in self.pushing:
            return []
        blank = self._blank(admitted.owner, admitted.request, who, admitted.run_id, originating=True)
        return self._plain(blank, text, "queued", admitted.request.details)

    def _plain(
        self, blank: Delivery, text: str, status: RunStatus, details: Mapping[str, Any] | None = None
    ) -> list[Delivery]:
        """Words of the host's own, in parts; `details` are what the channel needs to say them as it answers."""
        channel, said = self._channels[blank.channel], AgentResponse(messages=[Message("assistant", [text])])
        run = RunRecord(
            run_id=blank.run_id,
            owner=blank.owner,
            channel=channel.name,
            status=status,
            created_at=blank.created_at,
            details=details or {},
        )
        try:
            contents = [
                encode_content(channel, one) for one in parts_of(channel, HostedRunResult(result=said, run=run))
            ]
        except CodecError as error:
            log.error("what the host has to say can't be said on %s: %s", channel.name, error)
            return []
        return self._named([blank.replace(payload=one, part=n, parts=len(contents)) for n, one in enumerate(contents)])

    def _blank(
        self,
        owner: str,
        request: ChannelRequest,
        who: ChannelIdentity,
        run_id: str,
        *,
        originating: bool,
        group: PushGroup | None = None,
    ) -> Delivery:
        there, reference = (request.conversation_id, request.reference) if originating else (None, _UNKNOWN)
        if group is not None:
            there, reference = group.conversation_id, group.reference
        shared, now = group is not None or request.group, self._clock.now()
        return Delivery(
            delivery_id="",
            answer_id=self._ids.new("ans"),
            run_id=run_id,
            owner=owner,
            channel=who.channel,
            identity=who,
            conversation_id=there,
            reference=reference,
            # A direct chat has one queue, whether somebody is answered there or spoken to first.
            queue="" if there is None or shared else who.native_id,
            part=0,
            payload=None,
            created_at=now,
            due_at=now,
        )

    def _named(self, parts: Sequence[Delivery]) -> list[Delivery]:
        return [one.replace(delivery_id=self._ids.new("dlv")) for one in parts]

    async def reach(self, owner: str) -> ChannelIdentity | None:
        """Where a person is reached who has not asked: where they were last seen, or else anywhere."""
        seen = await self._store.identities.last_seen(owner)
        known = [one for one in await self._known(owner) if one.channel in self.pushing]
        here = [one for one in known if seen is not None and one.key == seen.identity.key]
        return next(iter([*here, *known]), None)

    async def told(
        self,
        owner: str,
        who: ChannelIdentity,
        messages: Sequence[Message],
        run: RunRecord,
        key: str,
        group: PushGroup | None = None,
    ) -> list[Delivery]:
        """The parts of something that nobody has asked for; the same key gives the same ids."""
        request = ChannelRequest(channel=who.channel, identity=who)
        answer = HostedRunResult(result=AgentResponse(messages=list(messages)), run=run)
        parts = await self._answer(owner, request, answer, who, group=group)
        return [one.replace(delivery_id=f"dlv_{key}_{one.part}", answer_id=f"ans_{key}") for one in parts]

    async def _answer(
        self,
        owner: str,
        request: ChannelRequest,
        answer: Result,
        who: ChannelIdentity,
        echo: Result | None = None,
        *,
        originating: bool = False,
        group: PushGroup | None = None,
    ) -> list[Delivery]:
        """The parts for one destination; whatever goes wrong here is the end of this one alone."""
        channel = self._channels[who.channel]
        blank = self._blank(owner, request, who, answer.run.run_id, originating=originating, group=group)
        spoken: list[Delivery] = []
        if echo is not None:
            spoken += await self._parts(channel, echo, blank.replace(is_echo=True), request, originating)
        spoken += await self._parts(channel, answer, blank, request, originating)
        return [one.replace(part=number, parts=len(spoken)) for number, one in enumerate(spoken)]

    async def _parts(
        self, channel: Channel, result: Result, row: Delivery, request: ChannelRequest, originating: bool
    ) -> list[Delivery]:
        try:
            result = await show_result(
                channel, result, request, row.identity, originating=originating, is_echo=row.is_echo
            )
            return [row.replace(payload=encode_content(channel, one)) for one in parts_of(channel, result)]
        except FrontdeskError as error:
            reason = error.code if isinstance(error, RequestError) else "not_encodable"
            log.error("what %s should get of run %s is dead: %s", channel.name, result.run.run_id, reason)
            if isinstance(error, CodecError):
                log.error("it can't be stored: %s", error)
            return [row.replace(status="dead", error=reason, ended_at=row.created_at)]


def _slim(run: RunRecord) -> RunRecord:
    """The run as those know it who get its answer: without what it read and what it left behind."""
    return run.replace(input=None, result=None, state=None, checkpoint=None, stopped_at=None, details={})


def _echo(said: Sequence[Message]) -> AgentResponse[Any]:
    """Return the user's words as what was said before the answer; their role tells them from it."""
    return AgentResponse(messages=[Message("user", list(one.contents)) for one in said if one.role == "user"])
