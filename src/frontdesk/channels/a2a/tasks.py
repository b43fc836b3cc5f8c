"""The operations on tasks, for both bindings. A task is a chain of runs, and its push configs are watchers of it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from frontdesk.channels.a2a.artifacts import is_plain
from frontdesk.channels.a2a.errors import (
    PUSH_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    ProtocolError,
    invalid,
    task_not_found,
)
from frontdesk.channels.a2a.links import LinkTasks
from frontdesk.channels.a2a.parse import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    Sent,
    build_input,
    parse_number,
    parse_state,
    parse_time,
)
from frontdesk.channels.a2a.questions import Answers, find_answers, open_questions
from frontdesk.channels.a2a.render import (
    DETAILS,
    TaskView,
    get_context_id,
    get_details,
    get_state,
    get_tenant,
    is_terminal,
    short_message,
    tenant_prefix,
)
from frontdesk.channels.a2a.schema import (
    CANCELED,
    SUBMITTED,
    WORKING,
    AnswerOut,
    AuthenticationOut,
    ListIn,
    ListOut,
    PartIn,
    PartOut,
    PushConfigIn,
    PushConfigNameIn,
    PushConfigOut,
    PushConfigsOut,
    TaskOut,
)
from frontdesk.errors import InvalidRequestError, NotFoundError, RequestError, SealError, TooManyRequestsError
from frontdesk.http.detached_runs import DetachedRuns, Ended
from frontdesk.identifiers import is_plain_id
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest, ChannelSession
from frontdesk.models.run import FINAL, MAX_COUNTED_RUNS, RunChain, RunPage, RunRecord, RunStatus
from frontdesk.models.watcher import RunWatcher

MAX_SHORT_MESSAGE_LENGTH = 2000
TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - the name of a header
MAX_SECRET_LENGTH = 4096
_ID, _SCHEME = "config_id", "scheme"
UNFINISHED = frozenset((SUBMITTED, WORKING))
_SCAN = 100
_RUN_STATUSES: dict[str, RunStatus] = {CANCELED: "cancelled", SUBMITTED: "queued"}
"""The status of the newest run of each task in a state, where there is only one."""


class Plan(NamedTuple):
    """The processing of a sent message."""

    request: ChannelRequest | None = None
    """The run to start."""
    chain: RunChain | None = None
    """The task to which the message belongs, if it names one."""
    answers: Answers = Answers()
    """The answers to questions that other people decide too. They are recorded without a run of their own."""


class Tasks:
    """The operations of one channel on the tasks of its callers."""

    def __init__(self, context: ChannelContext, links: LinkTasks, *, short_messages: bool) -> None:
        self._context, self._links, self._short_messages = context, links, short_messages
        self._takes_data = context.target.kind == "workflow"
        self._detached = DetachedRuns()

    async def find(self, caller: Caller, task_id: str | None, tenant: str) -> RunChain:
        """Return the chain of a task of the caller."""
        if not task_id:
            raise invalid("id is required.", "id")
        if not is_plain_id(task_id):
            raise task_not_found()
        try:
            chain = await self._context.runs.chain(caller, task_id)
        except NotFoundError:
            raise task_not_found() from None
        root = chain.root
        # A run of another channel is no task, and the id of a later run is not that of its task.
        if root.run_id != task_id or root.channel != self._context.channel or get_tenant(root) != tenant:
            raise task_not_found()
        return chain

    async def view(self, caller: Caller, chain: RunChain) -> TaskView:
        """Return the view of a task with all its runs."""
        if chain.newest.run_id == chain.root.run_id:
            return TaskView(chain, [chain.newest])
        return TaskView(chain, await self._context.runs.list_chain(caller, chain.root.run_id))

    async def plan(self, caller: Caller, sent: Sent, metadata: Any) -> Plan:
        """Decide how a message is processed. Nothing is run or stored here."""
        if sent.task_id is None:
            return Plan(self._turn(sent, metadata))
        try:
            chain = await self.find(caller, sent.task_id, sent.tenant)
        except ProtocolError:
            # A task that waited for a link, and whose request was not stored.
            context_id = await self._links.take(caller, sent.task_id, sent.tenant)
            if context_id is None:
                raise
            request = self._turn(sent._replace(context_id=context_id), metadata)
            return Plan(request.replace(run_id=sent.task_id, idempotency_key=None, request_hash=None))
        context_id = get_context_id(chain.root)
        if sent.context_id is not None and sent.context_id != context_id:
            raise invalid("contextId is not that of the task.", "message.contextId")
        if sent.key in (get_details(chain.root).get("key"), get_details(chain.newest).get("key")):
            # The message came before.
            return Plan(chain=chain)
        if is_terminal(chain):
            raise ProtocolError(
                UNSUPPORTED_OPERATION,
                "The task has ended and accepts no more messages. Start a new one with its contextId.",
                metadata={"taskId": sent.task_id, "state": get_state(chain)},
            )
        return await self._next(caller, sent, metadata, chain)

    async def _next(self, caller: Caller, sent: Sent, metadata: Any, chain: RunChain) -> Plan:
        """Return the plan for a message to a task that is under way or waits."""
        request = self._turn(sent._replace(context_id=get_context_id(chain.root)), metadata)
        request = request.replace(continues=chain.root.run_id)
        questions = open_questions(chain.newest, chain.waiting)
        answers = find_answers(sent.parts, questions) if questions else Answers()
        if not answers:
            return Plan(request, chain)
        details = {**request.details[DETAILS], "answer": _write(sent.parts)}
        request = request.replace(input=None, details={DETAILS: details}, client_outputs=answers.outputs)
        if not answers.approvals:
            return Plan(request, chain)
        ids = {answer.approval_id for answer in answers.approvals}
        if any(question.terms is not None and question.approval_id in ids for question in chain.waiting):
            return Plan(request.replace(client_outputs=answers.outputs) if answers.outputs else None, chain, answers)
        asked = await self._context.approvals.build_request(caller, answers.approvals)
        return Plan(
            request.replace(operation=asked.operation, approvals=asked.approvals, continues=None, session=None), chain
        )

    def _turn(self, sent: Sent, metadata: Any) -> ChannelRequest:
        message = sent.message
        details: dict[str, Any] = {"message_id": sent.message_id, "key": sent.key}
        if sent.modes:
            details["modes"] = sent.modes
        context_id = sent.context_id
        if sent.tenant:
            details["tenant"] = sent.tenant
            context_id = context_id or self._context.new_id("ctx")
        attributes: dict[str, Any] = {}
        if metadata or message.metadata or message.extensions or message.reference_task_ids or sent.tenant:
            given = {
                "metadata": metadata,
                "message_metadata": message.metadata,
                "extensions": message.extensions,
                "reference_task_ids": message.reference_task_ids,
                "tenant": sent.tenant,
            }
            attributes = {name: value for name, value in given.items() if value}
        key = None if context_id is None else tenant_prefix(sent.tenant) + context_id
        return ChannelRequest(
            channel=self._context.channel,
            input=build_input(sent, takes_data=self._takes_data),
            session=None if key is None else ChannelSession(key=key),
            attributes=attributes,
            details={DETAILS: details},
            idempotency_key=sent.key,
            request_hash=sent.key,
        )

    async def run(self, caller: Caller, sent: Sent, request: ChannelRequest, payload: Any, ended: Ended | None) -> Any:
        """Run a message to its end and return the answer. The run goes on if the client leaves."""
        work = self._context.run(request, caller, protocol_request=payload)
        try:
            hosted = await self._detached.run(work, ended)
        except RequestError as error:
            if not isinstance(error.run, RunRecord):
                raise
            return await self.answer(caller, error.run, sent.history_length)
        run = hosted.run
        if run.status not in FINAL:
            # The message came before, and is answered in the background.
            view = await self.view(caller, await self.settle(caller, run.run_id))
            return AnswerOut(task=view.task(history_length=sent.history_length))
        if run.root_run_id is None and run.status == "completed" and self._short_messages:
            message = short_message(run, hosted.result, get_context_id(run), MAX_SHORT_MESSAGE_LENGTH)
            if message is not None:
                return AnswerOut(message=message)
        return await self.answer(caller, run.replace(result=hosted.result), sent.history_length)

    async def answer(self, caller: Caller, run: RunRecord, history_length: int | None) -> AnswerOut:
        """Return the task of a run that has ended."""
        if run.root_run_id is None and run.status in ("failed", "completed") and not may_wait(run):
            view = TaskView(RunChain(root=run, newest=run), [run])
        else:
            view = await self.view(caller, await self._context.runs.chain(caller, run.chain_id))
        return AnswerOut(task=view.task(history_length=history_length))

    async def decide(self, caller: Caller, chain: RunChain, answers: Answers) -> None:
        """Record answers to questions that other people decide too."""
        digests = {question.approval_id: question.digest for question in chain.questions}
        for answer in answers.approvals:
            decision = await self._context.approvals.decide(
                caller,
                answer.approval_id,
                answer.approved,
                digest=digests.get(answer.approval_id),
                reason=answer.reason,
            )
            if decision.outcome == "not_yours":
                raise _build_refusal("Other people decide this question.", "approval_not_yours", answer.approval_id)
            if decision.outcome in ("late", "changed"):
                message = "This question was answered before, or its call has changed. Read the task again."
                raise _build_refusal(message, f"approval_{decision.outcome}", answer.approval_id)

    async def settle(self, caller: Caller, run_id: str) -> RunChain:
        """Wait until a task has ended or waits for input, and return its chain."""
        async for stream in await self._context.runs.follow_chain(caller, run_id):
            async with stream:
                async for _ in stream:
                    pass
        return await self._context.runs.chain(caller, run_id)

    async def get(self, caller: Caller, task_id: str | None, tenant: str, history_length: int | None) -> TaskOut:
        try:
            chain = await self.find(caller, task_id, tenant)
        except RequestError as error:
            waiting = await self._links.find(caller, task_id, tenant, error)
            if waiting is None:
                raise
            return waiting
        return (await self.view(caller, chain)).task(history_length=history_length)

    async def cancel(self, caller: Caller, task_id: str | None, tenant: str) -> TaskOut:
        chain = await self.find(caller, task_id, tenant)
        if is_terminal(chain):
            raise ProtocolError(
                TASK_NOT_CANCELABLE,
                "The task has ended, so it can't be canceled.",
                metadata={"taskId": chain.root.run_id, "state": get_state(chain)},
            )
        chain = await self._context.runs.cancel_chain(caller, chain.root.run_id)
        return (await self.view(caller, chain)).task()

    async def list(self, caller: Caller, asked: ListIn, tenant: str) -> ListOut:
        """List the tasks of the caller, the last changed first."""
        size = parse_number(asked.page_size, "pageSize", 1, MAX_PAGE_SIZE)
        length = parse_number(asked.history_length, "historyLength")
        where = TaskFilter(
            context_id=asked.context_id or None,
            tenant=tenant,
            state=parse_state(asked.status),
            since=parse_time(asked.status_timestamp_after, "statusTimestampAfter"),
        )
        scan = TaskScan(self._context, caller, where)
        chains, token = await scan.page(asked.page_token or None, size or DEFAULT_PAGE_SIZE)
        tasks = [await self._list_item(caller, chain, length, bool(asked.include_artifacts)) for chain in chains]
        return ListOut(
            tasks=tasks, next_page_token=token, page_size=size or DEFAULT_PAGE_SIZE, total_size=await scan.count()
        )

    async def _list_item(self, caller: Caller, chain: RunChain, length: int | None, artifacts: bool) -> TaskOut:
        view = TaskView(chain) if length == 0 and not artifacts else await self.view(caller, chain)
        task = view.task(history_length=length, artifacts=artifacts)
        if artifacts and task.artifacts is UNSET:
            task.artifacts = []
        return task


class TaskFilter(NamedTuple):
    context_id: str | None
    tenant: str
    state: str | None
    since: float | None

    @property
    def session_key(self) -> str | None:
        return None if self.context_id is None else tenant_prefix(self.tenant) + self.context_id

    @property
    def run_status(self) -> RunStatus | None:
        return _RUN_STATUSES.get(self.state or "")

    def matches(self, chain: RunChain) -> bool:
        newest = chain.newest
        since = self.since is None or newest.finished_at is None or newest.finished_at >= self.since
        return since and (self.state is None or get_state(chain) == self.state)


class TaskScan:
    """Finds the tasks of a caller in the list of runs. A task has the position of its newest run."""

    def __init__(self, context: ChannelContext, caller: Caller, where: TaskFilter) -> None:
        self._context, self._caller, self._where = context, caller, where

    async def page(self, token: str | None, size: int) -> tuple[list[RunChain], str]:
        """Return a page of tasks and the token of the next one."""
        found: list[RunChain] = []
        cursor = token
        while True:
            # One run at a time at the end of a page, so that the cursor is that of its last task.
            part = await self._read(cursor, max(1, min(size - len(found), _SCAN)))
            found += await self._chains(part.runs)
            cursor = part.cursor
            if cursor is None or len(found) >= size:
                break
        if cursor is not None and not await self._has_more(cursor):
            cursor = None
        return found, cursor or ""

    async def count(self) -> int:
        """Return the number of tasks. Of more than `MAX_COUNTED_RUNS` runs it is the least number."""
        where = self._where
        if where.state is None and where.since is None and not where.tenant:
            page = await self._context.runs.list(
                self._caller, channel=self._context.channel, session=where.session_key, roots_only=True, limit=1
            )
            return page.total
        count, cursor = 0, None
        for _ in range(MAX_COUNTED_RUNS // _SCAN):
            part = await self._read(cursor, _SCAN)
            count += len(await self._chains(part.runs))
            cursor = part.cursor
            if cursor is None:
                break
        return count

    async def _has_more(self, cursor: str) -> bool:
        """Return True if there is a task after a cursor."""
        following: str | None = cursor
        for _ in range(MAX_COUNTED_RUNS // _SCAN):
            part = await self._read(following, _SCAN)
            if await self._chains(part.runs, most=1):
                return True
            following = part.cursor
            if following is None:
                return False
        return True

    async def _read(self, cursor: str | None, limit: int) -> RunPage:
        where = self._where
        try:
            return await self._context.runs.list(
                self._caller,
                channel=self._context.channel,
                session=where.session_key,
                status=where.run_status,
                since=where.since,
                cursor=cursor,
                limit=limit,
            )
        except InvalidRequestError:
            raise invalid("Invalid pageToken. Use the nextPageToken of the previous page.", "pageToken") from None

    async def _chains(self, runs: Collection[RunRecord], most: int = MAX_PAGE_SIZE) -> list[RunChain]:
        """Return the matching tasks whose newest run is among some runs."""
        chains: list[RunChain] = []
        for run in runs:
            if len(chains) >= most:
                break
            try:
                chain = await self._context.runs.chain(self._caller, run.run_id)
            except NotFoundError:
                continue
            is_task = chain.root.run_id == run.chain_id and chain.root.channel == self._context.channel
            if is_task and chain.newest.run_id == run.run_id and get_tenant(chain.root) == self._where.tenant:
                chains += [chain] if self._where.matches(chain) else []
        return chains


def may_wait(run: RunRecord) -> bool:
    """Return True if a run may have asked a question."""
    return bool(run.client_calls) or not (run.result is None or is_plain(run.result))


def _write(parts: Sequence[PartIn]) -> str:
    """Return the parts of an answer for the history of its task."""
    shown = [
        PartOut(
            text=UNSET if part.text is None else part.text,
            data=part.data,
            url=UNSET if part.url is None else part.url,
            media_type=part.media_type or UNSET,
        )
        for part in parts
        if part.raw is None
    ]
    return msgspec.json.encode(shown).decode()


def _build_refusal(message: str, code: str, approval_id: str) -> RequestError:
    error = invalid(message, "message.parts")
    error.metadata = {"code": code, "id": approval_id}
    return error


class PushConfigs:
    """The push configs of the callers of one channel."""

    def __init__(self, context: ChannelContext, tasks: Tasks, *, enabled: bool, most: int) -> None:
        """`most` is the number of configs of one task."""
        self._context, self._tasks, self._enabled, self._most = context, tasks, enabled, most

    def require(self) -> None:
        """Reject push configs if the channel has no push notifications."""
        if not self._enabled:
            raise ProtocolError(PUSH_NOT_SUPPORTED, "This agent does not send push notifications.")

    async def create(self, caller: Caller, given: PushConfigIn, tenant: str) -> PushConfigOut:
        self.require()
        if not given.task_id:
            raise invalid("taskId is required.", "taskId")
        check_config(given)
        return await self.add(caller, await self._tasks.find(caller, given.task_id, tenant), given)

    async def add(
        self, caller: Caller, chain: RunChain, given: PushConfigIn, *, comes_with_run: bool = False
    ) -> PushConfigOut:
        """Add a config to a task, or replace the one with its id.

        A config that comes with the message of a run receives the end of the run, however soon that is.
        """
        task_id = chain.root.run_id
        found = await self._context.runs.watchers(caller, task_id)
        same = [watcher for watcher in found if given.id and _get_id(watcher) == given.id]
        if len(found) - len(same) >= self._most:
            raise invalid(f"A task has at most {self._most} push notification configs. Delete one first.", "taskId")
        for watcher in same:
            await self._context.runs.unwatch(caller, task_id, watcher.watcher_id)
        metadata: dict[str, Any] = {_ID: given.id or self._context.new_id("push")}
        if given.authentication is not None:
            metadata[_SCHEME] = given.authentication.scheme
        watcher = RunWatcher(url=given.url or "", headers=_build_headers(given), metadata=metadata)
        try:
            await self._context.runs.watch(caller, task_id, watcher, includes_ended=comes_with_run)
        except InvalidRequestError as error:
            raise invalid(error.message, "url") from None
        except TooManyRequestsError as error:
            raise invalid(error.message, "taskId") from None
        except SealError:
            message = "This agent can't store credentials: it has no seal_key. Send a config without them."
            raise invalid(message, "authentication") from None
        return _build_shown_config(watcher, task_id)

    async def get(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> PushConfigOut:
        self.require()
        chain, watcher = await self._find(caller, given, tenant)
        if watcher is None:
            raise ProtocolError(TASK_NOT_FOUND, "Push notification config not found.")
        return _build_shown_config(watcher, chain.root.run_id)

    async def list(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> PushConfigsOut:
        self.require()
        chain = await self._tasks.find(caller, given.task_id, tenant)
        found = await self._context.runs.watchers(caller, chain.root.run_id)
        return PushConfigsOut(configs=[_build_shown_config(watcher, chain.root.run_id) for watcher in found])

    async def delete(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> None:
        """Delete a config. Deleting it again has no effect."""
        self.require()
        chain, watcher = await self._find(caller, given, tenant)
        if watcher is None:
            return
        try:
            await self._context.runs.unwatch(caller, chain.root.run_id, watcher.watcher_id)
        except NotFoundError:
            return

    async def _find(self, caller: Caller, given: PushConfigNameIn, tenant: str) -> tuple[RunChain, RunWatcher | None]:
        if not given.id:
            raise invalid("id is required.", "id")
        chain = await self._tasks.find(caller, given.task_id, tenant)
        found = await self._context.runs.watchers(caller, chain.root.run_id)
        return chain, next((watcher for watcher in found if _get_id(watcher) == given.id), None)


def check_config(given: PushConfigIn) -> None:
    """Check a config before anything is run for it."""
    if not given.url:
        raise invalid("url is required.", "url")
    if given.id and not is_plain_id(given.id):
        raise invalid("id must be 1 to 256 letters, digits or any of . _ : -", "id")
    authentication = given.authentication
    if authentication is not None and not authentication.scheme:
        raise invalid("scheme is required.", "authentication.scheme")
    secrets = (given.token, None if authentication is None else authentication.credentials)
    for secret in secrets:
        if secret and (len(secret) > MAX_SECRET_LENGTH or not secret.isascii() or not secret.isprintable()):
            raise invalid("Tokens and credentials must be printable ASCII.", "authentication")
    if authentication is not None and not (authentication.scheme or "").replace("-", "").isalnum():
        raise invalid("scheme must be the name of an HTTP authentication scheme.", "authentication.scheme")


def _build_headers(given: PushConfigIn) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    if given.token:
        headers[TOKEN_HEADER] = given.token
    authentication = given.authentication
    if authentication is not None and authentication.credentials:
        headers["Authorization"] = f"{authentication.scheme} {authentication.credentials}"
    return headers


def _get_id(watcher: RunWatcher) -> str:
    return str(watcher.metadata.get(_ID) or watcher.watcher_id)


def _build_shown_config(watcher: RunWatcher, task_id: str) -> PushConfigOut:
    """Return a config without its secrets."""
    scheme: Any = watcher.metadata.get(_SCHEME)
    return PushConfigOut(
        id=_get_id(watcher),
        task_id=task_id,
        url=watcher.url,
        authentication=AuthenticationOut(scheme=scheme) if isinstance(scheme, str) else UNSET,
    )
