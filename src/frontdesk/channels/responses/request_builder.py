"""Builds the request of a body. Resolves its references among the caller's own data."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from agent_framework import Message

from frontdesk.channels.responses.compact import open_summaries
from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.parse import Parser, parse_conversation, unknown_keys
from frontdesk.channels.responses.references import References
from frontdesk.channels.responses.render import Renderer, count_tokens
from frontdesk.channels.responses.schema import CreateBody
from frontdesk.concurrency.offload import MIN_LARGE_BYTES, compute_weight, off_loop, run_sized
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.foundry.conventions import is_service_id
from frontdesk.framework.client_outputs import as_results, in_given_order
from frontdesk.framework.contents import as_messages, get_asked_call
from frontdesk.interfaces.channel import Channel, ChannelContext, SettleAnswers
from frontdesk.interfaces.storage.pages import MAX_PAGE_BYTES
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest, ChannelSession
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import answers, message_tokens, request_tokens
from frontdesk.openai.items import Items, Question, reference, to_messages
from frontdesk.serialization.codec import prepare

_CONVERSATION = "conv_"


async def adopt_ids(context: ChannelContext, caller: Caller, request: ChannelRequest) -> ChannelRequest:
    """Return a request whose unknown ids are session keys of the caller.

    A key is scoped to its caller, so the id of another person's response or conversation gives no access. A
    `previous_response_id` that the service cannot have made is rejected, as in the host of Foundry's SDK.
    """
    conversation = None if request.session is None else request.session.conversation_id
    previous = request.previous_run_id
    try:
        if conversation is not None and conversation.startswith(_CONVERSATION):
            await context.conversations.get(caller, conversation)
        elif previous is not None:
            await context.runs.get(caller, previous)
    except NotFoundError:
        if conversation is not None:
            return request.replace(session=ChannelSession(key=conversation))
        if not is_service_id(previous):
            message = "Malformed identifier: `previous_response_id` must be the id of a response, such as caresp_..."
            raise InvalidRequestError(message, param="previous_response_id", code="invalid_parameters") from None
        details = {**request.details, "previous_response_id": previous}
        return request.replace(previous_run_id=None, session=ChannelSession(key=previous), details=details)
    return request


_MAX_CHAIN = 100
"""The number of responses that are read to count what came before."""
_PAGE_ROWS = 100


class Intake:
    def __init__(self, channel: Channel, config: ResponsesConfig, context: ChannelContext, renderer: Renderer) -> None:
        self._channel = channel
        self._config = config
        self._context = context
        self._renderer = renderer
        self._fetcher = config.fetcher()
        self.response_ids = config.response_id_factory
        self._parser = Parser(channel.name, config, context.target, channel.session_mode)
        self.shows_payload = channel.run_hook is not None or context.target.reads_attributes
        """Whether anybody looks at what a body says beyond the API."""

    async def request(
        self, caller: Caller, body: CreateBody, raw: bytes, payload: Mapping[str, Any] | None = None
    ) -> tuple[ChannelRequest, SettleAnswers | None]:
        """Return the request of a body, and a function that settles the answers in it.

        Fields of `payload` beyond the API become attributes of the request.
        """
        items, size = None, len(raw)
        if not isinstance(body.input, str):
            body, size = await self._resolve(caller, body, size)
            items = await self._items(caller, body, size)
        if size <= MIN_LARGE_BYTES:
            request = self._parser.request(body, items, caller.identity)
        else:
            request = await off_loop(self._parse, body, items, caller)
        if self._context.adopts_ids and caller.isolation is not None:
            request = await adopt_ids(self._context, caller, request)
        if request.session is not None and request.session.conversation_id is not None:
            # Looked at before anything is kept for the caller, and before a background run is put off.
            await self._context.conversations.get(caller, request.session.conversation_id)
        if items is not None:
            await self._fill(caller, items)
        if request.approvals:
            request = request.replace(operation="approval")
        if payload is not None and (unknown := unknown_keys(payload)):
            request = request.replace(attributes=unknown)
        return request, None if items is None else _build_settle(items)

    async def tokens(self, caller: Caller, body: CreateBody, raw: bytes) -> int:
        """Estimate the tokens that a model would read for a body, including what it continues."""
        request, _ = await self.request(caller, body, raw)
        for answer in request.approvals:
            await self._context.approvals.get(caller, answer.approval_id)
        total = await run_sized(len(raw), request_tokens, request)
        if request.session is not None and request.session.conversation_id is not None:
            return total + await self._tokens_said(caller, request.session.conversation_id)
        if request.previous_run_id is None or self._channel.session_mode == "disabled":
            return total
        return total + await self._tokens_before(caller, request.previous_run_id)

    async def _tokens_before(self, caller: Caller, run_id: str) -> int:
        """Count the tokens of a chain, back to the last response with a count of its whole context, or to the first
        one."""
        try:
            run: RunRecord | None = await self._context.runs.get(caller, run_id)
        except NotFoundError:
            raise NotFoundError(param="previous_response_id") from None
        total, remaining = 0, self._config.max_body_bytes
        for _ in range(_MAX_CHAIN):
            if run is None:
                return total
            counted = count_tokens(run.result)
            if counted is not None:
                return total + counted
            said = [message for answer in answers(run.result) for message in answer.messages]
            total += await off_loop(message_tokens, [*(run.input or ()), *said])
            remaining -= await off_loop(compute_weight, run.details, remaining)
            if remaining < 0:
                break
            run = None if run.previous_run_id is None else await self._earlier(caller, run.previous_run_id)
        message = "This response chain is too long to count its tokens."
        raise InvalidRequestError(message, param="previous_response_id", code="unsupported")

    async def _earlier(self, caller: Caller, run_id: str) -> RunRecord | None:
        with suppress(NotFoundError):
            return await self._context.runs.get(caller, run_id)
        return None

    async def _tokens_said(self, caller: Caller, conversation: str) -> int:
        total, remaining, after = 0, self._config.max_body_bytes, None
        while remaining >= 0:
            items = await self._context.conversations.list_items(
                caller, conversation, after=after, limit=_PAGE_ROWS, max_bytes=MAX_PAGE_BYTES
            )
            if not items:
                return total
            bodies = [item.body for item in items]
            total += await off_loop(_item_tokens, bodies)
            remaining -= await off_loop(compute_weight, bodies, remaining)
            after = items[-1].item_id
        message = "This conversation is too long to count its tokens."
        raise InvalidRequestError(message, param="conversation", code="unsupported")

    def _parse(self, body: CreateBody, items: Items | None, caller: Caller) -> ChannelRequest:
        request = self._parser.request(body, items, caller.identity)
        # Written here, where nobody waits for it.
        return request.replace(details=prepare(lambda: request.details))

    async def messages(self, caller: Caller, body: CreateBody, size: int) -> tuple[CreateBody, list[Message]]:
        """Return a body with resolved references, and its messages. For compaction, which runs nothing."""
        body, size = await self._resolve(caller, body, size)
        items = await self._items(caller, body, size)
        if items is None:
            return body, as_messages(body.input) or []
        if items.approvals:
            raise InvalidRequestError("A response to a question can't be compacted.", param="input")
        await self._fill(caller, items)
        return body, in_given_order(as_results(items.outputs), items.messages, items.outputs)

    async def _items(self, caller: Caller, body: CreateBody, size: int) -> Items | None:
        """Return the items of a body with compactions replaced by summaries. The body keeps the compactions."""
        given = body.input
        if isinstance(given, list) and any(item.get("type") == "compaction" for item in given):
            self._parser.check_length(given)
            references = self._references(caller, body)
            body = msgspec.structs.replace(body, input=await open_summaries(references, given))
            size += references.size
        return await run_sized(size, self._parser.items, body)

    def _references(self, caller: Caller, body: CreateBody) -> References:
        config, inside = self._config, parse_conversation(body)
        limits = (config.max_body_bytes, config.max_body_values)
        return References(self._context, caller, self._renderer, inside, limits)

    async def _fill(self, caller: Caller, items: Items) -> None:
        if items.urls and self._fetcher is not None:
            # Nothing is done for a stranger, and going out for them would be something.
            await self._context.allow(caller)
            await self._fetcher.fill(items.urls, caller=caller.identity.key)

    async def _resolve(self, caller: Caller, body: CreateBody, size: int) -> tuple[CreateBody, int]:
        """Return the body with resolved item references, and its resulting size."""
        given = body.input
        if not isinstance(given, list):
            return body, size
        self._parser.check_length(given)
        if not any(map(reference, given)):
            return body, size
        references = self._references(caller, body)
        items = [
            item if (item_id := reference(item)) is None else await references.item(item_id, f"input[{place}]")
            for place, item in enumerate(given)
        ]
        return msgspec.structs.replace(body, input=items), size + references.size


def _item_tokens(items: Sequence[Mapping[str, Any]]) -> int:
    return message_tokens(to_messages(items)[0])


def _build_settle(items: Items | None) -> SettleAnswers | None:
    """Return a function that settles answers among items that contain more of a question than its id."""
    if items is None or not (items.questions or items.earlier):
        return None

    async def settle(answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]) -> Sequence[ApprovalAnswer]:
        asked = {approval.approval_id: approval.request for approval in waiting}
        _check_questions(items.questions, asked)
        # An answer that another question follows and that does not count as given yet: all are of one response.
        return [*(answer for answer in items.earlier if answer.approval_id in asked), *answers]

    return settle


def _check_questions(questions: Sequence[Question], asked: Mapping[str, Any]) -> None:
    """Reject a repeated question that differs from the one that was asked."""
    for question in questions:
        request = asked.get(question.approval_id)
        if request is not None and get_asked_call(request) != (question.tool, question.arguments):
            raise InvalidRequestError("The response does not match the question.", param=question.where)
