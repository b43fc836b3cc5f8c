"""Whatever an agent says has its place in the answer: nothing is flattened to text that is more than text."""

from typing import Any

import pytest
from agent_framework import Content

from tests.channels.responses.contents import PIXEL
from tests.scenarios.responses.cast import Till, agent, build_answering, call
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

CITED: Any = {
    "type": "citation",
    "url": "https://example.com/menu",
    "title": "The menu",
    "annotated_regions": [
        {"type": "text_span", "start_index": 0, "end_index": 4},
        {"type": "text_span", "start_index": 5, "end_index": 9},
    ],
}
FILED: Any = {"type": "citation", "file_id": "file_1", "title": "menu.pdf"}


async def _both(said: list[Any], **body: Any) -> list[Any]:
    """The answer, whole and streamed."""
    async with open_client(build_answering(lambda _: said)) as desk:
        customer = AsyncCustomer(desk)
        return [await customer.create("?", **body), (await customer.stream("?", **body))[1]]


async def test_citations_are_annotations(customer_of: Any) -> None:
    said = [Content.from_text("soup "), Content.from_text("fish", annotations=[CITED, FILED])]
    async with open_client(build_answering(lambda _: said)) as desk:
        customer = customer_of(desk)
        events, final = await customer.stream("?")
        for response in (await customer.create("?"), final):
            (part,) = response.output[0].content
            assert part.text == "soup fish"
            urls = [(one.url, one.title, one.start_index, one.end_index) for one in part.annotations[:2]]
            assert urls == [("https://example.com/menu", "The menu", *place) for place in ((0, 4), (5, 9))]
            assert (part.annotations[2].file_id, part.annotations[2].filename) == ("file_1", "menu.pdf")
        added = [event.annotation_index for event in events if event.type.endswith("annotation.added")]
        assert added == [0, 1, 2]


async def test_thoughts_are_told_in_short(customer_of: Any) -> None:
    said = [Content.from_text_reasoning(text="let me "), Content.from_text_reasoning(text="think"), "well"]
    async with open_client(build_answering(lambda _: said)) as desk:
        customer = customer_of(desk)
        events, final = await customer.stream("?")
        for response in (await customer.create("?"), final):
            thought, message = response.output
            assert (thought.type, thought.summary[0].text, message.type) == ("reasoning", "let me think", "message")
            assert response.output_text == "well"
        deltas = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
        assert deltas == ["let me ", "think"]


async def test_two_thoughts_are_two_items() -> None:
    said = [Content.from_text_reasoning(id="r1", text="one"), Content.from_text_reasoning(id="r2", text="two")]
    for response in await _both(said):
        assert [item.summary[0].text for item in response.output] == ["one", "two"]


@pytest.mark.parametrize(("include", "sealed"), [(None, None), (["reasoning.encrypted_content"], "sealed")])
async def test_a_sealed_thought_is_handed_out_to_those_who_ask(include: Any, sealed: str | None) -> None:
    said = [Content.from_text_reasoning(text="hm", protected_data="sealed"), "well"]
    for response in await _both(said, **({} if include is None else {"include": include})):
        assert response.output[0].encrypted_content == sealed


async def test_a_thought_can_be_sent_back() -> None:
    said = [Content.from_text_reasoning(text="hm", protected_data="sealed"), "well"]
    target = build_answering(lambda _: said)
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        first = await customer.create("?", include=["reasoning.encrypted_content"], store=False)
        replay: list[Any] = [item.model_dump(exclude_none=True) for item in first.output]
        await customer.create([*replay, {"role": "user", "content": "and?"}], store=False)
        thought = target.client.seen[-1][0].contents[0]
        assert (thought.type, thought.text, thought.protected_data) == ("text_reasoning", "hm", "sealed")


async def test_what_it_cost_is_told_in_detail(customer_of: Any) -> None:
    usage: Any = {
        "input_token_count": 10,
        "output_token_count": 7,
        "total_token_count": 17,
        "cache_read_input_token_count": 4,
        "cache_creation_input_token_count": 3,
        "reasoning_output_token_count": 2,
    }
    async with open_client(build_answering(lambda _: ["hello", Content.from_usage(usage)])) as desk:
        customer = customer_of(desk)
        for response in (await customer.create("?"), (await customer.stream("?"))[1]):
            told = response.usage
            assert (told.input_tokens, told.output_tokens, told.total_tokens) == (10, 7, 17)
            assert (told.input_tokens_details.cached_tokens, told.input_tokens_details.cache_write_tokens) == (4, 3)
            assert told.output_tokens_details.reasoning_tokens == 2


async def test_the_cost_of_all_rounds_is_told() -> None:
    usage: Any = Content.from_usage({"input_token_count": 10, "output_token_count": 1})
    for stream in (False, True):
        async with open_client(Till().agent([call("add", a=1, b=2), usage], ["it is 3", usage])) as desk:
            customer = AsyncCustomer(desk)
            response: Any = (await customer.stream("?"))[1] if stream else await customer.create("?")
            assert (response.usage.input_tokens, response.usage.output_tokens) == (20, 2)
            assert response.usage.total_tokens == 22


async def test_without_a_count_there_is_none() -> None:
    for response in await _both(["hello"]):
        assert response.usage is None


async def test_pictures_files_and_addresses_have_their_places() -> None:
    said = [
        "see ",
        Content.from_uri(PIXEL, media_type="image/png"),
        Content.from_uri("https://example.com/a.pdf", media_type="application/pdf"),
        Content.from_hosted_file("file_1", name="b.txt"),
        Content.from_data(b"RIFF", "audio/wav"),
    ]
    for response in await _both(said):
        text, picture, rest = response.output
        assert (text.content[0].text, picture.type) == ("see ", "image_generation_call")
        assert (picture.result, picture.status) == (PIXEL.partition("base64,")[2], "completed")
        address, file, sound = rest.content
        assert (address.text, address.annotations[0].url) == (("https://example.com/a.pdf",) * 2)
        assert (file.text, file.annotations[0].filename) == ("file_1", "b.txt")
        assert sound.text.startswith("data:audio/wav;base64,")


async def test_the_last_draft_of_a_picture_counts() -> None:
    drafts = [
        Content.from_image_generation_tool_result(
            image_id="i", outputs=Content.from_uri(f"data:image/png;base64,{data}", media_type="image/png")
        )
        for data in ("ZHJhZnQ=", "ZG9uZQ==")
    ]
    for response in await _both([Content.from_image_generation_tool_call(image_id="i"), *drafts, "done"]):
        picture, message = response.output
        assert (picture.result, message.type) == ("ZG9uZQ==", "message")


@pytest.mark.parametrize("phase", ["commentary", "final_answer"])
async def test_a_phase_is_told(phase: str) -> None:
    said = [Content.from_text(word, additional_properties={"phase": phase}) for word in ("one ", "two")]
    for response in await _both(said):
        assert (response.output[0].phase, response.output_text) == (phase, "one two")


async def test_a_hook_changes_what_is_shown_whole_and_in_pieces() -> None:
    def shout(update: Any) -> Any:
        for content in update.contents:
            content.text = (content.text or "").upper()
        return update

    def shout_all(hosted: Any, **_: Any) -> Any:
        for message in hosted.result.messages:
            for content in message.contents:
                content.text = (content.text or "").upper()
        return hosted

    async with open_client(
        agent(["hello ", "you"], ["hello ", "you"]), response_hook=shout_all, stream_transform_hook=shout
    ) as desk:
        customer = AsyncCustomer(desk)
        assert (await customer.create("?")).output_text == "HELLO YOU"
        assert (await customer.stream("?"))[1].output_text == "HELLO YOU"
