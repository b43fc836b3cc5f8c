"""A conversation belongs to whoever made it: for anybody else it looks exactly like one that does not exist."""

from typing import Any

import pytest

from frontdesk import ApiKeyAuth
from tests.scenarios.conversations.desk import AsyncGuest, build_counting, list_heard, open_client, user
from tests.scenarios.responses.desk import answers

ALICE, BOB = "the-key-of-alice", "the-key-of-bob-who-is-a-stranger"
NOBODYS = "conv_01a1de0ebdda27dff63ab5ee2ae40287"


def _auth() -> ApiKeyAuth:
    return ApiKeyAuth({"alice": ALICE, "bob": BOB})


def _calls(conversation_id: str, item_id: str) -> list[tuple[str, str, Any]]:
    """Every request that can name a conversation."""
    path = f"/v1/conversations/{conversation_id}"
    return [
        ("GET", path, None),
        ("POST", path, {"metadata": {"mine": "now"}}),
        ("GET", f"{path}/items", None),
        ("GET", f"{path}/items?after={item_id}", None),
        ("POST", f"{path}/items", {"items": [user("planted")]}),
        ("GET", f"{path}/items/{item_id}", None),
        ("DELETE", f"{path}/items/{item_id}", None),
        ("DELETE", path, None),
        ("POST", "/v1/responses", {"input": "hello", "conversation": conversation_id}),
        ("POST", "/v1/responses", {"input": "hello", "conversation": {"id": conversation_id}, "stream": True}),
        ("POST", "/v1/responses", {"input": "hello", "conversation": conversation_id, "background": True}),
        ("POST", "/v1/responses", {"input": "hello", "conversation": conversation_id, "store": False}),
        ("POST", "/v1/responses", {"input": [{"id": item_id}], "conversation": conversation_id}),
    ]


@pytest.mark.parametrize("known", [True, False])
async def test_anothers_conversation_looks_like_none_on_every_route(known: bool) -> None:
    target = build_counting()
    async with open_client(target, auth=_auth()) as desk:
        alice, bob = AsyncGuest(desk, ALICE), AsyncGuest(desk, BOB)
        if known:
            await bob.do("conversations.create")
        made = await alice.do("conversations.create", items=[user("secret")])
        (item,) = await alice.items(made.id)
        written = len(desk.ledger.writes)
        theirs = await answers(desk, BOB, _calls(made.id, item.id))
        nobodys = await answers(desk, BOB, _calls(NOBODYS, item.id))
        assert {status for status, _ in theirs} == {404}
        assert theirs == nobodys
        assert len(desk.ledger.writes) == written
        assert await alice.do("conversations.retrieve", made.id) == made
        await alice.ask("mine", made.id)
        assert list_heard(target) == ["secret", "mine"]


async def test_without_a_key_nobody_comes_in() -> None:
    async with open_client(build_counting(), auth=_auth()) as desk:
        for method, path, body in [*_calls(NOBODYS, "msg_1")[:8], ("POST", "/v1/conversations", {})]:
            refused = await desk.http.request(method, path, json=body)
            assert refused.status_code == 401, path
            assert refused.json()["error"]["type"] == "authentication_error"
        assert desk.untouched()


async def test_a_page_of_another_origin_changes_nothing() -> None:
    async with open_client(build_counting()) as desk:
        made = (await desk.http.post("/v1/conversations", json={})).json()["id"]
        calls = [*_calls(made, "msg_1")[:8], ("POST", "/v1/conversations", {})]
        for method, path, body in calls:
            refused = await desk.http.request(method, path, json=body, headers={"origin": "https://evil.example"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_refused"), path
        assert (await desk.http.get(f"/v1/conversations/{made}")).status_code == 200
