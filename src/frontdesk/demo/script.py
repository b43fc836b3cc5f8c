"""The script of the concierge. Pure: the messages so far give the next step."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_framework import Content, Message

from frontdesk.demo.hotel import HOURS, PRICES, offer
from frontdesk.demo.picture import sea_view
from frontdesk.demo.stories import SIGHT_SOURCES, SIGHTS, STORY, TABLE

HELP = (
    "I can tell you when something is open (try: When is breakfast?), work out a sum (try: What is 3 * (110 + 12)?), "
    "book a room (try: Book a sea view room for two nights), show you the view, tell you the story of the house, name "
    "sights and their sources (try: What is there to see nearby?), and remember what you said (try: What did I say "
    "before?)."
)
_PLACES = {"swim": "pool", "book from": "library", "drink": "bar", "eat": "breakfast", "desk": "reception"}
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_SYMBOLS = [
    (re.compile(rf"(?<=[\d)\s]){word}(?=[\d(\s])"), symbol)
    for word, symbol in (
        *(("divided by", "/"), ("times", "*"), ("plus", "+"), ("minus", "-")),
        *(("×", "*"), ("÷", "/"), ("x", "*")),
    )
]
_BOOKS = re.compile(r"\b(book|reserve|take)\b")
_LODGES = re.compile(r"\b(room|night|attic|garden|sea)")
_NIGHTS = re.compile(rf"\b(\d{{1,4}}|{'|'.join(_NUMBERS)}|a)\s++nights?\b")
_TERMS = re.compile(r"[\d\s.+\-*/()]++")
_CALCULATES = re.compile(r"\d[\s)]*+[-+*/]")
_INTRODUCES = re.compile(r"\b(?:my name is|i am called|call me) ([\w'-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """A text to send, and perhaps a tool to call after it."""

    text: str
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    picture: bytes | None = None
    """A picture to send behind the text, as PNG."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """The sources of the text: titles, and their addresses."""


@dataclass(frozen=True)
class Talk:
    """The guest's last message, and those before it."""

    text: str
    before: Sequence[str]


def next_step(messages: Sequence[Message]) -> Step:
    """Return the next text or tool call."""
    if results := _new_results(messages):
        return Step(" ".join(_in_words(result) for result in results))
    texts = [message.text.strip() for message in messages if message.role == "user" and message.text.strip()]
    if not texts:
        return Step("I am all ears.")
    talk = Talk(texts[-1], texts[:-1])
    for patterns, answer in _ANSWERS:
        if _in_order(patterns, talk.text):
            step = answer(talk)
            if step is not None:
                return step
    return Step(f"I am only a scripted concierge, and that is not in my script. {HELP}")


def _in_order(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    """Tell whether each pattern matches, each behind the match of the one before."""
    position = 0
    for pattern in patterns:
        match = pattern.search(text, position)
        if match is None:
            return False
        position = match.end()
    return True


def _new_results(messages: Sequence[Message]) -> list[Content]:
    """Return the tool results since the last message of the concierge."""
    last = max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)
    contents = [content for message in messages[last + 1 :] for content in message.contents]
    return [content for content in contents if content.type == "function_result"]


def _in_words(result: Content) -> str:
    text = str(result.result or "")
    if "rejected" in text.lower():
        return "As you wish. I have booked nothing."
    return "I am sorry, that did not work." if result.exception or text.startswith("Error") else text


def _book(talk: Talk) -> Step | None:
    asked = talk.text.lower()
    if not _BOOKS.search(asked) or not _LODGES.search(asked):
        return None
    room = next((kind for kind in PRICES if kind.split()[0] in asked), "garden")
    nights = _nights(asked)
    if not 1 <= nights <= 30:
        return Step("We take bookings for one to thirty nights.")
    text = f"With pleasure: {offer(room, nights)}. I need a yes before I book it."
    return Step(text, "book_room", {"room": room, "nights": nights})


def _nights(text: str) -> int:
    match = _NIGHTS.search(text)
    if match is None:
        return 1
    word = match.group(1)
    return int(word) if word.isdigit() else _NUMBERS.index(word) + 1 if word in _NUMBERS else 1


def _rooms(talk: Talk) -> Step:
    rooms = ", ".join(f"{kind} ({price} euros a night)" for kind, price in PRICES.items())
    return Step(f"We have three kinds of room: {rooms}. Shall I book one?")


def _hours(talk: Talk) -> Step | None:
    text = talk.text.lower()
    place = next((place for place in HOURS if place in text), None)
    place = place or next((place for word, place in _PLACES.items() if word in text), None)
    if place is None:
        return Step(f"I know the hours of {', '.join(HOURS)}. Which one?") if "open" in text else None
    return Step("", "opening_hours", {"place": place})


def _sum(talk: Talk) -> Step | None:
    text = talk.text.lower()
    for word, symbol in _SYMBOLS:
        text = word.sub(symbol, text)
    terms = (term.strip().lstrip(" .+-*/)").rstrip(" .+-*/(") for term in _TERMS.findall(text))
    expression = max(terms, key=len, default="")
    if not _CALCULATES.search(expression):
        return None
    return Step("", "calculate", {"expression": expression[:100]})


def _name(talk: Talk) -> str | None:
    for line in reversed([*talk.before, talk.text]):
        match = _INTRODUCES.search(line)
        if match:
            return match.group(1)
    return None


def _introduced(talk: Talk) -> Step:
    return Step(f"A pleasure, {_name(talk)}. What can I do for you?")


def _your_name(talk: Talk) -> Step:
    name = _name(talk)
    return Step(f"You are {name}, of course." if name else "You have not told me your name yet.")


def _before(talk: Talk) -> Step:
    if not talk.before:
        return Step("Nothing yet: this is the beginning of our conversation.")
    last = talk.before[-3:]
    quoted = "; then ".join(f"“{line}”" for line in last)
    return Step(f"You said {quoted}." if len(talk.before) <= 3 else f"A few things. The latest were {quoted}.")


def _greeting(talk: Talk) -> Step:
    name = _name(talk)
    hello = f"Welcome back, {name}" if name else "Good day, and welcome to the Marmalade"
    return Step(f"{hello}! I am the concierge. {HELP}")


def _view(talk: Talk) -> Step:
    return Step("This is the view from the sea view rooms, at about seven in the evening.", picture=sea_view())


def _sights(talk: Talk) -> Step:
    return Step(SIGHTS, sources=SIGHT_SOURCES)


def _say(text: str) -> Callable[[Talk], Step]:
    return lambda talk: Step(text)


_ANSWERS: list[tuple[tuple[re.Pattern[str], ...], Callable[[Talk], Step | None]]] = [
    (tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns), answer)
    for patterns, answer in (
        ((r"\b(what|which)", r"\b(did|have|do) (i|you)\b", r"\b(say|said|tell|told|ask|asked|remember)"), _before),
        ((r"\b(what is|what's|who am|know) (my name|i)\b",), _your_name),
        ((r"\b(tables?|dinner|restaurant|supper)\b",), _say(TABLE)),
        ((r"\b(view|picture|photo)\b(?! rooms?\b)",), _view),
        ((r"\b(nearby|sights?|see around|to see)\b",), _sights),
        ((r"\b(story|history|tell me about the (house|hotel))\b",), _say(STORY)),
        ((r"\b(book|reserve|take)\b",), _book),
        ((r"\d",), _sum),
        (
            (r"\b(weather|rain|sunny|wind|forecast)",),
            _say("There is no window at this desk, but the umbrella stand is full."),
        ),
        ((r"\bwhat time is it\b|\bthe time\b",), _say("The clock above the desk stopped in 1962. We grew fond of it.")),
        ((r"\b(when|open|opens|hours|close|closes|until|where)\b",), _hours),
        ((r"\b(my name is|i am called|call me) \w",), _introduced),
        ((r"\b(rooms?|price|prices|cost|costs|rates?)\b",), _rooms),
        (
            (r"\b(help|what can you do|who are you|what are you)\b",),
            _say(f"I am the concierge of the Marmalade. {HELP}"),
        ),
        ((r"^\W*(hi|hello|hey|good (day|morning|afternoon|evening)|greetings)\b",), _greeting),
        ((r"\b(thanks|thank you|cheers)\b",), _say("At your service.")),
        ((r"\b(bye|goodbye|good night|see you)\b",), _say("Sleep well, and mind the third step.")),
    )
]
