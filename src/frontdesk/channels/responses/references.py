"""Resolves the items that a request refers to: each response once, for its owner only, and within limits."""

from contextlib import suppress
from typing import Any

import msgspec

from frontdesk.channels.responses.render import Renderer, draw_compaction, input_items, is_compaction
from frontdesk.concurrency.offload import compute_weight, off_loop
from frontdesk.errors import BodyTooLargeError, InvalidRequestError, NotFoundError
from frontdesk.errors.sizes import format_size
from frontdesk.framework.approval_ids import with_id
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.json_size import count_values
from frontdesk.models.identity import Caller
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import encode

Found = dict[str, Any]

_PREFIXES = ("resp", "caresp")
"""The beginnings of the ids of responses: of the host's own, and of those in Foundry's form."""


class _Known:
    __slots__ = ("body", "size", "values")

    def __init__(self, body: Found, written: bytes) -> None:
        self.body = body
        self.size = len(written)
        self.values = count_values(written)


class References:
    """Resolves items and compactions for one request."""

    def __init__(
        self,
        context: ChannelContext,
        caller: Caller,
        renderer: Renderer,
        inside: str | None,
        limits: tuple[int, int],
    ) -> None:
        """`inside` is the conversation of the request. `limits` are the maximum bytes and values it may refer to."""
        self._context = context
        self._caller = caller
        self._renderer = renderer
        self._inside = inside
        self._max_bytes, self._max_values = limits
        self._said: dict[str, _Known | None] = {}
        self._questions: dict[str, _Known | None] = {}
        self._runs: dict[str, dict[str, _Known]] = {}
        self._compactions: dict[str, RunRecord | None] = {}
        self._read = 0
        self._values = 0
        self.size = 0
        """How many bytes everything has that was referred to; what was named twice counts twice."""

    async def item(self, item_id: str, where: str) -> Found:
        known = None if self._inside is None else await self._in_conversation(self._inside, item_id, where)
        # An item's id holds that of its response, which is looked up as the caller's own like any other.
        for prefix in _PREFIXES:
            known = known or (await self._of_run(f"{prefix}_{item_id.partition('_')[2][:-4]}", where)).get(item_id)
        # That of a question is the target's own.
        known = known or await self._question(item_id, where)
        if known is None:
            raise NotFoundError("Item not found.", param=where)
        self._count(known.size, known.values, where)
        return known.body

    async def compaction(self, run_id: str, where: str) -> RunRecord | None:
        """Return the run of a compaction, or None if the caller has no such run."""
        if run_id not in self._compactions:
            run = await self._run(run_id)
            if run is not None:
                self._count_read(await off_loop(compute_weight, run.details, self._max_bytes), where)
                kept = {name: run.details[name] for name in ("seal", "summary") if name in run.details}
                run = run.replace(input=None, details=kept)
            self._compactions[run_id] = run
        run = self._compactions[run_id]
        if run is not None:
            self._count(len(str(run.details.get("summary", ""))), 1, where)
        return run

    async def _in_conversation(self, inside: str, item_id: str, where: str) -> _Known | None:
        if item_id not in self._said:
            self._said[item_id] = None
            with suppress(NotFoundError):
                found = await self._context.conversations.get_item(self._caller, inside, item_id)
                self._said |= await self._measure({item_id: dict(found.body)}, where)
        return self._said[item_id]

    async def _question(self, item_id: str, where: str) -> _Known | None:
        if item_id not in self._questions:
            self._questions[item_id] = None
            with suppress(NotFoundError):
                approval = await self._context.approvals.get(self._caller, item_id)
                item = msgspec.to_builtins(self._renderer.question(with_id(approval.request, approval.approval_id)))
                self._questions |= await self._measure({item_id: item}, where)
        return self._questions[item_id]

    async def _of_run(self, run_id: str, where: str) -> dict[str, _Known]:
        if run_id not in self._runs:
            run = await self._run(run_id)
            items = {} if run is None else await off_loop(self._find_all, run)
            self._runs[run_id] = await self._measure(items, where)
        return self._runs[run_id]

    async def _run(self, run_id: str) -> RunRecord | None:
        try:
            return await self._context.runs.get(self._caller, run_id)
        except NotFoundError:
            return None

    def _find_all(self, run: RunRecord) -> dict[str, Found]:
        output = draw_compaction(run).output if is_compaction(run) else self._renderer.output(run, run.result)
        items: list[Found] = [msgspec.to_builtins(item) for item in output]
        return {item["id"]: item for item in (*reversed(input_items(run)), *reversed(items))}

    async def _measure(self, items: dict[str, Found], where: str) -> dict[str, _Known]:
        known = await off_loop(_encode_items, items)
        self._count_read(sum(item.size for item in known.values()), where)
        return known

    def _count_read(self, size: int, where: str) -> None:
        """Count the read bytes, to limit reads that are large compared to the output."""
        self._read += size
        if self._read > self._max_bytes:
            raise _too_large(self._max_bytes, where)

    def _count(self, size: int, values: int, where: str) -> None:
        self.size += size
        self._values += values
        if self.size > self._max_bytes:
            raise _too_large(self._max_bytes, where)
        if self._values > self._max_values:
            message = f"What a body refers to has {self._max_values} values at most."
            raise InvalidRequestError(message, param=where, code="too_many_values")


def _encode_items(items: dict[str, Found]) -> dict[str, _Known]:
    return {item_id: _Known(body, encode(body)) for item_id, body in items.items()}


def _too_large(limit: int, where: str) -> BodyTooLargeError:
    return BodyTooLargeError(f"What a body refers to must not be larger than {format_size(limit)}.", param=where)
