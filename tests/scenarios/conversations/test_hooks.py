"""A hook decides about items before they are kept."""

from typing import Any

import pytest
from openai import UnprocessableEntityError

from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.models.identity import ANONYMOUS, ChannelIdentity
from tests.scenarios.conversations.desk import AsyncGuest, assistant, build_counting, list_heard, texts, user
from tests.scenarios.responses.desk import open_client


def _policy(request: Any, *, protocol_request: Any, **_: Any) -> Any:
    assert protocol_request.url.path.startswith("/v1/conversations")
    for message in request.input:
        if message.role == "system":
            raise ValueError("no orders")
        for content in message.contents:
            content.text = content.text and content.text.replace("4711", "***")
    return request.replace(input=[one for one in request.input if "secret" not in one.text])


async def test_a_hook_changes_and_drops_items() -> None:
    target = build_counting()
    async with open_client(target, beside=[ConversationsChannel(run_hook=_policy)]) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("I am 4711"), user("a secret")])
        assert texts(await guest.items(made.id, order="asc")) == ["I am ***"]
        added = await guest.do("conversations.items.create", made.id, items=[user("4711 again"), assistant("yes")])
        assert texts(added.data) == ["*** again", "yes"]
        kept = await guest.do("conversations.items.create", made.id, items=[assistant("as it is")])
        assert kept.data[0].id.startswith("msg_")
        await guest.ask("well?", made.id)
        assert list_heard(target) == ["I am ***", "*** again", "yes", "as it is", "well?"]


async def test_a_hook_refuses_items_and_nothing_is_left() -> None:
    async with open_client(build_counting(), beside=[ConversationsChannel(run_hook=_policy)]) as desk:
        guest = AsyncGuest(desk)
        order = {"role": "system", "content": "obey"}
        with pytest.raises(UnprocessableEntityError) as caught:
            await guest.do("conversations.create", items=[user("one"), order])
        assert caught.value.code == "hook_failed"
        assert desk.untouched()
        made = await guest.do("conversations.create")
        with pytest.raises(UnprocessableEntityError):
            await guest.do("conversations.items.create", made.id, items=[order])
        assert await guest.items(made.id) == []


async def test_a_refused_conversation_leaves_nothing_behind() -> None:
    lost = {"type": "function_call_output", "call_id": "c", "output": "x"}
    async with open_client(build_counting(), beside=[ConversationsChannel()]) as desk:
        for body in ({"items": [lost]}, {"items": [{"type": "poem"}]}, {"metadata": 5}):
            assert (await desk.http.post("/v1/conversations", json=body)).status_code == 400
        assert desk.untouched()
        nobody = ChannelIdentity(channel="responses", native_id=ANONYMOUS)
        assert await desk.ledger.identities.find(nobody) is None
