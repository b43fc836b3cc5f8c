"""An answer that is being written is rendered from the last message on that was sent."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from frontdesk.chat.growing import MAX_FREE_LENGTH, GrowingTexts
from frontdesk.chat.live_message import LiveMessage
from frontdesk.chat.messages import Destination, OutboundMessage
from frontdesk.chat.rendering import Renderer
from frontdesk.errors import PushError
from frontdesk.interfaces.chat import LivePlace, LiveView
from frontdesk.markdown import Entities, Mrkdwn, Plain, to_blocks
from frontdesk.models.identity import ChannelIdentity
from tests.examples import examples
from tests.markdown.samples import ANY_TEXTS, TEXTS, words

PLACE = LivePlace(identity=ChannelIdentity("messages", "ann"), conversation_id="ann")
RENDERERS = [
    Renderer(dialect=Plain(), limit=60),
    Renderer(dialect=Mrkdwn(), limit=60),
    Renderer(dialect=Entities(), limit=60, unit="utf16"),
    Renderer(dialect=Entities(), limit=60, unit="utf16", to_blocks=to_blocks),
    Renderer(dialect=None, limit=60),
]


class Counting(Renderer):
    """Notes the lengths of the texts that it renders."""

    rendered: ClassVar[list[int]] = []

    def render_growing(self, text: str) -> Any:
        self.rendered.append(len(text))
        return super().render_growing(text)


@examples(100)
@given(ANY_TEXTS, st.sampled_from(RENDERERS))
def test_a_growing_text_has_the_messages_of_an_unfinished_one(text: str, renderer: Renderer) -> None:
    assert [message for message, _ in renderer.render_growing(text)] == renderer.markdown(text, partial=True)


@examples(100)
@given(TEXTS, st.sampled_from(RENDERERS))
def test_the_messages_behind_a_place_can_be_rendered_from_there(text: str, renderer: Renderer) -> None:
    whole = renderer.render_growing(text)
    for number, (_, place) in enumerate(whole):
        if place:
            rest = renderer.render_growing(text[place:])
            # What is open at the end is guessed, and a guess can differ in its marks with what it has seen before.
            assert [words(message.text) for message, _ in rest] == [words(each.text) for each, _ in whole[number:]]


class Chat:
    """The messages of a chat, by their ids."""

    def __init__(self) -> None:
        self.messages: dict[str, OutboundMessage] = {}

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        name = str(len(self.messages) + 1)
        self.messages[name] = message
        return name

    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        self.messages[message_id] = message


async def stream(text: str, step: int, renderer: Renderer) -> AsyncIterator[tuple[str, Chat]]:
    """Show a text as it grows; yield what there is of it, and the chat, after each step."""
    chat = Chat()
    live = LiveMessage(chat, GrowingTexts(renderer), PLACE, Destination(chat_id="ann"))
    handles: tuple[str, ...] = ()
    shown = 0
    for end in range(step, len(text) + step, step):
        view = LiveView(text=text[:end], new_from=shown, sequence=end // step - 1)
        if not handles:
            opened = await live.open(view, "live")
            handles = () if opened is None else (opened,)
        else:
            handles = await live.update(handles, view)
        shown = len(view.text)
        yield view.text, chat


ANSWER = """# Notes

Some **bold** words, `code` and a [link](https://a.b/c). They go on for a while, so that there is more than one line.

- one
- two, with *more*

> A quote of a line.

```py
def f():
    return 1
```

|a|b|
|-|-|
|1|2|

The *end* of it.

"""


@pytest.mark.parametrize("renderer", RENDERERS, ids=["plain", "mrkdwn", "entities", "blocks", "as it is"])
async def test_a_streamed_answer_looks_as_if_it_were_rendered_as_a_whole(renderer: Renderer) -> None:
    renderer = replace(renderer, limit=160)
    async for text, chat in stream(ANSWER * 4, 37, renderer):
        whole = [structs.replace(message, live=True) for message in renderer.markdown(text, partial=True)]
        # Only the last message is changed.
        shown = [structs.replace(message, sequence=0) for message in chat.messages.values()]
        assert shown[-1:] == whole[-1:]
        assert len(chat.messages) == len(whole)


@pytest.mark.parametrize("to_blocks", [None, to_blocks])
async def test_the_whole_text_was_rendered_at_every_edit(to_blocks: Any) -> None:
    counting = Counting(dialect=Entities(), limit=4096, unit="utf16", to_blocks=to_blocks)
    counting.rendered.clear()
    text = "".join(f"## Part {number}\n\n{'A sentence that says something. ' * 12}\n\n" for number in range(200))
    edits = 0
    async for _, _ in stream(text, 500, counting):
        edits += 1
    assert len(text) > 70_000
    assert len(counting.rendered) == edits > 140
    # Never more than the last message, and what has come since.
    assert max(counting.rendered) < 4096 + 1000


async def test_an_answer_of_one_block_was_rendered_all_the_time() -> None:
    growing = GrowingTexts(Renderer(dialect=Entities(), limit=4096, unit="utf16"))
    text = "- a\n" * 10_000
    growing.note_sent(PLACE, text, await growing.render(PLACE, text, 0), 5)
    with pytest.raises(PushError) as paused:
        await growing.render(PLACE, text, 5)
    assert paused.value.retry_after is not None
    assert 5 < paused.value.retry_after < 7
    assert not paused.value.permanent
    assert not paused.value.unknown
    # Another answer does not wait for that, and small ones never wait.
    small = text[:MAX_FREE_LENGTH]
    growing.note_sent(PLACE, small, await growing.render(PLACE, small, 0), 1)
    await growing.render(PLACE, small, 1)


async def test_places_in_another_text_are_not_used() -> None:
    growing = GrowingTexts(Renderer(dialect=Entities(), limit=60, unit="utf16"))
    text = "A sentence of some words, and more of it.\n\n" * 4
    growing.note_sent(PLACE, text, await growing.render(PLACE, text, 0), 4)
    assert (await growing.render(PLACE, text, 4)).before == 3
    assert (await growing.render(PLACE, text.replace("A", "B"), 4)).before == 0


async def test_a_reference_to_an_earlier_definition_is_still_a_link() -> None:
    growing = GrowingTexts(Renderer(dialect=Entities(), limit=60, unit="utf16"))
    text = "[a]: https://a.b/c\n\n" + "A sentence of some words, and more of it.\n\n" * 4 + "See [the words][a]."
    growing.note_sent(PLACE, text, await growing.render(PLACE, text, 0), 5)
    assert (await growing.render(PLACE, text, 5)).messages[-1].entities[0].url == "https://a.b/c"
