"""The demo host: one agent with three tools on five channels, and a restaurant workflow."""

import asyncio
import json
import re
import struct
import sys
import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from agent_framework import (
    Agent,
    Annotation,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    UsageDetails,
)

from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.demo.stories import HOURS, PRICES, Hotel, list_tools, offer, restaurant
from frontdesk.errors.base import install_hint
from frontdesk.host import AgentFrameworkHost
from frontdesk.host.config import openai_settings
from frontdesk.ids import Ids, RandomIds
from frontdesk.interfaces.channel import Channel

TABLE: Final = (
    "The restaurant has a desk of its own, and asks with a form: its page is at /restaurant/chat, beside this one."
)

SIGHTS: Final = """\
Three things are worth a walk:

1. **The lighthouse** on the point: 142 steps, and a keeper who counts them aloud.
2. **The orchard of bitter oranges**, without which there would be no marmalade, and no Marmalade.
3. **The harbour museum**, open whenever its cat is in."""
SIGHT_SOURCES: Final[Mapping[str, str]] = {
    "The lighthouse: opening days and steps": "https://lighthouse.example/visit",
    "Bitter oranges of the bay": "https://orchard.example/history",
    "The harbour museum (and its cat)": "https://museum.example/",
}

STORY: Final = """\
# The story of the house

The Marmalade was built in **1871** as a jam factory. The smell has never quite left the attic, and guests on the top \
floor dream of breakfast.

## How it became a hotel

- In 1904 a storm took the chimney, and the boiling stopped.
- In 1911 the owner's sister, *Augusta*, let the first room to a painter who could not pay. His picture of the boat \
still hangs above the desk.
- In 1962 the clock above the desk stopped. It was asked to go on, and declined.

## The rooms, then and now

| room | was once | costs a night |
| --- | --- | --- |
| attic | the sugar store | 80 euros |
| garden | the cart shed | 110 euros |
| sea view | the tasting room | 150 euros |

## The recipe

Augusta wrote it down for the cook, who was an engineer:

```python
oranges, sugar, hours = 12, 2.5, 3
while hours > 0:
    stir(oranges, sugar)
    hours -= 0.25
```

> Marmalade is patience with a spoon in it.

That is all that is known for certain. The rest is told at the bar, from five o'clock on."""


WIDTH, HEIGHT = 480, 270
_HORIZON = 150
_SUN_X, _SUN_Y, _SUN_RADIUS = 350, 120, 34
_BOAT_X, _BOAT_Y, _SAIL = 150, 190, 60
_GROUND = 232

Colour = tuple[int, int, int]
_SKY: tuple[Colour, Colour] = ((255, 176, 92), (255, 232, 196))
_SEA: tuple[Colour, Colour] = ((70, 132, 158), (22, 62, 96))
_SUN, _SAIL_COLOUR, _HULL, _SAND = (255, 246, 214), (250, 248, 242), (122, 62, 38), (222, 190, 140)


@cache
def sea_view() -> bytes:
    """Return an image of a boat on the sea below the sun."""
    lines = b"".join(b"\x00" + _line(row) for row in range(HEIGHT))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _line(row: int) -> bytes:
    line = bytearray(bytes(_color_ground(row)) * WIDTH)
    for start, end, colour in _shapes(row):
        line[3 * start : 3 * end] = bytes(colour) * (end - start)
    return bytes(line)


def _color_ground(row: int) -> Colour:
    if row >= _GROUND:
        return _SAND
    if row < _HORIZON:
        return _between(*_SKY, row / _HORIZON)
    return _between(*_SEA, (row - _HORIZON) / (_GROUND - _HORIZON))


def _between(one: Colour, other: Colour, part: float) -> Colour:
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _shapes(row: int) -> list[tuple[int, int, Colour]]:
    """Return the shapes in a row of the image, each as start column, end column and colour."""
    shapes: list[tuple[int, int, Colour]] = []
    above = _SUN_RADIUS**2 - (row - _SUN_Y) ** 2
    if row < _HORIZON and above > 0:
        half = int(above**0.5)
        shapes.append((_SUN_X - half, _SUN_X + half, _SUN))
    if _HORIZON <= row < _GROUND and row % 9 < 2:
        half = 8 + (row * 7) % 30
        shapes.append((_SUN_X - half, _SUN_X + half, _between(_SUN, _color_ground(row), 0.55)))
    if _BOAT_Y - _SAIL <= row < _BOAT_Y:
        shapes.append((_BOAT_X, _BOAT_X + 1 + (row - _BOAT_Y + _SAIL) * 2 // 3, _SAIL_COLOUR))
    if _BOAT_Y <= row < _BOAT_Y + 12:
        inset = (row - _BOAT_Y) * 2
        shapes.append((_BOAT_X - 26 + inset, _BOAT_X + 50 - inset, _HULL))
    return shapes


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
    text: str
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    picture: bytes | None = None
    """A picture to send behind the text, as PNG."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """The sources of the text: titles, and their addresses."""


@dataclass(frozen=True)
class Talk:
    text: str
    before: Sequence[str]


def next_step(messages: Sequence[Message]) -> Step:
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
    """Return True if all patterns match in order, each after the previous match."""
    position = 0
    for pattern in patterns:
        match = pattern.search(text, position)
        if match is None:
            return False
        position = match.end()
    return True


def _new_results(messages: Sequence[Message]) -> list[Content]:
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


def _introduce(talk: Talk) -> Step:
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


def _greet(talk: Talk) -> Step:
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
        ((r"\b(my name is|i am called|call me) \w",), _introduce),
        ((r"\b(rooms?|price|prices|cost|costs|rates?)\b",), _rooms),
        (
            (r"\b(help|what can you do|who are you|what are you)\b",),
            _say(f"I am the concierge of the Marmalade. {HELP}"),
        ),
        ((r"^\W*(hi|hello|hey|good (day|morning|afternoon|evening)|greetings)\b",), _greet),
        ((r"\b(thanks|thank you|cheers)\b",), _say("At your service.")),
        ((r"\b(bye|goodbye|good night|see you)\b",), _say("Sleep well, and mind the third step.")),
    )
]


MODEL = "marmalade-script"
_WORDS = re.compile(r"\S++\s*+")


class ScriptedClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Scripted chat client. `pause` is the delay between two words."""

    def __init__(self, *, pause: float = 0.02, ids: Ids | None = None) -> None:
        super().__init__()
        self._pause = pause
        self._ids = ids or RandomIds()

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        step = next_step(messages)
        usage = _usage(messages, step)
        if stream:
            return self._build_response_stream(self._words(step, usage))
        return self._whole(step, usage)

    async def _whole(self, step: Step, usage: UsageDetails) -> ChatResponse:
        text = [Content.from_text(step.text, annotations=_annotations(step))] if step.text else []
        message = Message("assistant", [*text, *_picture(step), *self._call(step)])
        return ChatResponse(messages=message, response_id=self._ids.new("resp"), model=MODEL, usage_details=usage)

    async def _words(self, step: Step, usage: UsageDetails) -> AsyncIterable[ChatResponseUpdate]:
        response, message = self._ids.new("resp"), self._ids.new("msg")
        words = [Content.from_text(word) for word in _WORDS.findall(step.text)]
        if words:
            words[-1].annotations = _annotations(step)
        for content in [*words, *_picture(step), *self._call(step), Content.from_usage(usage)]:
            yield ChatResponseUpdate(
                role="assistant", contents=[content], response_id=response, message_id=message, model=MODEL
            )
            await asyncio.sleep(self._pause)

    def _call(self, step: Step) -> list[Content]:
        if step.tool is None:
            return []
        arguments = json.dumps(dict(step.arguments))
        return [Content.from_function_call(self._ids.new("call"), step.tool, arguments=arguments)]


def _annotations(step: Step) -> list[Annotation] | None:
    return [Annotation(type="citation", title=title, url=url) for title, url in step.sources.items()] or None


def _picture(step: Step) -> list[Content]:
    if step.picture is None:
        return []
    named = {"filename": "sea-view.png"}
    return [Content.from_data(step.picture, media_type="image/png", additional_properties=named)]


def _usage(messages: Sequence[Message], step: Step) -> UsageDetails:
    read = sum(len(message.text.split()) for message in messages)
    written = len(step.text.split()) + len(step.arguments)
    return UsageDetails(input_token_count=read, output_token_count=written, total_token_count=read + written)


DEFAULT_MODEL = "gpt-4.1-mini"


@dataclass(frozen=True)
class Choice:
    client: Any
    note: str


def choose_client() -> Choice:
    """Return the client for the key in `OPENAI_API_KEY`, or the scripted one."""
    key, model = openai_settings()
    if key is None:
        return Choice(
            ScriptedClient(),
            "The model is a script: no key, no network. Set OPENAI_API_KEY to talk to a real one.",
        )
    client = _openai(key, model or DEFAULT_MODEL)
    if client is None:
        return Choice(
            ScriptedClient(),
            "OPENAI_API_KEY is set, but the package that uses it is missing, so the model is a script. To install it:\n"
            f"  {install_hint('openai', sys.executable)}",
        )
    return Choice(client, f"The model is {model or DEFAULT_MODEL} of OpenAI; OPENAI_MODEL chooses another.")


def _openai(key: str, model: str) -> Any:
    try:
        from agent_framework.openai import OpenAIChatClient  # pyright: ignore
    except ImportError:
        return None
    return OpenAIChatClient(model=model, api_key=key)  # pyright: ignore


INSTRUCTIONS = f"""\
You are the concierge of the Marmalade, a small hotel by the sea: warm, brief and a little old-fashioned.
Rooms and their price in euros a night: {", ".join(f"{kind} {price}" for kind, price in PRICES.items())}.
Use opening_hours for the hours of {", ".join(HOURS)}; calculate for every sum; book_room when a guest wants to book.
A person is asked before a booking is made, so call book_room without asking first."""

GREETING = "Good day. What can the Marmalade do for you?"
PROMPTS = (
    "When is breakfast?",
    "Book a sea view room for two nights",
    "Show me the view",
    "What is there to see nearby?",
    "Tell me the story of the house",
)


def build_host(
    client: Any = None, *, state_dir: str | Path | None = None, channels: Sequence[Channel] = ()
) -> AgentFrameworkHost:
    """Build the hotel's host with additional channels. The default chat client depends on the environment."""
    agent = Agent(
        choose_client().client if client is None else client,
        INSTRUCTIONS,
        name="Concierge",
        description="The concierge of the Marmalade, a small hotel by the sea.",
        tools=list_tools(Hotel()),
    )
    page = WebChatChannel(title="The Marmalade", greeting=GREETING, prompts=PROMPTS, tools="full")
    doors = [
        page,
        InvocationsChannel(),
        ResponsesChannel(),
        ChatCompletionsChannel(),
        ConversationsChannel(),
        *channels,
    ]
    return AgentFrameworkHost(agent, channels=doors, state_dir=state_dir, contributions=[restaurant(state_dir)])
