"""The answer of a background run is shown while it is written too, where it goes back to the chat that asked."""

from collections.abc import Callable
from typing import Any

import pytest

from frontdesk import ChannelRequest
from frontdesk.delivery.proactive import WORK_GOES_ON
from frontdesk_testing import GatedAgent
from frontdesk_testing.internals import get_store
from tests.scenarios.messages.test_live import live_chat, methods, wait_for_ends, wait_for_texts

NOTICE = f"{WORK_GOES_ON} /cancel stops it."


def later(**changes: Any) -> Callable[..., ChannelRequest]:
    """Return a hook that puts runs into the background."""

    def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        return request.replace(background=True, **changes)

    return hook


def louder(update: Any, **_: Any) -> Any:
    for content in update.contents:
        content.text = (content.text or "").upper()
    return update


@pytest.mark.parametrize("changes", [{}, {"stream": True}])
@pytest.mark.parametrize("hook", [None, louder])
async def test_a_message_grows_and_the_answer_replaces_it(changes: dict[str, Any], hook: Any) -> None:
    agent = GatedAgent()
    async with live_chat(agent, run_hook=later(**changes), stream_transform_hook=hook) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two")
        said = ("one ", "one two") if hook is None else ("ONE ", "ONE TWO")
        _, first = await wait_for_texts(chat, ada, NOTICE, said[0])
        agent.release.set()
        _, last = await wait_for_texts(chat, ada, NOTICE, said[1])
        assert last.message_id == first.message_id
        await wait_for_ends(chat, 2)
        assert methods(chat).count("send") == 2
        (delivery,) = [row for row in await get_store(chat.host).outbox.find() if row.replaces is not None]
        live = await get_store(chat.host).live.get(delivery.run_id, "messages", ada.user_id)
        assert live is not None
        assert (live.state, live.handles) == ("closed", (first.message_id,))


@pytest.mark.parametrize("settings", [{"live": "off"}, {"response_hook": lambda result, *, context: result}])
async def test_where_nothing_is_shown(settings: dict[str, Any]) -> None:
    agent = GatedAgent()
    async with live_chat(agent, run_hook=later(), **settings) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two")
        await agent.started.wait()
        agent.release.set()
        await wait_for_texts(chat, ada, NOTICE, "one two")
        await wait_for_ends(chat, 2)
        assert methods(chat) == ["send", "send"]


@pytest.mark.parametrize("changes", [{}, {"stream": True}])
async def test_what_is_cancelled_says_nothing_more(changes: dict[str, Any]) -> None:
    agent = GatedAgent()
    async with live_chat(agent, run_hook=later(**changes)) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two")
        await wait_for_texts(chat, ada, NOTICE, "one ")
        await chat.platform.say(ada, "/cancel")
        await chat.platform.wait_for_answers(ada.chat_id, 3)
        agent.release.set()
        await wait_for_ends(chat, 3)
        said = [message.text for message in await chat.platform.answers(ada.chat_id)]
        assert said[:2] == [NOTICE, "one "]
        settled = [row.action for row in await get_store(chat.host).outbox.find() if row.replaces is not None]
        assert settled == ["settle"]
