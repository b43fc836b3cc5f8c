"""`A2AChannel`: its routes, and the operations behind both bindings."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Unpack

import msgspec
from starlette.routing import Route

from frontdesk.auth.any_auth import collect_schemes
from frontdesk.channels.a2a.bindings import HttpReply, Reply, RpcReply
from frontdesk.channels.a2a.card import AgentCards, CardEndpoint, collect_input_modes
from frontdesk.channels.a2a.config import A2AConfig, A2ASettings
from frontdesk.channels.a2a.errors import METHOD_NOT_FOUND, UNSUPPORTED_OPERATION, ProtocolError, invalid
from frontdesk.channels.a2a.links import LinkTasks
from frontdesk.channels.a2a.parse import (
    Sent,
    check_call,
    check_version,
    convert_query,
    decode_call,
    decode_params,
    parse_call_id,
    parse_extensions,
    parse_number,
    parse_query,
    parse_sent,
)
from frontdesk.channels.a2a.questions import EXTENSION
from frontdesk.channels.a2a.render import TaskView, get_state, status_of_run
from frontdesk.channels.a2a.schema import (
    AnswerOut,
    CardIn,
    ListIn,
    PushConfigIn,
    PushConfigNameIn,
    SendIn,
    TaskIn,
    TaskOut,
)
from frontdesk.channels.a2a.stream import TaskStreams
from frontdesk.channels.a2a.tasks import UNFINISHED, Plan, PushConfigs, Tasks, check_config
from frontdesk.errors import LinkRequiredError, RequestError, UnsupportedError
from frontdesk.http.bodies import check_shape, read_payload
from frontdesk.http.channel import HttpChannel, takes_settings
from frontdesk.http.endpoint import Handler, HttpCall
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.interfaces.chat import WatchesRuns
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunChain, RunRecord
from frontdesk.models.watcher import RunNotice


class Ask(NamedTuple):
    """One call of an operation, from either binding."""

    call: HttpCall
    reply: Reply
    tenant: str
    body: bytes
    """The body of the request, for the hook."""


class Operation(NamedTuple):
    """An operation of the protocol: the type of its parameters, and the function that answers it."""

    params: type[Any]
    decoder: msgspec.json.Decoder[Any]
    answer: Callable[[Ask, Any], Awaitable[None]]


class A2AChannel(HttpChannel, WatchesRuns):
    """Serves the agent to other agents over A2A 1.0: `POST /a2a` for JSON-RPC, and `/a2a/v1` for HTTP+JSON."""

    run_prefix = "task"
    notice_media_type = "application/a2a+json"

    @takes_settings(A2AConfig)
    def __init__(self, *, name: str = "a2a", path: str = "/a2a", **settings: Unpack[A2ASettings]) -> None:
        self._config = config = A2AConfig(**settings)
        super().__init__(config, name=name, path=path)
        self._operations = {
            "SendMessage": _operation(SendIn, self._send),
            "SendStreamingMessage": _operation(SendIn, self._stream),
            "GetTask": _operation(TaskIn, self._get),
            "ListTasks": _operation(ListIn, self._list),
            "CancelTask": _operation(TaskIn, self._cancel),
            "SubscribeToTask": _operation(TaskIn, self._subscribe),
            "CreateTaskPushNotificationConfig": _operation(PushConfigIn, self._create_push),
            "GetTaskPushNotificationConfig": _operation(PushConfigNameIn, self._get_push),
            "ListTaskPushNotificationConfigs": _operation(PushConfigNameIn, self._list_push),
            "DeleteTaskPushNotificationConfig": _operation(PushConfigNameIn, self._delete_push),
            "GetExtendedAgentCard": _operation(CardIn, self._get_card),
        }

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        config = self._config
        self._required = tuple(one.uri for one in config.extensions if one.required)
        self._known = frozenset((EXTENSION, *(one.uri for one in config.extensions)))
        self._tenants = frozenset(config.tenants)
        self._input_modes = collect_input_modes(config)
        self._links = LinkTasks(context)
        self._tasks = Tasks(context, self._links, short_messages=config.short_answers_as_messages)
        self._streams = TaskStreams(context, self._tasks, config)
        self._push = PushConfigs(context, self._tasks, enabled=config.push_notifications, most=config.max_push_configs)
        self._cards = AgentCards(
            config,
            context.target,
            collect_schemes(self.auth),
            path=self.path,
            public_url=context.public_url,
            now=context.now(),
        )
        contribution = super().contribute(context)
        card = Route("/agent-card.json", endpoint=CardEndpoint(self._cards))
        return msgspec.structs.replace(contribution, well_known=[card])

    def routes(self) -> list[Route]:
        card = Route("/.well-known/agent-card.json", endpoint=CardEndpoint(self._cards))
        bases = ("/v1", "/v1/{tenant}") if self._tenants else ("/v1",)
        rest = [route for base in bases for route in self._rest_routes(base)]
        rpc = Route("/", endpoint=self.endpoint(runs=["POST"], POST=self.answer_rpc))
        return [rpc, card, *rest, *self.unknown_paths("/v1", "")]

    def _rest_routes(self, base: str) -> list[Route]:
        def serve(path: str, **methods: tuple[str, bool]) -> Route:
            handlers = {method: self._rest(name, has_body) for method, (name, has_body) in methods.items()}
            runs = ["POST"] if ":" in path else []
            return Route(f"{base}{path}", endpoint=self.endpoint(runs=runs, **handlers))

        configs = "/tasks/{task_id}/pushNotificationConfigs"
        return [
            serve("/message:send", POST=("SendMessage", True)),
            serve("/message:stream", POST=("SendStreamingMessage", True)),
            serve("/tasks", GET=("ListTasks", False)),
            serve("/extendedAgentCard", GET=("GetExtendedAgentCard", False)),
            serve("/tasks/{id}:cancel", POST=("CancelTask", True)),
            serve("/tasks/{id}:subscribe", GET=("SubscribeToTask", False), POST=("SubscribeToTask", True)),
            serve("/tasks/{id}", GET=("GetTask", False)),
            serve(
                configs,
                GET=("ListTaskPushNotificationConfigs", False),
                POST=("CreateTaskPushNotificationConfig", True),
            ),
            serve(
                f"{configs}/{{id}}",
                GET=("GetTaskPushNotificationConfig", False),
                DELETE=("DeleteTaskPushNotificationConfig", False),
            ),
        ]

    # The bindings

    async def answer_rpc(self, call: HttpCall) -> None:
        """Answer a JSON-RPC call."""
        reply = RpcReply(call)
        call.scope["frontdesk.a2a.reply"] = reply
        given, raw = await self.read_body(call, decode_call)
        reply.call_id = parse_call_id(given.id)
        method = check_call(given)
        reply.is_understood = True
        check_version(call.headers, call.scope["query_string"])
        operation = self._operations.get(method)
        if operation is None:
            raise ProtocolError(METHOD_NOT_FOUND, "There is no such method.", metadata={"method": method[:64]})
        params = decode_params(operation.decoder, given.params)
        self._activate(call, reply)
        await operation.answer(Ask(call, reply, self._tenant(params.tenant, None), raw), params)

    def _rest(self, name: str, has_body: bool) -> Handler:
        operation = self._operations[name]

        async def answer(call: HttpCall) -> None:
            reply = HttpReply(call)
            raw = await self._read(call) if has_body else b""
            check_version(call.headers, call.scope["query_string"])
            path: Mapping[str, str] = call.scope.get("path_params") or {}
            if has_body:
                params = decode_params(operation.decoder, raw)
            else:
                params = convert_query(operation.params, parse_query(call.scope["query_string"]))
            fields = {one: path[one] for one in ("id", "task_id") if one in path}
            params = msgspec.structs.replace(params, **fields) if fields else params
            self._activate(call, reply)
            await operation.answer(Ask(call, reply, self._tenant(params.tenant, path.get("tenant")), raw), params)

        return answer

    async def _read(self, call: HttpCall) -> bytes:
        """Return a body within the limits of size and shape. It may be empty."""

        def check(raw: bytes, most: int) -> bytes:
            check_shape(raw, most)
            return raw

        return (await self.read_body(call, check))[1]

    def _activate(self, call: HttpCall, reply: Reply) -> None:
        if self._required or b"a2a-extensions" in call.headers:
            named = parse_extensions(call.headers, self._required)
            reply.activate([uri for uri in named if uri in self._known])

    def _tenant(self, given: str | None, path: str | None) -> str:
        tenant = path or given or ""
        if (tenant and tenant not in self._tenants) or (given and path and given != path):
            raise invalid("There is no such tenant.", "tenant")
        return tenant

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        reply = call.scope.get("frontdesk.a2a.reply")
        if reply is None:
            is_rest = call.scope["path"].startswith(f"{call.scope.get('root_path', '')}{self.path}/v1")
            reply = HttpReply(call) if is_rest else RpcReply(call)
        await reply.send_error(error)

    # The operations

    async def _send(self, ask: Ask, params: SendIn) -> None:
        sent, plan, payload = await self._plan(ask, params)
        caller, reply = ask.call.caller, ask.reply
        push = None if params.configuration is None else params.configuration.task_push_notification_config
        try:
            if plan.request is None:
                return await reply.send(await self._settle(ask, sent, plan, push))
            if sent.returns_immediately or push is not None:
                return await reply.send(await self._submit(ask, sent, plan.request, payload, push))
            answer = await self._tasks.run(caller, sent, plan.request, payload, ask.call.detach())
        except LinkRequiredError as error:
            answer = AnswerOut(task=await self._link_task(ask, sent, plan.request, payload, error))
        await reply.send(answer)

    async def _plan(self, ask: Ask, params: SendIn) -> tuple[Sent, Plan, Any]:
        sent = parse_sent(params, ask.tenant, self._input_modes)
        configuration = params.configuration
        if configuration is not None and configuration.task_push_notification_config is not None:
            self._push.require()
            check_config(configuration.task_push_notification_config)
        payload = None if self.run_hook is None else await read_payload(ask.body, ask.call.scope)
        return sent, await self._tasks.plan(ask.call.caller, sent, params.metadata), payload

    async def _settle(self, ask: Ask, sent: Sent, plan: Plan, push: PushConfigIn | None) -> AnswerOut:
        """Record the answers of a message that starts no run, and return its task."""
        caller, chain = ask.call.caller, plan.chain
        if chain is None:
            raise ProtocolError(UNSUPPORTED_OPERATION, "The message can't be processed.")
        if push is not None:
            await self._push.add(caller, chain, push)
        await self._tasks.decide(caller, chain, plan.answers)
        task_id = chain.root.run_id
        chain = await self.context.runs.chain(caller, task_id)
        if not sent.returns_immediately and get_state(chain) in UNFINISHED:
            chain = await self._tasks.settle(caller, chain.newest.run_id)
        view = await self._tasks.view(caller, chain)
        return AnswerOut(task=view.task(history_length=sent.history_length))

    async def _submit(
        self, ask: Ask, sent: Sent, request: ChannelRequest, payload: Any, push: PushConfigIn | None
    ) -> AnswerOut:
        """Run a message in the background, and return its task."""
        caller = ask.call.caller
        run = await self.context.submit(request.replace(stream=True), caller, protocol_request=payload)
        if run.root_run_id is None and push is None and sent.returns_immediately:
            view = TaskView(RunChain(root=run, newest=run), [run])
            return AnswerOut(task=view.task(history_length=sent.history_length))
        chain = await self.context.runs.chain(caller, run.chain_id)
        if push is not None:
            await self._push.add(caller, chain, push, comes_with_run=True)
        if not sent.returns_immediately:
            chain = await self._tasks.settle(caller, run.run_id)
        view = await self._tasks.view(caller, chain)
        return AnswerOut(task=view.task(history_length=sent.history_length))

    async def _link_task(
        self, ask: Ask, sent: Sent, request: ChannelRequest | None, payload: Any, error: LinkRequiredError
    ) -> TaskOut:
        """Return a task that waits until the caller is linked."""
        if request is None or sent.task_id is not None:
            raise error
        try:
            return await self._links.begin(ask.call.caller, sent, request, payload)
        except UnsupportedError:
            # This host can't link.
            raise error from None

    async def _stream(self, ask: Ask, params: SendIn) -> None:
        sent, plan, payload = await self._plan(ask, params)
        caller = ask.call.caller
        configuration = params.configuration
        push = None if configuration is None else configuration.task_push_notification_config
        if plan.request is None:
            # The first event is the task as it is, and a task under way goes on after it.
            answer = await self._settle(ask, sent._replace(returns_immediately=True), plan, push)
            return await self._streams.send_task(ask.call, answer, ask.reply)
        request = plan.request.replace(background=True, stream=True)
        try:
            stream = await self.context.stream(request, caller, protocol_request=payload)
        except LinkRequiredError as error:
            task = await self._link_task(ask, sent, plan.request, payload, error)
            return await self._streams.send_task(ask.call, AnswerOut(task=task), ask.reply)
        async with stream:
            if push is not None:
                chain = await self.context.runs.chain(caller, stream.run.chain_id)
                await self._push.add(caller, chain, push, comes_with_run=True)
            await self._streams.send_run(ask.call, stream, ask.reply, sent.history_length, request.input)

    async def _get(self, ask: Ask, params: TaskIn) -> None:
        length = parse_number(params.history_length, "historyLength")
        await ask.reply.send(await self._tasks.get(ask.call.caller, params.id, ask.tenant, length))

    async def _list(self, ask: Ask, params: ListIn) -> None:
        await ask.reply.send(await self._tasks.list(ask.call.caller, params, ask.tenant))

    async def _cancel(self, ask: Ask, params: TaskIn) -> None:
        await ask.reply.send(await self._tasks.cancel(ask.call.caller, params.id, ask.tenant))

    async def _subscribe(self, ask: Ask, params: TaskIn) -> None:
        try:
            chain = await self._tasks.find(ask.call.caller, params.id, ask.tenant)
        except RequestError as error:
            waiting = await self._links.find(ask.call.caller, params.id, ask.tenant, error)
            if waiting is None:
                raise
            return await self._streams.send_task(ask.call, AnswerOut(task=waiting), ask.reply)
        await self._streams.subscribe(ask.call, chain, ask.reply)

    async def _create_push(self, ask: Ask, params: PushConfigIn) -> None:
        await ask.reply.send(await self._push.create(ask.call.caller, params, ask.tenant))

    async def _get_push(self, ask: Ask, params: PushConfigNameIn) -> None:
        await ask.reply.send(await self._push.get(ask.call.caller, params, ask.tenant))

    async def _list_push(self, ask: Ask, params: PushConfigNameIn) -> None:
        await ask.reply.send(await self._push.list(ask.call.caller, params, ask.tenant))

    async def _delete_push(self, ask: Ask, params: PushConfigNameIn) -> None:
        await self._push.delete(ask.call.caller, params, ask.tenant)
        await ask.reply.send_bytes(b"{}")

    async def _get_card(self, ask: Ask, params: CardIn) -> None:
        await self.context.allow(ask.call.caller)
        if not self._cards.has_extended:
            raise ProtocolError(UNSUPPORTED_OPERATION, "This agent has no extended card.")
        await ask.reply.send_bytes(self._cards.get(ask.call.scope, extended=True))

    def render_notice(self, notice: RunNotice, run: RunRecord) -> Any:
        """Return the status update of a push notification."""
        return msgspec.to_builtins(status_of_run(run, notice.status))


def _operation(params: type[Any], answer: Callable[[Ask, Any], Awaitable[None]]) -> Operation:
    return Operation(params, msgspec.json.Decoder(params), answer)
