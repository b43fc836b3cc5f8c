"""Whatever a platform does, and wherever a process dies: the platform's own log is the judge."""

import asyncio
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.delivery.destination_drain import EARLIER
from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.interfaces.chat import PushPart
from frontdesk.stores.memory.store import InMemoryStateStore
from tests.delivery.scripted import AskableChannel, OutboxWorld, ScriptedChannel

WORDS = ("ok", "ok", "ok", "down", "flood", "refused", "lost", "arrived", "dies before", "dies after")
PLACES = ("ann", "ben")


class Judge(ScriptedChannel):
    """A platform that does what it is told and writes down what it has accepted."""

    def __init__(self, words: list[str], *, idempotent: bool) -> None:
        super().__init__(idempotent=idempotent)
        self.words = words
        self.log: dict[str, list[str]] = defaultdict(list)
        self.doubts: set[str] = set()

    def accept(self, part: PushPart) -> str:
        place, key = part.identity.native_id, part.idempotency_key
        if not (self.push_is_idempotent and key in self.log[place]):
            self.log[place].append(key)
        return f"receipt of {key}"

    async def push_part(self, part: PushPart) -> str | None:
        word = self.words.pop() if self.words else "ok"
        if word in ("lost", "arrived", "dies before", "dies after"):
            self.doubts.add(part.idempotency_key)
        if word in ("ok", "arrived", "dies after"):
            receipt = self.accept(part)
            if word == "ok":
                return receipt
        if word.startswith("dies"):
            raise asyncio.CancelledError
        raise {
            "down": PushError(code="down"),
            "flood": PushLimitedError(retry_after=30),
            "refused": PushRefusedError(code="refused"),
        }.get(word, PushUnknownError(code="silence"))


class AskableJudge(Judge, AskableChannel):
    """The same, and it can be asked."""

    async def find_push(self, part: PushPart) -> str | None:
        return (
            f"receipt of {part.idempotency_key}" if part.idempotency_key in self.log[part.identity.native_id] else None
        )


answers = st.lists(st.tuples(st.sampled_from(PLACES), st.integers(1, 3), st.booleans()), min_size=1, max_size=6)


@given(
    said=answers, words=st.lists(st.sampled_from(WORDS), max_size=25), kind=st.sampled_from(["keys", "blind", "asks"])
)
def test_nothing_is_lost_repeated_or_out_of_order(
    said: list[tuple[str, int, bool]], words: list[str], kind: str
) -> None:
    judge = AskableJudge(words, idempotent=False) if kind == "asks" else Judge(words, idempotent=kind == "keys")
    desk = OutboxWorld(InMemoryStateStore(), judge)
    asyncio.run(_play(desk, said))
    asyncio.run(_judge(desk, judge, kind))


async def _play(desk: OutboxWorld, said: list[tuple[str, int, bool]]) -> None:
    letters = iter("abcdefgh")
    for place, parts, echo in said:
        await desk.add(*desk.answer(next(letters), parts, echo=echo, place=place))
    for _ in range(500):
        waits: list[float] = []
        for place in PLACES:
            try:
                waits += [wait] if (wait := await desk.drain(place)) is not None else []
            except asyncio.CancelledError:
                desk.restart()
                waits.append(0.0)
        if not waits:
            return
        desk.clock.advance(min(waits))
    raise AssertionError("it never came to an end")


async def _judge(desk: OutboxWorld, judge: Judge, kind: str) -> None:
    rows = await desk.store.outbox.find(limit=1000)
    assert all(one.ended_at is not None for one in rows)
    for place in PLACES:
        log = judge.log[place]
        wanted = [
            one.delivery_id for one in sorted(rows, key=lambda row: row.number) if one.identity.native_id == place
        ]
        first = list(dict.fromkeys(log))
        # In order, and nothing twice: what is in doubt is sent again only if the platform knows it, or says that it
        # has never come.
        assert first == [one for one in wanted if one in first]
        assert log == first
    for one in rows:
        arrived = one.delivery_id in judge.log[one.identity.native_id]
        if one.status == "accepted":
            assert arrived
            assert one.receipt == f"receipt of {one.delivery_id}"
        elif one.status == "dead":
            # Given up for good is only what was refused, failed too often, or followed such a part.
            assert not arrived or one.delivery_id in judge.doubts
            assert one.error in ("refused", "down: 3 attempts", EARLIER)
        else:
            assert (one.status, one.delivery_id in judge.doubts) == ("unknown", True)
            assert kind != "asks" or one.attempts >= 3
