"""A push channel whose platform does what the test says, and rows for it."""

import asyncio
from collections import deque
from collections.abc import Sequence
from math import ceil
from typing import Any

from frontdesk.delivery.outbox import OutboxSchedule, OutboxSender
from frontdesk.interfaces.channel import Channel, ChannelContext, ChannelContribution, ChannelPush
from frontdesk.interfaces.chat import PushesParts, PushPart, PushTerms, SupportsPushLookup
from frontdesk.interfaces.runner import DurableTaskRunner, RetryPolicy
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.result import HostedRunResult
from frontdesk_testing.clock import FakeClock

TERMS = PushTerms(retry=RetryPolicy(attempts=3, first_delay=1.0, longest_delay=8.0), failures=100, timeout=5.0)


class ScriptedChannel(Channel, ChannelPush, PushesParts):
    """Answers each push with the next word of the script: an error, or else a receipt."""

    session_family = "host_tracked"
    requires_auth_when_public = False

    def __init__(self, name: str = "chat", *, terms: PushTerms = TERMS, idempotent: bool = False) -> None:
        self.name = name
        self.path = f"/{name}"
        self.push_terms = terms
        self.push_is_idempotent = idempotent
        self.script: dict[str, deque[BaseException | None]] = {}
        self.sent: list[PushPart] = []
        self.slow: dict[str, asyncio.Event] = {}
        self.began = asyncio.Event()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        return ChannelContribution()

    def answer(self, place: str, *words: BaseException | None) -> None:
        """What the platform does with the next pushes to a place."""
        self.script.setdefault(place, deque()).extend(words)

    def texts(self, place: str | None = None) -> list[Any]:
        """What was given to the platform, accepted or not."""
        return [one.content for one in self.sent if place is None or _place(one) == place]

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        return [result.result.text]

    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        raise NotImplementedError

    async def push_part(self, part: PushPart) -> str | None:
        self.sent.append(part)
        self.began.set()
        place = _place(part)
        if place in self.slow:
            await self.slow[place].wait()
        words = self.script.get(place)
        word = words.popleft() if words else None
        if word is not None:
            raise word
        return f"r{len(self.sent)}"


class AskableChannel(ScriptedChannel, SupportsPushLookup):
    """The same, and the platform can be asked."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.found: deque[str | BaseException | None] = deque()
        self.asked: list[str] = []

    async def find_push(self, part: PushPart) -> str | None:
        self.asked.append(part.idempotency_key)
        word = self.found.popleft()
        if isinstance(word, BaseException):
            raise word
        return word


def _place(part: PushPart) -> str:
    return part.conversation_id or part.identity.native_id


class OutboxWorld:
    """An outbox over a store, with a channel and a clock that the test moves."""

    def __init__(self, store: HostStateStore, channel: ScriptedChannel) -> None:
        self.store = store
        self.channel = channel
        self.clock = FakeClock()
        self.outbox = self.restart()

    def restart(self, runner: DurableTaskRunner | None = None) -> OutboxSender:
        """A new process, as far as the outbox knows."""
        channels = {self.channel.name: self.channel}
        schedule = None if runner is None else OutboxSchedule(runner, channels)
        self.outbox = OutboxSender(self.store, channels, self.clock, schedule=schedule)
        return self.outbox

    async def add(self, *rows: Delivery) -> None:
        async with self.store.transaction() as transaction:
            for row in rows:
                transaction.add_delivery(row)

    async def drain(self, place: str = "ann") -> float | None:
        """Seconds until it wants to be woken again."""
        at = await self.outbox.drain(self.channel.name, place)
        # Rounded up, so that it is not too early after so many seconds.
        return None if at is None else ceil(round((at - self.clock.now()) * 1000, 3)) / 1000

    async def status(self, delivery_id: str) -> tuple[str, str | None]:
        found = await self.get(delivery_id)
        return found.status, found.error

    async def get(self, delivery_id: str) -> Delivery:
        found = await self.store.outbox.get(delivery_id)
        assert found is not None
        return found

    def row(self, name: str, *, place: str = "ann", part: int = 0, parts: int = 1, **fields: Any) -> Delivery:
        """One part; those with the same first letter are one answer."""
        now = self.clock.now()
        return Delivery(
            delivery_id=name,
            answer_id=f"{place} {name[0]}",
            run_id=f"run_{name[0]}",
            owner="ann",
            channel=self.channel.name,
            identity=ChannelIdentity(channel=self.channel.name, native_id=place),
            part=part,
            parts=parts,
            payload=f"text {name}",
            created_at=now,
            due_at=now,
        ).replace(**fields)

    def answer(self, letter: str, parts: int, *, echo: bool = False, place: str = "ann") -> list[Delivery]:
        """All parts of one answer."""
        return [
            self.row(f"{letter}{part}", place=place, part=part, parts=parts, is_echo=echo and part == 0)
            for part in range(parts)
        ]
