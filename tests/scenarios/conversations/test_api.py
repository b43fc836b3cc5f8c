"""Conversations and their items, as the clients of the API know them."""

from typing import Any

import pytest
from openai import BadRequestError, NotFoundError

from tests.scenarios.conversations.desk import AsyncGuest, assistant, build_counting, open_client, texts, user
from tests.scenarios.responses.cast import Till

PICTURE = "data:image/png;base64,QUJD"
FILE_ID = {"type": "input_image", "file_id": "f"}
NOBODYS = "conv_01a1de0ebdda27dff63ab5ee2ae40287"


async def test_a_conversation_from_its_beginning_to_its_end(guest_of: Any) -> None:
    async with open_client(build_counting()) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create", metadata={"topic": "tea"})
        assert made.id.startswith("conv_")
        assert (made.object, made.metadata) == ("conversation", {"topic": "tea"})
        assert await guest.do("conversations.retrieve", made.id) == made
        changed = await guest.do("conversations.update", made.id, metadata={"topic": "milk", "more": "yes"})
        assert changed.metadata == {"topic": "milk", "more": "yes"}
        assert changed.created_at == made.created_at
        assert await guest.do("conversations.retrieve", made.id) == changed
        gone = await guest.do("conversations.delete", made.id)
        assert (gone.id, gone.deleted, gone.object) == (made.id, True, "conversation.deleted")
        for name in ("retrieve", "delete"):
            with pytest.raises(NotFoundError):
                await guest.do(f"conversations.{name}", made.id)


async def test_nothing_need_be_said_of_a_conversation() -> None:
    async with open_client(build_counting()) as desk:
        for body in (b"", b"{}", b'{"items": null, "metadata": null}'):
            answer = await desk.http.post("/conversations", content=body)
            assert answer.status_code == 200
            assert answer.json()["metadata"] == {}
        one = answer.json()["id"]
        assert (await desk.http.post(f"/conversations/{one}", json={"metadata": None})).json()["metadata"] == {}
        assert (await desk.http.get(f"/conversations/{one}/items")).json() == {
            "object": "list",
            "data": [],
            "first_id": None,
            "last_id": None,
            "has_more": False,
        }


async def test_items_are_added_read_and_taken_away(guest_of: Any) -> None:
    async with open_client(build_counting()) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create", items=[user("one"), assistant("two")])
        added = await guest.do("conversations.items.create", made.id, items=[user("three"), user("four")])
        assert texts(added.data) == ["three", "four"]
        assert (added.first_id, added.last_id, added.has_more) == (added.data[0].id, added.data[1].id, False)
        items = await guest.items(made.id, order="asc")
        assert texts(items) == ["one", "two", "three", "four"]
        assert len({one.id for one in items}) == 4
        assert texts(await guest.items(made.id)) == ["four", "three", "two", "one"]
        assert await guest.do("conversations.items.retrieve", items[1].id, conversation_id=made.id) == items[1]
        left = await guest.do("conversations.items.delete", items[1].id, conversation_id=made.id)
        assert left == made
        assert texts(await guest.items(made.id, order="asc")) == ["one", "three", "four"]
        for name in ("retrieve", "delete"):
            with pytest.raises(NotFoundError):
                await guest.do(f"conversations.items.{name}", items[1].id, conversation_id=made.id)


async def test_every_kind_of_item_that_a_client_can_have(guest_of: Any) -> None:
    kinds: list[Any] = [
        {"role": "developer", "content": "be brief"},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": PICTURE}],
        },
        {"role": "user", "content": [{"type": "input_file", "file_data": "QUJD", "filename": "a.pdf"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "x",
        },
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "a cat"},
        {"type": "mcp_approval_request", "id": "q", "name": "pay", "arguments": "{}", "server_label": "Concierge"},
        {"type": "mcp_approval_response", "approval_request_id": "q", "approve": True},
        {"type": "mcp_call", "id": "m", "name": "add", "arguments": "{}", "server_label": "Concierge"},
        {"type": "image_generation_call", "id": "i", "result": "QUJD", "status": "completed"},
        assistant("done"),
    ]
    async with open_client(build_counting()) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create", items=kinds)
        items = await guest.items(made.id, order="asc", limit=3)
        assert [one.type for one in items] == [one.get("type", "message") for one in kinds]
        assert [one.id for one in items if one.id in ("rs_1", "q", "m", "i")] == []
        assert items[3].encrypted_content is None
        shown = await guest.items(made.id, order="asc", include=["reasoning.encrypted_content"])
        assert shown[3].encrypted_content == "x"
        one = await guest.do(
            "conversations.items.retrieve",
            items[3].id,
            conversation_id=made.id,
            include=["reasoning.encrypted_content"],
        )
        assert one.encrypted_content == "x"


async def test_pages_lead_through_all_items_both_ways(guest_of: Any) -> None:
    words = [f"word {number}" for number in range(45)]
    async with open_client(build_counting()) as desk:
        guest = guest_of(desk)
        made = await guest.do("conversations.create", items=[user(one) for one in words[:20]])
        for start in (20, 40):
            more = [user(one) for one in words[start : start + 20]]
            await guest.do("conversations.items.create", made.id, items=more)
        for limit in (1, 7, 20, 44, 45, 100):
            assert texts(await guest.items(made.id, order="asc", limit=limit)) == words
            assert texts(await guest.items(made.id, order="desc", limit=limit)) == words[::-1]
        first = (await desk.http.get(f"/v1/conversations/{made.id}/items")).json()
        assert (len(first["data"]), first["has_more"]) == (20, True)
        items = await guest.items(made.id, order="asc")
        assert texts(await guest.items(made.id, order="asc", after=items[42].id)) == words[43:]
        assert texts(await guest.items(made.id, order="desc", after=items[2].id)) == words[1::-1]


BAD: list[tuple[str, Any, str | None]] = [
    ("", {"items": [user("x")] * 21}, "items"),
    ("", {"items": ["x"]}, "items[0]"),
    ("", {"items": [{"type": "message", "role": "user"}]}, "items[0].content"),
    ("", {"items": [user("x"), {"type": "poem"}]}, "items[1].type"),
    ("", {"items": [{"type": "item_reference", "id": "msg_1"}]}, "items[0].type"),
    ("", {"items": [{"role": "user", "content": [FILE_ID]}]}, "items[0].content[0].file_id"),
    ("", {"items": [{"type": "function_call", "call_id": "c", "name": "pay", "arguments": "{}"}]}, "items[0].name"),
    ("", {"items": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "items"),
    ("", {"metadata": {f"key {number}": "x" for number in range(17)}}, "metadata"),
    ("", {"metadata": {"k" * 65: "x"}}, "metadata"),
    ("", {"metadata": {"k": "x" * 513}}, "metadata.k"),
    ("", {"metadata": {"k": 5}}, "metadata.k"),
    ("", {"metadata": []}, "metadata"),
    ("", [], None),
    ("/{}", {}, None),
    ("/{}", {"metadata": {"k": "x" * 513}}, "metadata.k"),
    ("/{}/items", {}, None),
    ("/{}/items", {"items": []}, "items"),
    ("/{}/items", {"items": [user("x")] * 21}, "items"),
    ("/{}/items", {"items": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "items"),
    ("/{}/items?include=everything", {"items": [user("x")]}, "include"),
]  # fmt: skip


async def test_whatever_is_wrong_is_named() -> None:
    async with open_client(Till().agent(["never"])) as desk:
        made = (await desk.http.post("/v1/conversations", json={})).json()["id"]
        for path, body, param in BAD:
            refused = await desk.http.post("/v1/conversations" + path.format(made), json=body)
            error = refused.json()["error"]
            assert (refused.status_code, error["type"]) == (400, "invalid_request_error"), (body, error)
            assert error["param"] == param, (body, error)
        for query in ("limit=0", "limit=101", "limit=x", "limit=", "order=up", "include=x", "include[]=x"):
            refused = await desk.http.get(f"/v1/conversations/{made}/items?{query}")
            assert refused.status_code == 400
            assert refused.json()["error"]["param"] == query.partition("=")[0].removesuffix("[]")
        assert (await desk.http.get(f"/v1/conversations/{made}/items")).json()["data"] == []


async def test_what_does_not_exist_is_not_found() -> None:
    async with open_client(build_counting()) as desk:
        made = (await desk.http.post("/v1/conversations", json={"items": [user("x")]})).json()["id"]
        calls = [
            ("GET", f"/v1/conversations/{NOBODYS}", None),
            ("POST", f"/v1/conversations/{NOBODYS}", {"metadata": {}}),
            ("DELETE", f"/v1/conversations/{NOBODYS}", None),
            ("GET", f"/v1/conversations/{NOBODYS}/items", None),
            ("POST", f"/v1/conversations/{NOBODYS}/items", {"items": [user("x")]}),
            ("GET", f"/v1/conversations/{made}/items/msg_1", None),
            ("DELETE", f"/v1/conversations/{made}/items/msg_1", None),
            ("GET", f"/v1/conversations/{made}/items?after=msg_1", None),
            ("GET", f"/v1/conversations/{made}/other", None),
            ("GET", f"/conversations/{made}/items/x/y", None),
        ]
        for method, path, body in calls:
            answer = await desk.http.request(method, path, json=body)
            assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error"), path
        assert (await desk.http.put(f"/v1/conversations/{made}", json={})).status_code == 405
        assert (await desk.http.get("/v1/conversations/..%2Fx")).status_code in (400, 404)


async def test_a_call_and_its_output_may_come_one_after_the_other() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a cat"}
    async with open_client(build_counting()) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("look"), call])
        with pytest.raises(BadRequestError, match="call_1 is already used"):
            await guest.do("conversations.items.create", made.id, items=[call])
        await guest.do("conversations.items.create", made.id, items=[output])
        with pytest.raises(BadRequestError, match="No pending tool call"):
            await guest.do("conversations.items.create", made.id, items=[output])
        assert (await guest.ask("go on", made.id)).output_text == "4 heard"
        assert [one.type for one in await guest.items(made.id, order="asc")][:3] == [
            "message",
            "function_call",
            "function_call_output",
        ]
