"""Responses that belong to a conversation."""

import asyncio
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError

from frontdesk_testing import GatedAgent
from tests.scenarios.conversations.desk import (
    MODEL,
    AsyncGuest,
    assistant,
    build_counting,
    list_heard,
    open_client,
    texts,
    user,
)
from tests.scenarios.desk import until
from tests.scenarios.responses.cast import Till, agent, build_answering, call, parrot

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize("stream", [False, True])
async def test_what_was_said_and_answered_is_in_the_conversation(guest_of: Any, stream: bool) -> None:
    target = parrot()
    async with open_client(target) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create", items=[user("before")])
        for word, name in (("one", made.id), ("two", {"id": made.id})):
            answer = await (guest.stream(word, name) if stream else guest.ask(word, name))
            assert answer.conversation.id == made.id
            assert answer.previous_response_id is None
            assert (await guest.do("responses.retrieve", answer.id)).conversation.id == made.id
        assert list_heard(target) == ["before", "one", "you said one", "two"]
        items = await guest.items(made.id, order="asc", limit=2)
        assert texts(items) == ["before", "one", "you said one", "two", "you said two"]
        assert items[-1].id == answer.output[0].id
        assert items[-1] == await guest.do("conversations.items.retrieve", items[-1].id, conversation_id=made.id)


async def test_without_a_conversation_the_response_says_so(guest_of: Any) -> None:
    async with open_client(parrot()) as desk:
        answer = await guest_of(desk).do("responses.create", model=MODEL, input="hello")
        assert answer.conversation is None


async def test_items_of_every_kind_are_added_in_their_order() -> None:
    target = agent(["let me see", call("look")], ["a cat, then"])
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        said = [{"role": "developer", "content": "be brief"}, {**user("what is there?"), "id": "msg_mine"}]
        first = await guest.ask(said, made.id, tools=[LOOK])
        output = {"type": "function_call_output", "call_id": "call_1", "output": "a cat"}
        await guest.ask([output, user("well?")], made.id)
        items = await guest.items(made.id, order="asc")
        kinds = ["message", "message", "message", "function_call", "function_call_output", "message", "message"]
        assert [one.type for one in items] == kinds
        assert texts(items) == ["be brief", "what is there?", "let me see", "well?", "a cat, then"]
        assert [one.id for one in items[2:4]] == [one.id for one in first.output]
        assert items[1].id != "msg_mine"
        # The client's own id stays on the response.
        assert (await guest.do("responses.input_items.list", first.id)).data[0].id == "msg_mine"


async def test_items_of_the_api_are_what_the_agent_hears() -> None:
    target = build_counting()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("one"), assistant("two")])
        await guest.ask("three", made.id)
        assert list_heard(target) == ["one", "two", "three"]
        await guest.do("conversations.items.create", made.id, items=[user("five"), assistant("six")])
        await guest.ask("seven", made.id)
        assert list_heard(target) == ["one", "two", "three", "3 heard", "five", "six", "seven"]
        items = await guest.items(made.id, order="asc")
        for gone in (items[0], items[3], items[5]):
            await guest.do("conversations.items.delete", gone.id, conversation_id=made.id)
        await guest.ask("eight", made.id)
        assert list_heard(target) == ["two", "three", "five", "seven", "7 heard", "eight"]
        await guest.do("conversations.items.create", made.id, items=[user("nine")])
        await guest.ask("ten", made.id)
        assert list_heard(target)[-4:] == ["eight", "6 heard", "nine", "ten"]
        assert list_heard(target) == texts(await guest.items(made.id, order="asc"))[:-1]


async def test_what_the_host_did_between_the_items_is_remembered() -> None:
    till = Till()
    target = till.agent([call("add", a=1, b=2)], ["three"], ["as I said"])
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        await guest.ask("how much?", made.id)
        await guest.do("conversations.items.create", made.id, items=[user("by the way")])
        await guest.ask("how much was it?", made.id)
        told = [one.type for message in target.client.seen[-1] for one in message.contents]
        assert told == ["text", "function_call", "function_result", "text", "text", "text"]
        assert texts(await guest.items(made.id, order="asc"))[:2] == ["how much?", "three"]


async def test_together_with_a_previous_response_it_is_an_error(guest_of: Any) -> None:
    async with open_client(parrot()) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create")
        first = await guest.ask("one", made.id)
        with pytest.raises(BadRequestError) as caught:
            await guest.ask("two", made.id, previous_response_id=first.id)
        assert caught.value.code == "mutually_exclusive_parameters"
        assert texts(await guest.items(made.id, order="asc")) == ["one", "you said one"]


@pytest.mark.parametrize("way", [{}, {"stream": True}, {"background": True}, {"store": False}])
async def test_an_unknown_or_deleted_conversation_is_not_found(way: dict[str, Any]) -> None:
    async with open_client(parrot()) as desk:
        guest = AsyncGuest(desk)
        with pytest.raises(NotFoundError) as caught:
            await guest.ask("hello", "conv_unknown", **way)
        assert caught.value.param == "conversation"
        assert desk.untouched()
        made = await guest.do("conversations.create")
        await guest.ask("hello", made.id)
        await guest.do("conversations.delete", made.id)
        with pytest.raises(NotFoundError):
            await guest.ask("hello", made.id, **way)
        assert len(desk.runs()) == 1


async def test_a_response_of_a_conversation_can_be_continued_apart_from_it() -> None:
    target = build_counting()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("zero")])
        first = await guest.ask("one", made.id)
        branch = await guest.do("responses.create", model=MODEL, input="apart", previous_response_id=first.id)
        assert list_heard(target) == ["zero", "one", "2 heard", "apart"]
        assert branch.conversation is None
        await guest.ask("two", made.id)
        assert list_heard(target) == ["zero", "one", "2 heard", "two"]
        items = await guest.items(made.id, order="asc")
        assert texts(items) == ["zero", "one", "2 heard", "two", "4 heard"]
        await guest.do("conversations.items.delete", items[1].id, conversation_id=made.id)
        last = await guest.ask("three", made.id)
        for before, words in (
            (branch.id, ["zero", "one", "2 heard", "apart", "4 heard", "on"]),
            (first.id, ["zero", "one", "2 heard", "on"]),
            (last.id, ["zero", "2 heard", "two", "4 heard", "three", "5 heard", "on"]),
        ):
            await guest.do("responses.create", model=MODEL, input="on", previous_response_id=before)
            assert list_heard(target) == words
        assert len(await guest.items(made.id)) == 6


async def test_a_turn_that_is_not_stored_hears_the_conversation_and_adds_nothing() -> None:
    target = build_counting()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        await guest.ask("nobody there", made.id, store=False)
        assert list_heard(target) == ["nobody there"]
        await guest.do("conversations.items.create", made.id, items=[user("one")])
        for _ in range(2):
            await guest.ask("aside", made.id, store=False)
            assert list_heard(target) == ["one", "aside"]
        await guest.ask("two", made.id)
        await guest.ask("aside", made.id, store=False)
        assert list_heard(target) == ["one", "two", "2 heard", "aside"]
        assert texts(await guest.items(made.id, order="asc")) == ["one", "two", "2 heard"]


async def test_a_failed_turn_leaves_its_question_in_both() -> None:
    def answer(messages: Any) -> Any:
        return [RuntimeError("no")] if messages[-1].text == "fail" else ["fine"]

    target = build_answering(answer)
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("one")])
        failed = await desk.http.post("/v1/responses", json={"input": "fail", "conversation": made.id})
        assert failed.json()["status"] == "failed"
        assert texts(await guest.items(made.id, order="asc")) == ["one", "fail"]
        await guest.ask("again", made.id)
        assert list_heard(target) == ["one", "fail", "again"]


async def test_a_background_response_adds_its_items_when_it_ends(guest_of: Any) -> None:
    async with open_client(parrot()) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create")
        queued = await guest.ask("hello", made.id, background=True)
        assert queued.conversation.id == made.id

        async def ended() -> bool:
            return (await guest.do("responses.retrieve", queued.id)).status == "completed"

        await until(ended)
        assert texts(await guest.items(made.id, order="asc")) == ["hello", "you said hello"]


async def test_a_background_stream_in_a_conversation(guest_of: Any) -> None:
    async with open_client(parrot()) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create", items=[user("before")])
        answer = await guest.stream("hello", made.id, background=True)
        assert (answer.status, answer.conversation.id) == ("completed", made.id)
        assert texts(await guest.items(made.id, order="asc")) == ["before", "hello", "you said hello"]


async def test_a_compaction_is_added_as_what_it_stands_for() -> None:
    async def summarise(messages: Any, **_: Any) -> str:
        return "they spoke of tea"

    target = build_counting()
    async with open_client(target, compactor=summarise) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("one")])
        compacted = await guest.do("responses.compact", model=MODEL, input=[user("tea?"), assistant("yes")])
        (stands,) = [one.model_dump(exclude_none=True) for one in compacted.output if one.type == "compaction"]
        await guest.ask([stands, user("go on")], made.id)
        before = list_heard(target)
        assert "they spoke of tea" in before[1]
        items = await guest.items(made.id, order="asc")
        await guest.do("conversations.items.delete", items[0].id, conversation_id=made.id)
        await guest.ask("and now?", made.id)
        assert list_heard(target) == [*before[1:], "3 heard", "and now?"]


async def test_a_deleted_item_was_compacted_with_the_rest() -> None:
    told: list[str] = []

    async def summarise(messages: Any, **_: Any) -> str:
        told.extend(message.text for message in messages)
        return "they spoke of tea"

    async with open_client(build_counting(), compactor=summarise) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("a secret"), user("tea?")])
        await guest.ask("one", made.id)
        items = await guest.items(made.id, order="asc")
        await guest.do("conversations.items.delete", items[0].id, conversation_id=made.id)
        last = await guest.ask("two", made.id)
        compacted = await guest.do("responses.compact", model=MODEL, previous_response_id=last.id)
        shown = [part.text for item in compacted.output if item.type == "message" for part in item.content]
        assert shown == ["tea?", "one", "two"]
        assert told == ["tea?", "one", "3 heard", "two", "4 heard"]


async def test_a_conversation_over_a_websocket() -> None:
    target = build_counting()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("one")])
        async with guest.api.responses.connect() as connection:
            for name, last in (
                (made.id, "response.completed"),
                ("conv_unknown", "error"),
                (made.id, "response.completed"),
            ):
                await connection.response.create(model=MODEL, input="go on", conversation=name)
                async for event in connection:
                    if event.type in ("response.completed", "error"):
                        break
                assert event.type == last
        assert list_heard(target) == ["one", "go on", "2 heard", "go on"]
        said = ["one", "go on", "2 heard", "go on", "4 heard"]
        assert texts(await guest.items(made.id, order="asc")) == said


async def test_an_item_of_the_conversation_can_be_referred_to() -> None:
    target = build_counting()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("one")])
        (item,) = await guest.items(made.id)
        await guest.ask([{"type": "item_reference", "id": item.id}], made.id)
        assert list_heard(target) == ["one", "one"]
        other = await guest.do("conversations.create")
        with pytest.raises(NotFoundError):
            await guest.ask([{"type": "item_reference", "id": item.id}], other.id)


async def test_turns_of_one_conversation_run_one_after_another_and_whole() -> None:
    target = build_counting()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")

        async def add(number: int) -> None:
            words = [user(f"added {number}"), user(f"too {number}")]
            await guest.do("conversations.items.create", made.id, items=words)

        turns = [guest.ask(f"turn {number}", made.id) for number in range(8)]
        await asyncio.gather(*turns, *(add(number) for number in range(4)))
        said = texts(await guest.items(made.id, order="asc"))
        assert len(said) == 24
        for place, words in enumerate(said):
            if words.startswith("turn"):
                assert said[place + 1] == f"{place + 1} heard"
            if words.startswith("added"):
                assert said[place + 1] == words.replace("added", "too")
        await guest.ask("last", made.id)
        assert list_heard(target) == [*said, "last"]


async def test_a_conversation_that_is_busy_too_long_is_a_conflict() -> None:
    target = GatedAgent()
    async with open_client(target, host_settings={"session_wait_seconds": 0.05}) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("one")])
        (item,) = await guest.items(made.id)
        running = asyncio.create_task(guest.ask("first", made.id))
        await target.started.wait()
        about = f"/v1/conversations/{made.id}/items"
        calls = [
            ("POST", "/v1/responses", {"input": "second", "conversation": made.id}),
            ("POST", "/v1/responses", {"input": "second", "conversation": made.id, "stream": True}),
            ("POST", about, {"items": [user("second")]}),
            ("DELETE", f"{about}/{item.id}", None),
        ]
        for method, path, body in calls:
            refused = await desk.http.request(method, path, json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_busy"), path
            assert int(refused.headers["retry-after"]) >= 1
        # Reading needs nobody's leave.
        assert texts(await guest.items(made.id)) == ["one"]
        target.release.set()
        await running
        assert len(await guest.items(made.id)) == 3


async def test_a_conversation_deleted_in_the_middle_of_a_turn_stays_deleted() -> None:
    target = GatedAgent()
    async with open_client(target, tapped=False) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        running = asyncio.create_task(guest.ask("first", made.id))
        await target.started.wait()
        waiting = asyncio.create_task(guest.ask("second", made.id))
        await until(lambda: len(desk.server.server_state.tasks) == 2)
        await guest.do("conversations.delete", made.id)
        target.release.set()
        assert (await running).status == "completed"
        with pytest.raises(NotFoundError):
            await waiting
        assert (await desk.http.get(f"/v1/conversations/{made.id}/items")).status_code == 404
