"""Scenario 8 of the design: ask here, get it there."""

from pathlib import Path
from typing import Any

import pytest

from frontdesk import ChannelIdentity, ChannelRequest, ResponseTarget
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.delivery.proactive import WORK_GOES_ON
from tests.scenarios.cast import echo
from tests.scenarios.delivery.chats import Holding
from tests.scenarios.delivery.house import open_house, sends_to
from tests.scenarios.desk import open_client, until

BEGUN = "You said: hello"
TOLD = f"{WORK_GOES_ON} /cancel stops it."


def later(target: ResponseTarget) -> Any:
    """The hook of the scenario; greetings are answered where they are said."""
    send = sends_to(target, background=True)

    def hook(request: ChannelRequest, **more: Any) -> Any:
        return request if request.input == "hello" else send(request, **more)

    return hook


async def test_a_person_asks_here_goes_there_and_is_answered_there(tmp_path: Path) -> None:
    agent, question = Holding(), "count the rooms"
    hooks = {"a": later(ResponseTarget.active)}
    async with open_house(tmp_path, chats=("a", "b"), chat_hooks=hooks, target=agent) as house:
        here = await house.platforms["a"].user("Ann", user_id="ann")
        there = await house.platforms["b"].user("Ann", user_id="ann")
        await house.platforms["a"].say(here, question)
        assert await house.wait_for_answers("a", here, 1) == [TOLD]
        await agent.begins(question)
        await house.platforms["b"].say(there, "hello")
        assert await house.wait_for_answers("b", there, 1) == ["hello"]
        agent.release(question)
        assert await house.wait_for_answers("b", there, 2) == ["hello", question]
        # Both conversations are one.
        await house.platforms["b"].say(there, "and now?")
        assert await house.wait_for_answers("b", there, 3) == ["hello", question, "and now?"]
        assert agent.list_heard("and now?") == ["hello", "hello", question, question, "and now?"]
        assert await house.wait_for_answers("a", here, 1) == [TOLD]


async def test_active_is_a_value_and_a_person_who_never_left_is_answered_here(tmp_path: Path) -> None:
    async with open_house(tmp_path, chats=("a", "b"), chat_hooks={"a": later(ResponseTarget.active)}) as house:
        ann = await house.meet("a", "Ann", "ann")
        await house.platforms["a"].say(ann, "count the rooms")

        async def answered() -> bool:
            said = [one.text for one in await house.platforms["a"].answers(ann.chat_id)]
            return said == [BEGUN, TOLD, "You said: count the rooms"]

        await until(answered)


@pytest.mark.parametrize("target", [ResponseTarget.channel("b"), ResponseTarget.all_linked], ids=["channel", "all"])
async def test_the_answer_goes_to_the_other_chat(tmp_path: Path, target: ResponseTarget) -> None:
    async with open_house(tmp_path, chats=("a", "b"), chat_hooks={"a": later(target)}) as house:
        there = await house.meet("b", "Ann", "ann")
        here = await house.meet("a", "Ann", "ann")
        await house.platforms["a"].say(here, "count the rooms")
        assert await house.wait_for_answers("b", there, 2) == [BEGUN, "You said: count the rooms"]
        (sent,) = [
            one for one in await house.wait_for_ends("b") if one.run_id and one.payload["text"].endswith("rooms")
        ]
        run = await house.store.runs.get("person ann", sent.run_id)
        assert run is not None
        assert (run.status, run.background) == ("completed", True)


async def test_a_destination_that_can_not_push_falls_back_to_the_origin_and_that_is_recorded(tmp_path: Path) -> None:
    hook = {"a": later(ResponseTarget.channel("invocations"))}
    async with open_house(tmp_path, chats=("a",), chat_hooks=hook) as house:
        ann = await house.meet("a", "Ann", "ann")
        await house.platforms["a"].say(ann, "count the rooms")

        async def answered() -> bool:
            return (await house.platforms["a"].answers(ann.chat_id))[-1].text == "You said: count the rooms"

        await until(answered)
        (run_id,) = {one.run_id for one in await house.wait_for_ends("a") if one.payload["text"].endswith("rooms")}
        run = await house.store.runs.get("person ann", run_id)
        assert run is not None
        assert run.session_id is not None
        messages = await house.store.sessions.history("person ann", run.session_id)
        hosting = messages[-1].additional_properties["hosting"]
        assert (hosting["fallback"], hosting["includes_originating"]) == (True, True)


async def test_what_goes_to_nobody_is_polled_by_its_token() -> None:
    ann = ChannelIdentity("invocations", "ann")
    async with open_client(echo, InvocationsChannel()) as desk:
        request = ChannelRequest(channel="invocations", input="count", response_target=ResponseTarget.none)
        token = await desk.host.run_in_background(request, identity=ann)

        async def done() -> bool:
            return (await desk.host.get_continuation(token, identity=ann)).status == "completed"

        await until(done)
        assert (await desk.host.get_continuation(token, identity=ann)).result.text == "you said count"


async def test_the_asker_over_http_gets_the_means_to_poll_and_to_cancel() -> None:
    hook = sends_to(ResponseTarget.none)
    async with open_client(echo, InvocationsChannel(run_hook=hook)) as desk:
        queued = await desk.ask("count")
        assert (queued.status_code, queued.json()["status"]) == (202, "queued")
        assert (await desk.wait_for_end(queued.json()["id"]))["text"] == "you said count"
        assert (await desk.cancel(queued.json()["id"])).json()["status"] == "completed"
