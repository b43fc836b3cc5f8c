"""People in chats: messages, approvals by button, and accounts that are linked."""

import asyncio
import re
from collections import Counter
from typing import Any

from frontdesk_testing.messages import MessagePlatform, Person
from tests.judge.actors.base import Actor
from tests.judge.ledger import Approval, Message
from tests.judge.steps import parse_heard

PEOPLE = 6
LONGEST = 20
QUIET = 30.0
"""After how many seconds without any change nothing more is expected: a push that a kill has cut off is tried again
after seventeen, and everything else sooner."""
_CODE = re.compile(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{2}")
_PAUSE = 0.2
_WATCHED = 4.0
"""For how many seconds a person looks at an answer that is being written."""
_ACTED = 3.0
"""How many seconds a press is expected to take: if its host is killed within these, the tool may not have run."""


def _is_partial(text: str) -> bool:
    """Tell whether a message shows the beginning of an answer."""
    return text.startswith("p0") and '{"heard"' not in text


class Chats(Actor):
    """Say words in direct chats; every word that the platform handed over is answered once, in order."""

    name = "chats"
    clients = 2
    platform_name = "chat"
    is_live = False
    """Whether answers are shown while they are written."""
    long_share = 0.3
    """How many of the answers take a while."""

    async def prepare(self) -> None:
        self._people: list[Person] = []
        self._said: Counter[str] = Counter()
        self._old: list[Person] = []
        self._events: dict[str, str] = {}
        self._asked: dict[str, int] = {}
        for _ in range(PEOPLE):
            self._people.append(await self.platform.user(self.court.word("person")))

    @property
    def platform(self) -> MessagePlatform:
        """Where the people are."""
        return self.court.site.platforms[self.platform_name]

    async def act(self) -> None:
        number = self.rng.randrange(PEOPLE)
        person = self._people[number]
        self._said[person.chat_id] += 1
        if self._said[person.chat_id] == LONGEST:
            self._old.append(person)
            self._people[number] = await self.platform.user(self.court.word("person"))
        word = self.court.word("m")
        line = self._line(person)
        self._asked[word] = self.ledger.say(line, word)
        self.ledger.messages[word] = Message(line, word, live=self.is_live)
        event = await self.platform.say(person, word + (" say:30" if self.rng.random() < self.long_share else ""))
        self._events[event.event_id] = word
        await self._rest(person, word)

    async def _rest(self, person: Person, word: str) -> None:
        """Wait a little before the next word of anybody."""
        del person, word
        await asyncio.sleep(self.rng.random() * 0.2)

    def _line(self, person: Person) -> str:
        return f"{self.platform_name}:{person.user_id}"

    async def settle(self) -> None:
        """Wait until all is answered, or it is clear that something never will be."""
        await self.court.until_quiet(self._count_missing, QUIET)
        for person in self._all():
            self.ledger.excuse(self._line(person), await self._enter(person))

    def _all(self) -> list[Person]:
        return list({person.chat_id: person for person in (*self._old, *self._people)}.values())

    async def _count_missing(self) -> int:
        """How many words have no answer."""
        for state in await self.platform.events():
            word = self._events.get(state.event.event_id)
            if word is not None and state.state == "acknowledged":
                self.ledger.messages[word].acknowledged = True
        shown = [text for person in self._all() for text in await self._texts(person)]
        partial = sum(_is_partial(text) for text in shown)
        answered = {parse_heard(text)[-1] for text in shown if '{"heard"' in text}
        return sum(word not in answered for word in self._events.values()) + partial

    async def _texts(self, person: Person) -> list[str]:
        return [one.text for one in await self.platform.answers(person.chat_id)]

    async def _enter(self, person: Person) -> list[str]:
        """Enter the answers of a chat; return the texts that say that there is none."""
        excuses: list[str] = []
        for said in await self.platform.answers(person.chat_id):
            text = said.text
            if _is_partial(text):
                self.ledger.unfinished.append(f"{self._line(person)} shows {text!r} as being written")
                continue
            if not text.startswith(("{", "p0")):
                excuses += [] if text.startswith("May I use") else [text]
                continue
            heard = parse_heard(text)
            word = heard[-1]
            if word in self.ledger.messages:
                self.ledger.messages[word].answers.append(tuple(heard))
                self.ledger.messages[word].answered_at = said.at
                self.ledger.hear(self._line(person), word, heard, self._asked[word])
        return excuses


class PlainChats(Chats):
    """The same on a platform that does not know a message that it has seen: an answer may be missing, if an operator
    can see so."""

    name = "plain_chats"
    clients = 1
    platform_name = "plain"


class LiveChats(Chats):
    """The same on a platform that shows answers while they are written, by edits of their messages."""

    name = "live_chats"
    platform_name = "live"
    clients = 2
    is_live = True
    long_share = 0.9

    async def _rest(self, person: Person, word: str) -> None:
        """Look at the answer: who says more than is answered would only look at what waits."""
        for _ in range(int(_WATCHED / _PAUSE)):
            if any(f'"{word}"]' in text for text in await self._texts(person)):
                break
            await asyncio.sleep(_PAUSE)


class Buttons(Actor):
    """Approve by pressing a button."""

    name = "buttons"
    clients = 1

    async def prepare(self) -> None:
        self._open: list[str] = []

    async def act(self) -> None:
        platform, key = self.court.site.platforms["chat"], self.court.word("button")
        person = await platform.user(self.court.word("presser"))
        self.ledger.messages[f"m{key}"] = Message(f"chat:{person.user_id}", f"m{key}")
        await platform.say(person, f"m{key} act:{key}")
        question = await self._question(platform, person)
        if question is not None:
            approval = self.ledger.approvals[key] = Approval(key, asking=1)
            await platform.click(person, question, "Approve")
            self._open.append(key)
            for _ in range(int(_ACTED / _PAUSE)):
                if key in self.court.site.effects("did"):
                    # Until then it is being worked on, however long that takes.
                    approval.asking = 0
                    break
                await asyncio.sleep(_PAUSE)

    async def _question(self, platform: MessagePlatform, person: Person) -> Any:
        for _ in range(100):
            for one in await platform.answers(person.chat_id):
                if one.buttons:
                    return one
            await asyncio.sleep(_PAUSE)
        return None

    async def settle(self) -> None:
        for _ in range(int(QUIET / _PAUSE)):
            done = set(self.court.site.effects("did"))
            if all(key in done for key in self._open):
                break
            await asyncio.sleep(_PAUSE)
        for key in self._open:
            # Pressed and taken: what was approved is done when all is quiet.
            self.ledger.approvals[key].answers.append("pressed")


class Links(Actor):
    """Link two accounts, and see that nobody hears anybody else."""

    name = "links"
    clients = 1

    async def act(self) -> None:
        one, other = self.court.site.platforms["chat"], self.court.site.platforms["plain"]
        name = self.court.word("pair")
        ann, too = await one.user(name), await other.user(name)
        words = [self.court.word("l") for _ in range(3)]
        for word in words:
            self.ledger.said[word] = name
        await one.say(ann, words[0])
        await one.say(ann, "/link")
        code = await self._find(one, ann, _CODE.pattern)
        if code is None:
            return
        await other.say(too, f"/link {code}")
        if await self._find(one, ann, "has entered your code") is None:
            return
        await one.say(ann, "/link confirm")
        await other.say(too, words[1])
        await one.say(ann, words[2])
        for platform, person, word in ((one, ann, words[2]), (other, too, words[1])):
            text = await self._find(platform, person, rf'\{{"heard": \[.*"{word}"\]\}}')
            if text is not None:
                # What a link has changed in the meantime decides how much is heard; whose it is does not change.
                self.ledger.hear(name, word, parse_heard(text), self.ledger.tick(), after="-")

    async def _find(self, platform: MessagePlatform, person: Person, pattern: str) -> str | None:
        for _ in range(60):
            for one in await platform.answers(person.chat_id):
                if (found := re.search(pattern, one.text)) is not None:
                    return found.group()
            await asyncio.sleep(_PAUSE)
        return None
