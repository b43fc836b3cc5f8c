"""Answers that go where the person is."""

import re
from pathlib import Path
from typing import Any

import pytest

from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import ChannelRequest, ChannelSession
from frontdesk.models.result import HostedRunResult
from frontdesk.models.session import SessionName
from tests.scenarios.delivery.house import open_house, person, sends_to

ANN = ChannelIdentity(channel="chat", native_id="ann")
ANONYMOUS = ChannelIdentity(channel="invocations", native_id="anonymous")


def name_by_backend(request: ChannelRequest, **_: Any) -> ChannelRequest:
    """A trusted backend says in its body for whom it speaks."""
    user = request.metadata.get("user")
    if user is None:
        return request
    who = ChannelIdentity(channel="chat", native_id=user)
    session = ChannelSession(isolation_key=person(who))
    return request.replace(identity=who, session=session, response_target=ResponseTarget.identity(who))


async def test_a_trusted_backend_has_the_answer_pushed_to_a_users_chat(tmp_path: Path) -> None:
    async with open_house(tmp_path, hook=name_by_backend) as house:
        ann = await house.meet("chat", "Ann", "ann")
        answered = await house.client.http.post(
            "/invocations", json={"message": "your table is free", "metadata": {"user": "ann"}}
        )
        assert answered.status_code == 202, answered.text
        assert "You said" not in answered.text
        assert await house.wait_for_answers("chat", ann, 2) == ["You said: hello", "You said: your table is free"]
        # It is part of her conversation, with where it was meant to go.
        name = SessionName(owner=person(ANN), kind="tracked")
        session = await house.store.sessions.find(name)
        assert session is not None
        messages = await house.store.sessions.history(person(ANN), session.session_id)
        assert [one.text for one in messages][2:] == ["your table is free", "You said: your table is free"]
        hosting = messages[-1].additional_properties["hosting"]
        assert hosting["originating_channel"] == "invocations"
        assert hosting["includes_originating"] is False
        assert hosting["intended_targets"] == [{"channel": "chat", "native_id": "ann"}]


async def test_a_background_job_ends_on_another_channel(tmp_path: Path) -> None:
    hook = sends_to(ResponseTarget.channel("chat"), background=True)
    async with open_house(tmp_path, hook=hook) as house:
        me = await house.meet("chat", "Me", "anonymous")
        answered = await house.client.http.post("/invocations", json={"message": "count the rooms"})
        assert answered.status_code == 202
        assert await house.wait_for_answers("chat", me, 2) == ["You said: hello", "You said: count the rooms"]
        # Whoever asked can also fetch it.
        fetched = await house.client.http.get(f"/invocations/{answered.json()['id']}")
        assert fetched.json()["status"] == "completed"
        assert "You said: count the rooms" in fetched.text


async def test_all_linked_channels_hear_the_question_and_the_answer(tmp_path: Path) -> None:
    everywhere = {"left": sends_to(ResponseTarget.all_linked(echo_input=True))}
    async with open_house(tmp_path, chats=("left", "right"), chat_hooks=everywhere) as house:
        right = await house.meet("right", "Ann", "ann")
        left = await house.meet("left", "Ann", "ann")
        assert await house.wait_for_answers("right", right, 3) == ["You said: hello", "hello", "You said: hello"]
        await house.platforms["left"].say(left, "is it raining?")
        assert await house.wait_for_answers("left", left, 2) == ["You said: hello", "You said: is it raining?"]
        assert (await house.wait_for_answers("right", right, 5))[3:] == ["is it raining?", "You said: is it raining?"]
        echo, reply = (await house.wait_for_ends("right"))[1::-1]
        assert (echo.is_echo, reply.is_echo) == (True, False)
        assert (echo.part, reply.part, reply.parts) == (0, 1, 2)


async def test_a_response_hook_knows_the_destination_and_the_echo(tmp_path: Path) -> None:
    def marked(result: HostedRunResult[Any], *, context: Any) -> HostedRunResult[Any]:
        text = result.result.text
        result.result.messages[0].contents[0].text = f"[{'you wrote' if context.is_echo else 'we say'}] {text}"
        assert context.destination_identity == ANN.replace(attributes=context.destination_identity.attributes)
        return result

    hook = sends_to(ResponseTarget.identity(ANN, echo_input=True))
    async with open_house(tmp_path, hook=hook, response_hooks={"chat": marked}) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        await house.client.http.post("/invocations", json={"message": "hi"})
        assert await house.wait_for_answers("chat", ann, 2) == ["[you wrote] hi", "[we say] You said: hi"]


async def test_a_response_hook_that_fails_ends_its_destination_alone(tmp_path: Path) -> None:
    def fails(result: HostedRunResult[Any], *, context: Any) -> HostedRunResult[Any]:
        raise RuntimeError("no")

    targets = [ChannelIdentity(channel=name, native_id="ann") for name in ("left", "right")]
    hook = sends_to(ResponseTarget.identities(targets))
    async with open_house(tmp_path, chats=("left", "right"), hook=hook, response_hooks={"left": fails}) as house:
        ann = await house.platforms["right"].user("Ann", user_id="ann")
        await house.client.http.post("/invocations", json={"message": "hi"})
        assert await house.wait_for_answers("right", ann, 1) == ["You said: hi"]
        (dead,) = await house.host.deliveries.list(channel="left")
        assert (dead.status, dead.error, dead.payload) == ("dead", "hook_failed", None)


async def test_when_nothing_is_left_the_answer_comes_back_and_says_so(tmp_path: Path) -> None:
    async with open_house(tmp_path, hook=sends_to(ResponseTarget.channel("chat"))) as house:
        answered = await house.client.invoke("hello?", session_id="mine")
        assert "You said: hello?" in str(answered)
        owner = person(ChannelIdentity(channel="invocations", native_id="anonymous"))
        session = await house.store.sessions.find(SessionName(owner=owner, kind="named", value="mine"))
        assert session is not None
        messages = await house.store.sessions.history(owner, session.session_id)
        hosting = messages[-1].additional_properties["hosting"]
        assert hosting["includes_originating"] is True
        assert hosting["fallback"] is True
        assert hosting["skipped_targets"] == [
            {
                "channel": "chat",
                "native_id": "",
                "reason": "the person is unknown on that channel",
                "code": "unknown_recipient",
            }
        ]


async def test_an_answer_that_comes_back_too_is_streamed_here_and_pushed_there(tmp_path: Path) -> None:
    me = ChannelIdentity(channel="invocations", native_id="anonymous")
    hook = sends_to(ResponseTarget.identities([me, ANN]))
    async with open_house(tmp_path, hook=hook) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        events = [one async for one in house.client.stream("hi")]
        assert "You said: hi" in "".join(str(one.data) for one in events)
        assert await house.wait_for_answers("chat", ann, 1) == ["You said: hi"]


async def test_whoever_waits_on_the_wire_is_there_and_is_answered_there(tmp_path: Path) -> None:
    hook = sends_to(ResponseTarget.active)
    async with open_house(tmp_path, hook=hook) as house:
        me = await house.meet("chat", "Me", "anonymous")
        assert "You said: one" in str(await house.client.invoke("one"))
        assert await house.wait_for_answers("chat", me, 1) == ["You said: hello"]
        seen = await house.store.identities.last_seen(person(ANONYMOUS))
        assert seen is not None
        assert seen.identity.key == ANONYMOUS.key


async def test_whoever_left_the_wire_is_answered_on_all_their_chats(tmp_path: Path) -> None:
    hook = sends_to(ResponseTarget.active, background=True)
    async with open_house(tmp_path, chats=("left", "right"), hook=hook) as house:
        left = await house.meet("left", "Me", "anonymous")
        right = await house.meet("right", "Me", "anonymous")
        answered = await house.client.http.post("/invocations", json={"message": "one"})
        assert answered.status_code == 202
        assert await house.wait_for_answers("left", left, 2) == ["You said: hello", "You said: one"]
        assert await house.wait_for_answers("right", right, 2) == ["You said: hello", "You said: one"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "said"), [("/v1/responses", "input"), ("/invocations", "message")])
async def test_the_wire_gets_the_continuation_and_not_the_answer(
    tmp_path: Path, path: str, said: str, stream: bool
) -> None:
    async with open_house(tmp_path, hook=sends_to(ResponseTarget.identity(ANN))) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        body = {said: "where is my key?", "stream": stream}
        answered = await house.client.http.post(path, json=body)
        assert answered.status_code == (202 if path == "/invocations" else 200), answered.text
        assert "queued" in answered.text
        assert "You said" not in answered.text
        assert await house.wait_for_answers("chat", ann, 1) == ["You said: where is my key?"]
        if not stream:
            found = await house.client.http.get(f"{path}/{answered.json()['id']}")
            assert "You said: where is my key?" in found.text


@pytest.mark.parametrize(
    ("path", "said", "kind"),
    [("/v1/responses", "input", "text/event-stream"), ("/invocations", "message", "application/json")],
)
async def test_a_run_in_the_background_was_streamed_where_nothing_of_it_was_meant_to_go(
    tmp_path: Path, path: str, said: str, kind: str
) -> None:
    async with open_house(tmp_path, hook=sends_to(ResponseTarget.identity(ANN), background=True)) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        answered = await house.client.http.post(path, json={said: "where is my key?", "stream": True})
        assert answered.headers["content-type"].startswith(kind), answered.text
        assert re.findall('"status":"(.*?)"', answered.text)[-1] == "queued"
        assert "You said" not in answered.text
        assert await house.wait_for_answers("chat", ann, 1) == ["You said: where is my key?"]


async def test_a_run_in_the_background_that_comes_back_too_is_streamed_here(tmp_path: Path) -> None:
    hook = sends_to(ResponseTarget.identities([ANONYMOUS, ANN]), background=True)
    async with open_house(tmp_path, hook=hook) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        events = [one async for one in house.client.stream("hi")]
        assert "You said: hi" in "".join(str(one.data) for one in events)
        assert await house.wait_for_answers("chat", ann, 1) == ["You said: hi"]


async def test_a_turn_that_is_not_kept_is_delivered_all_the_same(tmp_path: Path) -> None:
    me = ChannelIdentity(channel="responses", native_id="anonymous")
    hook = sends_to(ResponseTarget.identities([me, ANN]), store=False)
    async with open_house(tmp_path, hook=hook) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        answered = await house.client.http.post("/v1/responses", json={"input": "hi", "store": False})
        assert "You said: hi" in answered.text
        assert await house.wait_for_answers("chat", ann, 1) == ["You said: hi"]


async def test_the_wire_itself_names_a_channel_of_the_callers(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        me = await house.meet("chat", "Me", "anonymous")
        target = {"kind": "identities", "identities": [{"channel": "chat", "native_id": "anonymous"}]}
        answered = await house.client.http.post("/invocations", json={"message": "later", "response_target": target})
        assert answered.status_code == 202, answered.text
        assert await house.wait_for_answers("chat", me, 2) == ["You said: hello", "You said: later"]


@pytest.mark.parametrize(
    ("target", "status", "param"),
    [
        ({"kind": "identities", "identities": [{"channel": "chat", "native_id": "eve"}]}, 403, "response_target"),
        ({"kind": "identities"}, 400, "response_target"),
        ({"kind": "channels", "channels": []}, 400, "response_target.channels"),
        ({"kind": "active", "channels": ["chat"]}, 400, "response_target"),
        ({"kind": "everybody"}, 400, "response_target.kind"),
    ],
)
async def test_the_wire_can_t_name_a_stranger_or_nonsense(
    tmp_path: Path, target: dict[str, Any], status: int, param: str
) -> None:
    async with open_house(tmp_path) as house:
        answered = await house.client.http.post("/invocations", json={"message": "hi", "response_target": target})
        assert (answered.status_code, answered.json()["error"]["param"]) == (status, param)
