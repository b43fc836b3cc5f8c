"""People who ask, and see their answers while they are written; the platform's log is the judge of what they see."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from frontdesk_testing.messages import MessagePlatform, Person
from frontdesk_testing.messages.platform.journal import Entry

BATCH = 5
PATIENCE = 120.0


def question(number: int) -> str:
    """What somebody asks: words enough to be shown one after the other."""
    return f"{number} is my question"


def answer(number: int) -> str:
    """The whole answer to it."""
    return f"heard {question(number)}"


@dataclass
class Answers:
    """What became of the answers; all but the first two must be nothing."""

    whole: int = 0
    shown: int = 0
    """The messages that were changed until they were whole."""
    lost: int = 0
    doubled: int = 0
    disordered: int = 0
    stray: int = 0
    """Messages that are no whole answer, and are still there: never completed, or changed once more after that."""


class Chats:
    """The messages of the bot as each chat shows them, made from the log."""

    def __init__(self) -> None:
        self.texts: dict[str, dict[str, str]] = defaultdict(dict)
        self.shown: set[str] = set()

    def read(self, entries: Iterable[Entry]) -> None:
        """Adds what was accepted after the last time."""
        for entry in entries:
            messages = self.texts[entry.chat_id]
            if entry.method == "delete":
                messages.pop(entry.message_id, None)
            elif entry.method in ("send", "edit"):
                messages[entry.message_id] = entry.text
            if entry.method == "edit":
                self.shown.add(entry.message_id)


def judge_answers(log: Sequence[Entry], chat_ids: Iterable[str], count: int) -> Answers:
    """Compares what the chats show in the end with what was asked there, `count` questions in each. Pure."""
    whole = {answer(number): number for number in range(count)}
    chats = Chats()
    chats.read(log)
    answers = Answers()
    for chat_id in chat_ids:
        texts = chats.texts[chat_id]
        numbers = [whole[text] for text in texts.values() if text in whole]
        times = Counter(numbers)
        answers.whole += len(times)
        answers.lost += count - len(times)
        answers.doubled += len(numbers) - len(times)
        answers.disordered += sum(number > later for number, later in pairwise(dict.fromkeys(numbers)))
        answers.stray += sum(text not in whole for text in texts.values())
        answers.shown += sum(message_id in chats.shown for message_id in texts)
    return answers


class Asker:
    """Has people ask a few questions at a time, the next when these were answered."""

    def __init__(self, platform: MessagePlatform, count: int) -> None:
        self._platform = platform
        self._count = count
        self._chats = Chats()
        self._read = 0
        self._news = asyncio.Condition()
        self._watching: asyncio.Future[None] | None = None
        self.fed = 0

    async def __aenter__(self) -> Self:
        self._watching = asyncio.ensure_future(self._platform.until(self._look, within=3600))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    async def feed(self, person: Person, number: int) -> None:
        """All that one person asks."""
        for start in range(0, self._count, BATCH):
            asked = range(start, min(start + BATCH, self._count))
            for question_number in asked:
                await self._platform.say(person, question(question_number))
            async with asyncio.timeout(PATIENCE), self._news:
                await self._news.wait_for(lambda: self._has_all(person, asked))  # noqa: B023
            self.fed += len(asked)

    def _has_all(self, person: Person, asked: Iterable[int]) -> bool:
        texts = set(self._chats.texts[person.chat_id].values())
        return all(answer(number) in texts for number in asked)

    async def _look(self) -> bool:
        entries = await self._platform.log(after=self._read)
        self._read += len(entries)
        self._chats.read(entries)
        async with self._news:
            self._news.notify_all()
        return False
