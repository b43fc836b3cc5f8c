"""Computes the route and the deliveries of an answer. Writes nothing."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from agent_framework import AgentResponse, Message

from frontdesk.chat.commands import locale_of_person, parse_locale
from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording
from frontdesk.clock import Clock
from frontdesk.concurrency.offload import run_rendering
from frontdesk.delivery.awaited import for_event
from frontdesk.delivery.push import call_channel, can_push, encode_content, get_components
from frontdesk.delivery.routing import Allow, allow_all, list_addresses, route
from frontdesk.errors import CodecError, FrontdeskError, RequestError
from frontdesk.hooks import show_result
from frontdesk.ids import Ids
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import AsksApprovers, ShowsQuestions
from frontdesk.interfaces.context import RendersReplies
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import deliveries as log
from frontdesk.models.approval import PendingApproval, QuestionView
from frontdesk.models.delivery import Delivery, InboxItem, Route
from frontdesk.models.identity import ChannelIdentity, PushGroup
from frontdesk.models.reply import Address, Reply
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord, RunStatus


def place_reply(channel: Channel, item: InboxItem, reply: Reply) -> tuple[Reply, Sequence[Any] | None]:
    """Return a reply with its destination, and its parts if the channel creates them itself."""
    if not isinstance(channel, RendersReplies):
        return (reply.replace(to="direct") if reply.to == "only_me" else reply), None
    parts: Sequence[Any] | None = call_channel(lambda: channel.reply_parts(item, reply))
    if parts is None:
        direct = reply.replace(to="direct")
        return direct, list(call_channel(lambda: channel.reply_parts(item, direct)) or ())
    return reply, list(parts)


ACTIVE_WINDOW_SECONDS = 300.0
"""The default number of seconds for which a person counts as being where they were last seen."""
Result = HostedRunResult[Any]
Known = Callable[[str], Awaitable[Sequence[ChannelIdentity]]]
"""Returns the identities of an owner."""
AsksAllow = Callable[[str, str], Awaitable[bool]]
"""Tells whether the link policy lets messages of one channel go to another."""
SeenOn = Callable[[ChannelIdentity, str], ChannelIdentity]
_UNKNOWN: Mapping[str, Any] = {}
"""The reference of a place that is looked up when something is sent there."""


class Planner:
    """Resolves destinations and creates the deliveries for each of them."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        ids: Ids,
        clock: Clock,
        *,
        known: Known | None = None,
        allow: AsksAllow | None = None,
        active_window: float = ACTIVE_WINDOW_SECONDS,
        texts: Texts | None = None,
        seen_on: SeenOn = lambda identity, channel: identity,
    ) -> None:
        """`allow` is checked for each channel that an answer would go to. Without it, all are allowed.

        `active_window` is the number of seconds for which a person counts as active where they were last seen.
        `seen_on` returns an identity by its name on a channel.
        """
        self._store = store
        self._channels = channels
        self._ids = ids
        self._clock = clock
        self._known = known or store.identities.of_owner
        self._allow = allow
        self.seen_on = seen_on
        self._active_window = active_window
        self._texts = texts or Texts()
        self.pushing = frozenset(name for name, channel in channels.items() if can_push(channel))

    async def route(self, admitted: AdmittedRequest) -> Route:
        """Return the current route of an answer."""
        target = admitted.request.response_target
        # Not the identity that a hook has set: on a wire, the caller is answered.
        origin = self.seen_on(admitted.caller.identity, admitted.request.channel)
        if target.kind == "active":
            return await self._route_to_active(admitted, origin)
        by_name = target.kind in ("channels", "all_linked")
        identities = await self._identities(admitted) if by_name else ()
        named = {address.channel for address in list_addresses(target, identities, origin)}
        allow = await self._find_allowed(origin.channel, named & self.pushing)
        return route(target, origin=origin, known=identities, pushing=self.pushing, allow=allow)

    async def _route_to_active(self, admitted: AdmittedRequest, origin: ChannelIdentity) -> Route:
        """Return the route of an answer to the channel on which the person is active."""
        waiting = not admitted.pushes and not admitted.request.background
        seen = await self._store.identities.last_seen(admitted.owner)
        identities = () if waiting or origin.channel in self.pushing else await self._identities(admitted)
        places = identities if seen is None else (seen.identity, *identities)
        named = {identity.channel for identity in places}
        return route(
            admitted.request.response_target,
            origin=origin,
            known=identities,
            last_seen=seen,
            pushing=self.pushing,
            allow=await self._find_allowed(origin.channel, named & self.pushing),
            active_since=self._clock.now() - self._active_window,
            waiting=waiting,
        )

    async def _find_allowed(self, source: str, names: Collection[str]) -> Allow:
        """Query the link policy for some channels and return a function with its decisions."""
        if self._allow is None:
            return allow_all
        allowed = {name for name in names if await self._allow(source, name)}
        return lambda _, there: there in allowed

    async def _identities(self, admitted: AdmittedRequest) -> Sequence[ChannelIdentity]:
        """Return the identities of the person, including that of the request even if it is new."""
        channel = admitted.request.channel
        identities = [self.seen_on(each, channel) for each in await self._known(admitted.owner)]
        own = self.seen_on(admitted.identity, channel)
        return identities if any(each.key == own.key for each in identities) else [*identities, own]

    def origin(self, request: ChannelRequest, identity: ChannelIdentity, owner: str, run_id: str) -> Delivery:
        """Return a delivery without content to the origin of a request."""
        return self._blank(owner, request, identity, run_id, originating=True)

    async def rows(
        self,
        admitted: AdmittedRequest,
        result: Any,
        run: RunRecord,
        route: Route,
        asked: Sequence[Message],
        shown: Any = None,
        questions: Sequence[PendingApproval] = (),
    ) -> list[Delivery]:
        """Return the deliveries of a result, one for each part. `asked` are the messages that it answers.

        `shown` is the result as streamed, if a hook has changed it. `questions` are the questions of the result that
        others decide.
        """
        answer = HostedRunResult(result=result, run=_slim(run), questions=_strip_questions(questions))
        owner, request = admitted.owner, admitted.request
        rows: list[Delivery] = []
        trace = admitted.trace
        if route.originating and self._pushes_back(admitted):
            # The originating channel needs its own details, such as the message that it answers.
            own = answer.replace(run=answer.run.replace(details=run.details), result=result if shown is None else shown)
            back = await self._answer(owner, request, own, admitted.caller.identity, originating=True)
            rows += self._with_ids(back)
        if not route.destinations:
            return set_trace(rows, trace)
        question = _echo(asked) if request.response_target.echo_input else None
        echo = answer.replace(result=question) if question is not None and question.messages else None
        # A group that several destinations share gets an answer once.
        served = {row.destination for row in rows}
        for identity in await self._people(admitted.owner, route.destinations):
            group = await self.get_group(identity)
            if group is not None and (identity.channel, group.conversation_id) in served:
                continue
            parts = self._with_ids(await self._answer(owner, request, answer, identity, echo, group=group))
            served.update(row.destination for row in parts)
            rows += parts
        return set_trace(rows, trace)

    async def _people(self, owner: str, addresses: Sequence[Address]) -> Sequence[ChannelIdentity]:
        """Return the identities at some addresses, with the given attributes or else the newest stored ones."""
        stored = {Address.of(identity): identity for identity in await self._known(owner)}
        people: list[ChannelIdentity] = []
        for address in addresses:
            named = ChannelIdentity(address.channel, address.native_id, address.attributes)
            people.append(stored.get(address) or await self.with_attributes(named))
        return people

    async def with_attributes(self, identity: ChannelIdentity) -> ChannelIdentity:
        """Return an identity with its given attributes, or else with the newest stored ones."""
        record = None if identity.attributes else await self._store.identities.find(identity)
        return identity if record is None else record.identity

    async def get_group(self, identity: ChannelIdentity) -> PushGroup | None:
        """Return the group in which a person is reached, on channels with shared conversations."""
        if self._channels[identity.channel].conversation_scope != "per_conversation":
            return None
        return (await self._store.identities.reach(identity)).group

    def _pushes_back(self, admitted: AdmittedRequest) -> bool:
        """Return True if the answer to the origin is a delivery: for an event, or if `active` resolves to the
        origin."""
        if admitted.pushes:
            return True
        is_active = admitted.request.response_target.kind == "active"
        return is_active and admitted.request.background and admitted.caller.identity.channel in self.pushing

    async def failure_notice(
        self,
        request: ChannelRequest,
        identity: ChannelIdentity,
        reason: RequestError | str,
        *,
        owner: str = "",
        run_id: str = "",
    ) -> list[Delivery]:
        """Return the notice of a failure for the destination of the answer. No hook runs on it: it is not a result."""
        wording = Wording(self._texts, parse_locale(request, identity))
        text = wording.failure(reason) if isinstance(reason, str) else wording.error(reason)
        blank = self._blank(owner, request, identity, run_id, originating=True)
        return self._plain(blank, [text], "failed", request.details)

    def reply(self, item: InboxItem, shown: InboxItem, reply: Reply, key: str) -> list[Delivery]:
        """Return the parts of a reply to an event, as its channel sees it. The same key gives the same ids."""
        request, identity = item.request, item.caller.identity
        try:
            reply, parts = place_reply(self._channels[item.channel], shown, reply)
        except CodecError as error:
            log.error("failed to render a reply: channel=%s: %s", item.channel, error)
            return []
        here = reply.to != "direct" or not request.group
        # Whoever waits for an answer on the wire finds all that is said by the id of the event's run.
        run_id = f"run_{key}" if item.reply_by is None or item.run_id is None else item.run_id
        blank = self._blank("", request, identity, run_id, originating=here)
        if reply.to == "only_me":
            # Nobody else sees it, so that it does not wait for what is sent to the whole group.
            blank = blank.replace(queue=identity.native_id)
        if parts is None:
            said = [*filter(None, [reply.full_text]), *reply.media]
            rows = self._plain(blank, said, "completed", request.details if here else None)
        else:
            rows = self._encode(blank, parts)
        if reply.to == "only_me":
            rows = [row.replace(reply_token=item.reply_token) for row in rows]
        elif rows:
            rows = [*self.for_event([rows[0].replace(replaces=reply.replaces), *rows[1:]], item)]
        rows = set_trace(rows, item.trace)
        return [row.replace(delivery_id=f"dlv_{key}_{row.part}", answer_id=f"ans_{key}") for row in rows]

    def for_event(self, rows: Sequence[Delivery], event: InboxItem) -> Sequence[Delivery]:
        """Return deliveries as answers to an event: with its token, and held for a waiting HTTP caller."""
        return for_event(set_trace(rows, event.trace), event, self._clock.now())

    def notice(self, identity: ChannelIdentity, text: str, *, owner: str) -> list[Delivery]:
        """Return a notice for a person's direct chat. Empty if the channel can't push."""
        if identity.channel not in self.pushing:
            return []
        request = ChannelRequest(channel=identity.channel)
        blank = self._blank(owner, request, identity, self._ids.new("run"), originating=False)
        return self._plain(blank, [text], "completed")

    def question(self, view: QuestionView, person: ChannelIdentity, key: str) -> list[Delivery]:
        """Return the deliveries that ask an approver in their direct chat. The same key gives the same ids."""
        channel, approval = self._channels[person.channel], view.approval
        if not isinstance(channel, AsksApprovers):
            return []
        request = ChannelRequest(channel=person.channel)
        blank = self._blank(approval.owner, request, person, approval.run_id, originating=False)
        try:
            parts = [_part(channel, blank, content) for content in channel.approver_question(view)]
        except CodecError as error:
            log.error("failed to render a question: channel=%s: %s", person.channel, error)
            return []
        rows = [row.replace(part=number, parts=len(parts)) for number, row in enumerate(parts)]
        rows = [row.replace(delivery_id=f"dlv_{key}_{row.part}", answer_id=f"ans_{key}") for row in rows]
        return set_trace(rows, approval.trace)

    def progress(self, admitted: AdmittedRequest, text: str) -> list[Delivery]:
        """Return a progress text for the origin of a run. Empty if the channel can't push."""
        identity = admitted.caller.identity
        if identity.channel not in self.pushing:
            return []
        blank = self._blank(admitted.owner, admitted.request, identity, admitted.run_id, originating=True)
        return self._plain(blank, [text], "queued", admitted.request.details)

    def _plain(
        self, blank: Delivery, said: Sequence[Any], status: RunStatus, details: Mapping[str, Any] | None = None
    ) -> list[Delivery]:
        """Return the parts of a message of the host. `details` are those of the request that is answered."""
        channel, response = self._channels[blank.channel], AgentResponse(messages=[Message("assistant", said)])
        run = RunRecord(
            run_id=blank.run_id,
            owner=blank.owner,
            channel=channel.name,
            status=status,
            created_at=blank.created_at,
            details=details or {},
        )
        try:
            parts = get_components(channel, HostedRunResult(result=response, run=run))
        except CodecError as error:
            log.error("failed to render a message of the host: channel=%s: %s", channel.name, error)
            return []
        return self._encode(blank, parts)

    def _encode(self, blank: Delivery, parts: Sequence[Any]) -> list[Delivery]:
        channel = self._channels[blank.channel]
        try:
            contents = [encode_content(channel, part) for part in parts]
        except CodecError as error:
            log.error("failed to encode a message of the host: channel=%s: %s", channel.name, error)
            return []
        return self._with_ids(
            [blank.replace(payload=content, part=n, parts=len(contents)) for n, content in enumerate(contents)]
        )

    def _blank(
        self,
        owner: str,
        request: ChannelRequest,
        identity: ChannelIdentity,
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
            channel=identity.channel,
            identity=identity,
            conversation_id=there,
            reference=reference,
            # A direct chat has one queue, for answers and for messages that the host starts.
            queue="" if there is None or shared else identity.native_id,
            part=0,
            payload=None,
            created_at=now,
            due_at=now,
        )

    def _with_ids(self, parts: Sequence[Delivery]) -> list[Delivery]:
        return [part.replace(delivery_id=self._ids.new("dlv")) for part in parts]

    async def reach(self, owner: str) -> ChannelIdentity | None:
        """Return the identity at which to reach a person proactively: where last seen, or else any."""
        seen = await self._store.identities.last_seen(owner)
        reachable = [identity for identity in await self._known(owner) if identity.channel in self.pushing]
        here = [identity for identity in reachable if seen is not None and identity.key == seen.identity.key]
        return next(iter([*here, *reachable]), None)

    async def proactive(
        self,
        owner: str,
        identity: ChannelIdentity,
        messages: Sequence[Message],
        run: RunRecord,
        key: str,
        group: PushGroup | None = None,
    ) -> list[Delivery]:
        """Return the deliveries of a proactive message. The same key gives the same ids."""
        request = ChannelRequest(channel=identity.channel, identity=identity)
        answer = HostedRunResult(result=AgentResponse(messages=list(messages)), run=run)
        parts = await self._answer(owner, request, answer, identity, group=group)
        return [row.replace(delivery_id=f"dlv_{key}_{row.part}", answer_id=f"ans_{key}") for row in parts]

    async def _answer(
        self,
        owner: str,
        request: ChannelRequest,
        answer: Result,
        identity: ChannelIdentity,
        echo: Result | None = None,
        *,
        originating: bool = False,
        group: PushGroup | None = None,
    ) -> list[Delivery]:
        """Return the parts for one destination. An error here fails this destination alone."""
        channel = self._channels[identity.channel]
        blank = self._blank(owner, request, identity, answer.run.run_id, originating=originating, group=group)
        parts: list[Delivery] = []
        if echo is not None:
            parts += await self._parts(channel, echo, blank.replace(is_echo=True), request, originating)
        parts += await self._parts(channel, answer, blank, request, originating)
        return [row.replace(part=number, parts=len(parts)) for number, row in enumerate(parts)]

    async def _parts(
        self, channel: Channel, result: Result, row: Delivery, request: ChannelRequest, originating: bool
    ) -> list[Delivery]:
        try:
            result = await show_result(
                channel, result, request, row.identity, originating=originating, is_echo=row.is_echo
            )
            locale = parse_locale(request, row.identity) if originating else locale_of_person(row.identity)
            if locale is not None:
                result = result.replace(locale=locale)
            return await run_rendering(result.result, _build_rows, channel, row, result)
        except FrontdeskError as error:
            reason = error.code if isinstance(error, RequestError) else "not_encodable"
            log.error("delivery failed permanently: channel=%s run_id=%s: %s", channel.name, result.run.run_id, reason)
            if isinstance(error, CodecError):
                log.error("it cannot be stored: %s", error)
            return [row.replace(status="dead", error=reason, ended_at=row.created_at)]


def _build_rows(channel: Channel, row: Delivery, result: Result) -> list[Delivery]:
    return [_part(channel, row, content) for content in get_components(channel, result)]


def _part(channel: Channel, row: Delivery, content: Any) -> Delivery:
    """Return a part with its content, and with the approval that it asks about, if any."""
    row = row.replace(payload=encode_content(channel, content))
    return row.replace(approval_id=channel.question_in(content)) if isinstance(channel, ShowsQuestions) else row


def set_trace(rows: Sequence[Delivery], trace: str | None) -> list[Delivery]:
    """Set the trace of deliveries that do not have one yet."""
    if trace is None:
        return [*rows]
    return [row if row.trace is not None else row.replace(trace=trace) for row in rows]


def _strip_questions(questions: Sequence[PendingApproval]) -> tuple[PendingApproval, ...]:
    """Return questions without their suspended request and its claims, as given to renderers."""
    return tuple(question.replace(requester=None, resume=None, trace=None) for question in questions)


def _slim(run: RunRecord) -> RunRecord:
    """Return a run without its input, result and state, as given to recipients."""
    return run.replace(input=None, result=None, state=None, checkpoint=None, stopped_at=None, details={})


def _echo(asked: Sequence[Message]) -> AgentResponse[Any]:
    """Return the user's messages to be sent before the answer. Their role distinguishes them from it."""
    return AgentResponse(messages=[Message("user", list(each.contents)) for each in asked if each.role == "user"])
