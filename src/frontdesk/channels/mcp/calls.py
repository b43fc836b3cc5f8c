"""The calls of tools: from arguments to a run, its questions and its result, in both eras of the protocol."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

import msgspec
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    RequestId,
)

from frontdesk.channels.mcp.config import MCPConfig, MCPTool
from frontdesk.channels.mcp.progress import Progress
from frontdesk.channels.mcp.questions import Answers, OpenQuestion, find_questions, read_answers
from frontdesk.channels.mcp.render import META, Outcome, build_outcome, error_result, tool_result
from frontdesk.channels.mcp.schema import SESSION, ToolArguments
from frontdesk.channels.mcp.tasks import build_created_task, build_missing_tasks_error
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError
from frontdesk.http.bodies import HttpPayload
from frontdesk.http.idempotency import MAX_KEY_LENGTH
from frontdesk.identifiers import digest, is_plain_id
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest, ChannelSession
from frontdesk.models.run import RunChain, RunRecord

RESUME_SECONDS = 20.0
"""The time for which a call that asks for the result of a waiting one waits for the answer."""
KEY = f"{META}idempotencyKey"
KEPT_SECONDS = 24 * 3_600.0
"""The time for which answers to some questions of a task wait for the others."""
MAX_ROUNDS = 20
"""The number of times that one call of the older era asks, one answer leading to the next question."""


class Client(NamedTuple):
    """The client of one request: who it is, and what it can do."""

    caller: Caller
    session: ServerSession
    request_id: RequestId | None
    is_modern: bool
    can_be_asked: bool
    """Whether it shows forms of elicitation."""
    has_tasks: bool
    progress: Progress
    payload: HttpPayload | None
    """The request as received, for hooks. None over stdio."""


class BoundTool(NamedTuple):
    """A tool with its arguments."""

    tool: MCPTool
    arguments: ToolArguments


ToolOutcome = CallToolResult | InputRequiredResult | dict[str, Any]


class ToolCalls:
    """Runs the target for the calls of tools."""

    def __init__(
        self, channel: str, context: ChannelContext, config: MCPConfig, tools: Mapping[str, BoundTool]
    ) -> None:
        self._channel, self._context, self._config, self._tools = channel, context, config, tools
        self._kept = context.storage.values("answers", holds_tokens=False)

    async def call(self, client: Client, params: CallToolRequestParams) -> ToolOutcome:
        """Answer `tools/call`. An error that a model can correct becomes a result."""
        bound = self._tools.get(params.name)
        if bound is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        if bound.tool.tasks == "always" and self._config.tasks and not client.has_tasks:
            raise build_missing_tasks_error(f"The tool {bound.tool.name} runs as a task only.")
        try:
            if params.request_state is not None and client.is_modern:
                return await self._retry(client, bound, params.request_state, params)
            return await self._first(client, bound, params)
        except RequestError as error:
            if error.run is not None or error.status in (400, 404, 409, 422):
                return error_result(error.message, error.code)
            raise

    async def _first(self, client: Client, bound: BoundTool, params: CallToolRequestParams) -> ToolOutcome:
        arguments = params.arguments or {}
        session = bound.arguments.session_in(arguments)
        value = bound.arguments.input_in(arguments)
        if value is None:
            if session is None:
                names = ", ".join(f"`{name}`" for name in bound.arguments.schema.get("required") or ())
                raise InvalidRequestError(f"The argument {names} is required." if names else "Arguments are required.")
            return await self._resume(client, bound, session)
        if bound.arguments.kind == "own":
            check_arguments(bound.arguments.schema, arguments)
        request = self._request(client, bound, arguments, session, value, params.meta)
        if client.has_tasks and bound.tool.tasks != "never":
            return await self._as_task(client, bound, request)
        return await self._settle(client, bound, await self._run(client, request))

    def _request(
        self,
        client: Client,
        bound: BoundTool,
        arguments: Mapping[str, Any],
        session: str | None,
        value: Any,
        meta: Mapping[str, Any] | None,
    ) -> ChannelRequest:
        is_own = bound.arguments.kind == "own"
        if is_own:
            # A hook makes the input of them. Without one the target reads them as they are.
            value = arguments["message"] if isinstance(arguments.get("message"), str) else to_json(arguments)
        attributes = {**bound.tool.attributes, "tool": bound.tool.name}
        request = ChannelRequest(
            channel=self._channel,
            input=value,
            session=None if session is None else ChannelSession(key=session),
            identity=client.caller.identity,
            stream=client.progress.is_wanted,
            attributes={**attributes, "arguments": dict(arguments)} if is_own else attributes,
            details={"tool": bound.tool.name},
        )
        return _add_key(request, (meta or {}).get(KEY), arguments, bound.tool.name)

    async def _run(self, client: Client, request: ChannelRequest) -> Outcome:
        """Run the target, with progress if the client wants it."""
        if not request.stream:
            hosted = await self._context.run(request, client.caller, protocol_request=client.payload)
        else:
            stream = await self._context.stream(request, client.caller, protocol_request=client.payload)
            async with stream:
                await client.progress.watch(stream)
            hosted = stream.final()
        return build_outcome(hosted.run, hosted.result)

    async def _settle(self, client: Client, bound: BoundTool, outcome: Outcome) -> ToolOutcome:
        """Return the result of a run that has ended, or ask what it waits for."""
        for _ in range(MAX_ROUNDS):
            if not outcome.asks:
                return tool_result(outcome)
            chain = await self._context.runs.chain(client.caller, outcome.run.run_id)
            if chain.status in ("queued", "running"):
                # Somebody has answered meanwhile.
                outcome = await self.follow(client, chain.newest.run_id)
                continue
            if chain.newest.run_id != outcome.run.run_id:
                outcome = await self.read(client.caller, chain.newest)
            questions = await self.questions(client.caller, chain, outcome)
            mine = [question for question in questions if question.is_mine]
            if not mine or not client.can_be_asked:
                return tool_result(outcome, questions)
            if client.is_modern:
                return input_required(mine, chain.newest.run_id)
            answers = read_answers(mine, await self._ask(client, mine))
            if not answers:
                return tool_result(outcome, questions)
            outcome = await self._answer(client, bound, chain, answers)
        return tool_result(outcome)

    async def questions(self, caller: Caller, chain: RunChain, outcome: Outcome) -> list[OpenQuestion]:
        """Return the open questions of a chain. The outcome is that of its newest run."""
        return await find_questions(self._context, caller, chain, outcome.pieces, self._config.approval_url)

    async def _ask(self, client: Client, questions: Sequence[OpenQuestion]) -> dict[str, Any]:
        """Ask a client of the older era, one question after the other."""
        responses: dict[str, Any] = {}
        try:
            async with asyncio.timeout(self._config.question_seconds):
                for question in questions:
                    result = await client.session.elicit_form(question.text, question.form.schema, client.request_id)
                    responses[question.id] = {"action": result.action, "content": result.content}
        except (MCPError, TimeoutError, ValueError):
            # What is unanswered stays open, and the result of the call says how to answer it.
            pass
        return responses

    async def _answer(self, client: Client, bound: BoundTool, chain: RunChain, answers: Answers) -> Outcome:
        """Run on with answers. If somebody else was faster, return the outcome of that answer."""
        request = await self._build_answer_request(client, bound, chain, answers)
        try:
            return await self._run(client, request)
        except ConflictError:
            return await self._present(client, chain.newest.run_id)

    async def _build_answer_request(
        self, client: Client, bound: BoundTool, chain: RunChain, answers: Answers
    ) -> ChannelRequest:
        if answers.approvals:
            request = await self._context.approvals.build_request(client.caller, answers.approvals)
        else:
            request = ChannelRequest(channel=self._channel)
        if answers.outputs:
            request = request.replace(
                session=ChannelSession(key=chain.newest.session_key), client_outputs=answers.outputs
            )
        return request.replace(
            identity=client.caller.identity,
            stream=client.progress.is_wanted,
            attributes={**bound.tool.attributes, "tool": bound.tool.name},
            details={"tool": bound.tool.name},
        )

    async def _retry(self, client: Client, bound: BoundTool, state: str, params: CallToolRequestParams) -> ToolOutcome:
        """Go on with a call whose client was asked. The state is the id of a run of the caller."""
        chain = await self.find_chain(client.caller, state, "The request state is unknown or has expired.")
        if chain.root.details.get("tool") != bound.tool.name:
            raise MCPError(INVALID_PARAMS, "The request state belongs to another tool.")
        outcome = await self._present(client, chain.newest.run_id)
        if not outcome.asks:
            return tool_result(outcome)
        chain = await self._context.runs.chain(client.caller, outcome.run.run_id)
        questions = await self.questions(client.caller, chain, outcome)
        answers = read_answers(questions, responses_in(params.input_responses))
        if not answers:
            if chain.status == "input_required" and params.input_responses and _are_cancelled(params.input_responses):
                return tool_result(outcome, questions)
            return await self._settle(client, bound, outcome)
        if client.has_tasks and bound.tool.tasks != "never":
            return await self._as_task(client, bound, await self._build_answer_request(client, bound, chain, answers))
        return await self._settle(client, bound, await self._answer(client, bound, chain, answers))

    async def _resume(self, client: Client, bound: BoundTool, session: str) -> ToolOutcome:
        """Return the result of the last call of a session. Wait a moment if it waits for other people."""
        page = await self._context.runs.list(client.caller, channel=self._channel, session=session, limit=1)
        if not page.runs:
            raise NotFoundError("No call of this session is known. Send a message to begin one.", param=SESSION)
        outcome = await self._present(client, page.runs[0].run_id)
        if outcome.asks and not await self._may_ask(client, outcome):
            with suppress(TimeoutError):
                async with asyncio.timeout(RESUME_SECONDS):
                    outcome = await self.follow(client, outcome.run.run_id, waits=True)
        return await self._settle(client, bound, outcome)

    async def _may_ask(self, client: Client, outcome: Outcome) -> bool:
        chain = await self._context.runs.chain(client.caller, outcome.run.run_id)
        questions = await self.questions(client.caller, chain, outcome)
        return client.can_be_asked and any(question.is_mine for question in questions)

    async def _present(self, client: Client, run_id: str) -> Outcome:
        """Return the present outcome of a chain. Wait for a run that is under way."""
        chain = await self._context.runs.chain(client.caller, run_id)
        if chain.status in ("queued", "running"):
            return await self.follow(client, chain.newest.run_id)
        return await self.read(client.caller, chain.newest)

    async def read(self, caller: Caller, run: RunRecord) -> Outcome:
        """Return the outcome of a run that has ended."""
        if run.result is None:
            run = await self._context.runs.get(caller, run.run_id)
        return build_outcome(run, run.result)

    async def follow(self, client: Client, run_id: str, *, waits: bool = False) -> Outcome:
        """Return the outcome of a run, or of the last run of its chain, when it has ended."""
        streams = await self._context.runs.follow_chain(client.caller, run_id, waits=waits)
        async with aclosing(streams):
            async for stream in streams:
                async with stream:
                    await client.progress.watch(stream)
                run_id = stream.final().run.run_id
        return await self.read(client.caller, await self._context.runs.get(client.caller, run_id))

    async def _as_task(self, client: Client, bound: BoundTool, request: ChannelRequest) -> ToolOutcome:
        """Run in the background. The result of a short run is returned at once, and a long one becomes a task."""
        run = await self._context.submit(
            request.replace(background=True, stream=False), client.caller, protocol_request=client.payload
        )
        if bound.tool.tasks != "always":
            try:
                async with asyncio.timeout(self._config.task_after_seconds):
                    outcome = await self.follow(client, run.run_id)
            except TimeoutError:
                pass
            except asyncio.CancelledError:
                # The client has left, and does not know the task.
                await self._context.runs.cancel(client.caller, run.run_id)
                raise
            else:
                return await self._settle(client, bound, outcome)
        chain = await self._context.runs.chain(client.caller, run.run_id)
        return build_created_task(chain)

    async def find_chain(self, caller: Caller, run_id: str, message: str) -> RunChain:
        """Return the chain of a run of this channel. An unknown or foreign id is an error of the arguments."""
        try:
            if is_plain_id(run_id):
                chain = await self._context.runs.chain(caller, run_id)
                if chain.root.channel == self._channel:
                    return chain
        except NotFoundError:
            pass
        raise MCPError(INVALID_PARAMS, message)

    async def answer_task(self, client: Client, chain: RunChain, responses: Mapping[str, Any]) -> None:
        """Answer questions of a task. Its next run works in the background.

        A workflow goes on when all of its questions are answered. Until then the answers are kept.
        """
        bound = self._tools.get(str(chain.root.details.get("tool")))
        if chain.status != "input_required" or bound is None:
            return
        outcome = await self.read(client.caller, chain.newest)
        questions = [one for one in await self.questions(client.caller, chain, outcome) if one.is_mine]
        known = {one.id for one in questions}
        kept = await self.get_kept_answers(chain)
        given = {**kept, **{name: response for name, response in responses.items() if name in known}}
        answers = read_answers(questions, given)
        if answers:
            request = await self._build_answer_request(client, bound, chain, answers)
            # Somebody else may have been faster.
            with suppress(ConflictError):
                await self._context.submit(request.replace(background=True, stream=False), client.caller)
        elif given != kept:
            expires_at = self._context.now() + KEPT_SECONDS
            await self._kept.set(chain.newest.run_id, given, expires_at=expires_at)

    async def get_kept_answers(self, chain: RunChain) -> dict[str, Any]:
        """Return the answers to some questions of a task, which wait for the answers to the others."""
        kept = await self._kept.get(chain.newest.run_id)
        return {} if kept is None else dict(kept.value)


def input_required(questions: Sequence[OpenQuestion], state: str) -> InputRequiredResult:
    """Return the questions as forms of elicitation. The state is the id of the run that asks."""
    return InputRequiredResult(input_requests={one.id: elicitation(one) for one in questions}, request_state=state)


def elicitation(question: OpenQuestion) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=question.text, requested_schema=question.form.schema))


def responses_in(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the responses of a client as JSON."""
    return {
        name: response.model_dump(mode="json", by_alias=True) if hasattr(response, "model_dump") else response
        for name, response in (given or {}).items()
    }


def _are_cancelled(given: Mapping[str, Any]) -> bool:
    return all(response.get("action") == "cancel" for response in responses_in(given).values())


def to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Reject arguments that do not fit the schema of a tool."""
    import jsonschema

    validator: Any = jsonschema.Draft202012Validator(dict(schema))
    found = next(validator.iter_errors(dict(arguments)), None)
    if found is not None:
        where = ".".join(str(part) for part in found.absolute_path)
        raise InvalidRequestError(f"Invalid arguments{f' at {where}' if where else ''}: {found.message[:500]}")


def _add_key(request: ChannelRequest, key: Any, arguments: Mapping[str, Any], tool: str) -> ChannelRequest:
    """Return a request with the idempotency key of its metadata, if any."""
    if key is None:
        return request
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise InvalidRequestError(f"{KEY} must be 1 to {MAX_KEY_LENGTH} printable ASCII characters.", param=KEY)
    request_hash = digest(msgspec.json.encode([tool, arguments], order="sorted").decode())
    return request.replace(idempotency_key=key, request_hash=request_hash)
