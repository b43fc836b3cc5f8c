"""From a body to the request that is run: what it refers to is looked up as the caller's own."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from agent_framework import Message

from frontdesk.abc.channel import Channel, ChannelContext, SettleAnswers
from frontdesk.channels.responses.compact import opened
from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.parse import Parser, conversation_of, unknown_keys
from frontdesk.channels.responses.references import References
from frontdesk.channels.responses.render import Renderer, counted_tokens
from frontdesk.channels.responses.wire import CreateBody
from frontdesk.data.approval import ApprovalAnswer, PendingApproval
from frontdesk.data.codec import prepare
from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest
from frontdesk.data.run import RunRecord
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.kit.aio.large import LARGE, off_loop, run_sized, weight_of
from frontdesk.kit.foundry.adopted import adopted
from frontdesk.kit.framework.client_outputs import as_results
from frontdesk.kit.framework.contents import asked_for
from frontdesk.kit.framework.messages import as_messages
from frontdesk.kit.openai.answers import answers
from frontdesk.kit.openai.items import Items, Question, reference, to_messages
from frontdesk.kit.openai.tokens import message_tokens, request_tokens

_MAX_CHAIN = 100
"""The number of responses that are read to count what came before."""
_PAGE = 100


class Intake:
    """Takes bodies in, for one channel."""

    def __init__(self, channel: Channel, config: ResponsesConfig, context: ChannelContext, renderer: Renderer) -> None:
        self._channel = channel
        self._config = config
        self._context = context
        self._renderer = renderer
        self._fetcher = config.fetching.fetcher()
        self.response_ids = config.response_ids
        self._parser = Parser(channel.name, config, context.target, channel.session_mode)
        self.shows_payload = channel.run_hook is not None or context.target.reads_attributes
        """Whether anybody looks at what a body says beyond the API."""

    async def request(
        self, caller: Caller, body: CreateBody, raw: bytes, payload: Mapping[str, Any] | None = None
    ) -> tuple[ChannelRequest, SettleAnswers | None]:
        """Return the request that a body asks for, and what settles the answers in it.

        What `payload` says beyond the API becomes the request's attributes.
        """
        items, size = None, len(raw)
        if not isinstance(body.input, str):
            body, size = await self._resolved(caller, body, size)
            items = await self._items(caller, body, size)
        if size <= LARGE:
            request = self._parser.request(body, items, caller.identity)
        else:
            request = await off_loop(self._parsed, body, items, caller)
        if self._context.adopts_ids and caller.isolation is not None:
            request = await adopted(self._context, caller, request)
        if request.session is not None and request.session.openai_conversation_id is not None:
            # Looked at before anything is kept for the caller, and before a background run is put off.
            await self._context.conversations.get(caller, request.session.openai_conversation_id)
        if items is not None:
            await self._fill(caller, items)
        if request.approvals:
            request = request.replace(operation="approval")
        if payload is not None and (unknown := unknown_keys(payload)):
            request = request.replace(attributes=unknown)
        return request, _settling(items)

    async def tokens(self, caller: Caller, body: CreateBody, raw: bytes) -> int:
        """Estimate how many tokens a model would read for a body, with what it continues."""
        request, _ = await self.request(caller, body, raw)
        for answer in request.approvals:
            await self._context.get_approval(caller, answer.approval_id)
        total = await run_sized(len(raw), request_tokens, request)
        if request.session is not None and request.session.openai_conversation_id is not None:
            return total + await self._tokens_said(caller, request.session.openai_conversation_id)
        if request.previous_run_id is None or self._channel.session_mode == "disabled":
            return total
        return total + await self._tokens_before(caller, request.previous_run_id)

    async def _tokens_before(self, caller: Caller, run_id: str) -> int:
        """Count a chain back to the last response whose model has counted all that came before, or that is there."""
        try:
            run: RunRecord | None = await self._context.get_run(caller, run_id)
        except NotFoundError:
            raise NotFoundError(param="previous_response_id") from None
        total, room = 0, self._config.bodies.max_bytes
        for _ in range(_MAX_CHAIN):
            if run is None:
                return total
            counted = counted_tokens(run.result)
            if counted is not None:
                return total + counted
            said = [message for answer in answers(run.result) for message in answer.messages]
            total += await off_loop(message_tokens, [*(run.input or ()), *said])
            room -= await off_loop(weight_of, run.details, room)
            if room < 0:
                break
            run = None if run.previous_run_id is None else await self._earlier(caller, run.previous_run_id)
        message = "This chain is too long to be counted."
        raise InvalidRequestError(message, param="previous_response_id", code="unsupported")

    async def _earlier(self, caller: Caller, run_id: str) -> RunRecord | None:
        with suppress(NotFoundError):
            return await self._context.get_run(caller, run_id)
        return None

    async def _tokens_said(self, caller: Caller, conversation: str) -> int:
        total, room, after = 0, self._config.bodies.max_bytes, None
        while room >= 0:
            items = await self._context.conversations.list_items(caller, conversation, after=after, limit=_PAGE)
            bodies = [item.body for item in items]
            total += await off_loop(_item_tokens, bodies)
            room -= await off_loop(weight_of, bodies, room)
            if len(items) < _PAGE:
                return total
            after = items[-1].item_id
        message = "This conversation is too long to be counted."
        raise InvalidRequestError(message, param="conversation", code="unsupported")

    def _parsed(self, body: CreateBody, items: Items | None, caller: Caller) -> ChannelRequest:
        request = self._parser.request(body, items, caller.identity)
        # Written here, where nobody waits for it.
        return request.replace(details=prepare(lambda: request.details))

    async def messages(self, caller: Caller, body: CreateBody, size: int) -> tuple[CreateBody, list[Message]]:
        """Return a body with what it refers to in its places, and its messages; for compaction, which runs nothing."""
        body, size = await self._resolved(caller, body, size)
        items = await self._items(caller, body, size)
        if items is None:
            return body, as_messages(body.input) or []
        if items.approvals:
            raise InvalidRequestError("An answer to a question can't be compacted.", param="input")
        await self._fill(caller, items)
        return body, [*as_results(items.outputs), *items.messages]

    async def _items(self, caller: Caller, body: CreateBody, size: int) -> Items | None:
        """Return the items of a body, with the summaries that its compactions stand for; the body keeps those."""
        given = body.input
        if isinstance(given, list) and any(item.get("type") == "compaction" for item in given):
            self._parser.check_length(given)
            references = self._references(caller, body)
            body = msgspec.structs.replace(body, input=await opened(references, given))
            size += references.size
        return await run_sized(size, self._parser.items, body)

    def _references(self, caller: Caller, body: CreateBody) -> References:
        config, inside = self._config, conversation_of(body)
        limits = (config.bodies.max_bytes, config.bodies.max_values)
        return References(self._context, caller, self._renderer, inside, limits)

    async def _fill(self, caller: Caller, items: Items) -> None:
        """Fetch the pictures and files that are named by their address."""
        if items.urls and self._fetcher is not None:
            # Nothing is done for a stranger, and going out for them would be something.
            await self._context.allow(caller)
            await self._fetcher.fill(items.urls, caller=caller.identity.key)

    async def _resolved(self, caller: Caller, body: CreateBody, size: int) -> tuple[CreateBody, int]:
        """Return the body with the items that it refers to in their places, and how large it is with them."""
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


def _settling(items: Items | None) -> SettleAnswers | None:
    """Return what settles answers among items that say more about questions than their ids."""
    if items is None or not (items.questions or items.earlier):
        return None

    async def settle(answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]) -> Sequence[ApprovalAnswer]:
        asked = {approval.approval_id: approval.request for approval in waiting}
        _check_questions(items.questions, asked)
        # An answer that another question follows and that does not count as given yet: all are of one response.
        return [*(answer for answer in items.earlier if answer.approval_id in asked), *answers]

    return settle


def _check_questions(questions: Sequence[Question], asked: Mapping[str, Any]) -> None:
    """Refuse a question that is repeated with its answer and is not the one that was asked."""
    for question in questions:
        request = asked.get(question.approval_id)
        if request is not None and asked_for(request) != (question.tool, question.arguments):
            raise InvalidRequestError("This is not what was asked.", param=question.where)
