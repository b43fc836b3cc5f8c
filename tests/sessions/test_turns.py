"""Which session a request gets, and that nobody else gets it meanwhile."""

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from frontdesk.errors import NotFoundError, SessionBusyError, SessionRequiredError, StaleTurnError
from frontdesk.models.identity import ANONYMOUS, Caller, ChannelIdentity
from frontdesk.models.request import ChannelSession
from frontdesk.models.session import SessionName
from frontdesk.sessions.turn import Turn
from tests.sessions.admitted import Room

STRANGER = Caller(identity=ChannelIdentity(channel="web", native_id=ANONYMOUS), anonymous=True, may_name_sessions=False)


@pytest.fixture
def room() -> Room:
    return Room()


def session_of(turn: Turn) -> str:
    assert turn.record is not None
    return turn.record.session_id


class TestSessionMode:
    async def test_auto_without_a_name_is_a_fresh_session(self, room: Room) -> None:
        one, two = await room.open(), await room.open()
        assert session_of(one) != session_of(two)
        assert one.session is not None
        assert one.session.session_id == session_of(one)

    async def test_a_fresh_session_can_be_named_by_its_id_later(self, room: Room) -> None:
        first = await room.say("one")
        assert first.session_key is not None
        turn = await room.open(key=first.session_key)
        assert session_of(turn) == first.session_id
        assert await room.texts(turn) == ["one", "re: one"]

    async def test_required_needs_a_name(self, room: Room) -> None:
        with pytest.raises(SessionRequiredError):
            await room.open(session_mode="required")
        assert not room.ids.made

    @pytest.mark.parametrize(
        "fields",
        [{"key": "mine"}, {"session": ChannelSession(conversation_id="c")}, {"tracked": "per_user"}],
        ids=["key", "conversation", "tracked"],
    )
    async def test_required_is_content_with_any_name(self, room: Room, fields: dict[str, Any]) -> None:
        await room.converse("c")
        turn = await room.open(session_mode="required", **fields)
        assert turn.record is not None

    async def test_required_is_content_with_a_run_to_continue(self, room: Room) -> None:
        run = await room.say("one")
        turn = await room.open(session_mode="required", previous_run_id=run.run_id)
        assert session_of(turn) == run.session_id

    async def test_disabled_has_no_session_whatever_is_named(self, room: Room) -> None:
        run = await room.say("one", key="mine")
        named: list[dict[str, Any]] = [
            {},
            {"key": "mine"},
            {"tracked": "per_user"},
            {"previous_run_id": run.run_id},
        ]
        for fields in named:
            turn = await room.open(session_mode="disabled", **fields)
            assert turn.record is None
            assert turn.session is None
            assert list(await turn.history()) == []
            room.turns.close(turn)


class TestNamedBranches:
    async def test_a_key_begins_as_a_branch_of_a_run_and_goes_on_by_itself(self, room: Room) -> None:
        first = await room.say("one", key="mine")
        await room.say("two", key="mine")
        for said in ("other", "more"):
            await room.say(said, key="branch", previous_run_id=first.run_id)
        branch, mine = await room.open(key="branch"), await room.open(key="mine")
        assert await room.texts(branch) == ["one", "re: one", "other", "re: other", "more", "re: more"]
        assert await room.texts(mine) == ["one", "re: one", "two", "re: two"]

    async def test_it_never_goes_on_in_the_session_of_the_run(self, room: Room) -> None:
        first = await room.say("one", key="mine")
        turn = await room.open(key="branch", previous_run_id=first.run_id)
        assert session_of(turn) != first.session_id
        assert await room.texts(turn) == ["one", "re: one"]

    async def test_a_run_that_is_not_there_begins_no_branch(self, room: Room) -> None:
        with pytest.raises(NotFoundError):
            await room.open(key="branch", previous_run_id="run_of_another")


class TestNames:
    async def test_one_name_is_one_session(self, room: Room) -> None:
        await room.say("one", key="mine")
        turn = await room.open(key="mine")
        assert await room.texts(turn) == ["one", "re: one"]
        assert turn.record is not None
        assert turn.record.key == "mine"

    async def test_one_name_of_two_people_is_two_sessions(self, room: Room) -> None:
        await room.say("secret", key="mine", owner="alice")
        turn = await room.open(key="mine", owner="bob")
        assert await room.texts(turn) == []

    async def test_a_key_a_conversation_and_a_tracked_session_are_never_the_same(self, room: Room) -> None:
        fields: list[dict[str, Any]] = [
            {"key": "x"},
            {"session": await room.converse("x")},
            {"tracked": "per_user_per_conversation", "conversation_id": "x", "group": True},
            {"tracked": "per_conversation", "conversation_id": "x", "group": True},
            {"tracked": "per_user"},
        ]
        assert len({session_of(await room.open(**one)) for one in fields}) == len(fields)

    async def test_a_name_beats_the_tracked_session(self, room: Room) -> None:
        tracked = await room.say("tracked", tracked="per_user")
        turn = await room.open(key="mine", tracked="per_user")
        assert session_of(turn) != tracked.session_id

    async def test_a_direct_chat_is_the_same_session_on_every_tracked_channel(self, room: Room) -> None:
        first = await room.say("one", channel="telegram", tracked="per_user_per_conversation", conversation_id="7")
        turn = await room.open(channel="slack", tracked="per_conversation", conversation_id="D1")
        assert session_of(turn) == first.session_id

    async def test_a_group_shares_a_session_only_where_the_scope_says_so(self, room: Room) -> None:
        group = {"conversation_id": "g", "group": True, "channel": "telegram"}
        shared = await room.say("hello all", tracked="per_conversation", **group)
        theirs = await room.open(owner="bob", tracked="per_conversation", **group)
        assert session_of(theirs) == shared.session_id
        assert await room.texts(theirs) == ["hello all", "re: hello all"]
        own = await room.open(owner="bob", tracked="per_user_per_conversation", **group)
        assert session_of(own) != shared.session_id

    async def test_a_hook_can_choose_the_tracked_session(self, room: Room) -> None:
        first = await room.say("one", tracked="per_user")
        turn = await room.open(session=ChannelSession(isolation_key="alice"))
        assert session_of(turn) == first.session_id

    async def test_a_stranger_cannot_name_a_new_session(self, room: Room) -> None:
        for session in (ChannelSession(key="mine"), ChannelSession(conversation_id="c")):
            with pytest.raises(NotFoundError):
                await room.open(caller=STRANGER, session=session)
        assert not room.ids.made

    async def test_a_stranger_can_go_on_with_a_session_that_the_host_named(self, room: Room) -> None:
        first = await room.say("one", caller=STRANGER)
        turn = await room.open(caller=STRANGER, key=first.session_key)
        assert session_of(turn) == first.session_id

    async def test_the_framework_gets_our_session_id_and_its_own_state(self, room: Room) -> None:
        turn = await room.open(key="mine")
        assert turn.session is not None
        turn.session.state["seen"] = {"deep": [1]}
        await room.finish(turn)
        again = await room.open(key="mine")
        assert again.session is not None
        assert again.session.session_id == session_of(turn)
        assert again.session.state["seen"] == {"deep": [1]}


class TestContinue:
    async def test_after_the_last_run_the_session_goes_on(self, room: Room) -> None:
        first = await room.say("one")
        second = await room.say("two", previous_run_id=first.run_id)
        assert second.session_id == first.session_id
        turn = await room.open(previous_run_id=second.run_id)
        assert await room.texts(turn) == ["one", "re: one", "two", "re: two"]

    async def test_after_an_earlier_run_it_branches(self, room: Room) -> None:
        first = await room.say("one")
        await room.say("two", previous_run_id=first.run_id)
        branch = await room.open(previous_run_id=first.run_id, input="other")
        assert session_of(branch) != first.session_id
        assert await room.texts(branch) == ["one", "re: one"]
        other = await room.finish(branch, "re: other")
        assert other.previous_run_id == first.run_id
        main = await room.open(key=first.session_key)
        assert await room.texts(main) == ["one", "re: one", "two", "re: two"]
        deeper = await room.open(previous_run_id=other.run_id)
        assert await room.texts(deeper) == ["one", "re: one", "other", "re: other"]

    async def test_a_branch_can_be_named_like_any_session(self, room: Room) -> None:
        first = await room.say("one")
        await room.say("two", previous_run_id=first.run_id)
        branch = await room.say("other", previous_run_id=first.run_id)
        turn = await room.open(key=branch.session_key)
        assert session_of(turn) == branch.session_id

    async def test_a_branch_starts_with_the_state_of_its_time(self, room: Room) -> None:
        turn = await room.open()
        assert turn.session is not None
        turn.session.state["step"] = 1
        first = await room.finish(turn)
        turn = await room.open(previous_run_id=first.run_id)
        assert turn.session is not None
        turn.session.state["step"] = 2
        await room.finish(turn)
        branch = await room.open(previous_run_id=first.run_id)
        assert branch.session is not None
        assert branch.session.state["step"] == 1
        assert branch.session.session_id == session_of(branch)

    async def test_while_the_session_is_taken_it_branches_at_once(self, room: Room) -> None:
        first = await room.say("one")
        holding = await room.open(previous_run_id=first.run_id)
        branch = await room.open(previous_run_id=first.run_id)
        assert session_of(holding) == first.session_id
        assert session_of(branch) != first.session_id
        assert await room.texts(branch) == ["one", "re: one"]

    async def test_a_strangers_run_looks_like_one_that_does_not_exist(self, room: Room) -> None:
        first = await room.say("one")
        errors: list[NotFoundError] = []
        for owner, run_id in (("bob", first.run_id), ("bob", "run_unknown"), ("alice", "run_unknown")):
            with pytest.raises(NotFoundError) as caught:
                await room.open(owner=owner, previous_run_id=run_id)
            errors.append(caught.value)
        assert len({(error.message, error.code, error.param) for error in errors}) == 1

    async def test_a_run_without_a_session_cannot_be_continued(self, room: Room) -> None:
        run = await room.say("one", session_mode="disabled")
        with pytest.raises(NotFoundError):
            await room.open(previous_run_id=run.run_id)

    async def test_a_run_that_ends_while_another_looks_at_it_is_not_lost(self) -> None:
        room = Room()
        first = await room.say("one")
        store = room.store.sessions
        plain_get = store.get

        async def slow_get(owner: str, session_id: str) -> Any:
            record = await plain_get(owner, session_id)
            store.get = plain_get  # type: ignore[method-assign]
            await room.say("meanwhile", previous_run_id=first.run_id)
            return record

        store.get = slow_get  # type: ignore[method-assign]
        turn = await room.open(previous_run_id=first.run_id, input="late")
        await room.finish(turn, "re: late")
        main = await room.open(key=first.session_key)
        assert await room.texts(main) == ["one", "re: one", "meanwhile", "re: meanwhile"]


class TestRotate:
    async def test_a_new_session_begins_and_the_old_one_stays(self, room: Room) -> None:
        name = SessionName(owner="alice", kind="tracked")
        old = await room.say("one", tracked="per_user")
        new_id = await room.turns.rotate(name)
        turn = await room.open(tracked="per_user")
        assert session_of(turn) == new_id
        assert await room.texts(turn) == []
        assert old.session_id is not None
        kept = await room.store.sessions.history("alice", old.session_id)
        assert [message.text for message in kept] == ["one", "re: one"]

    async def test_a_turn_that_is_under_way_ends_in_the_old_session(self, room: Room) -> None:
        turn = await room.open(tracked="per_user", input="one")
        await room.turns.rotate(SessionName(owner="alice", kind="tracked"))
        run = await room.finish(turn)
        assert run.session_id == session_of(turn)
        assert session_of(await room.open(tracked="per_user")) != run.session_id

    async def test_rotating_before_the_first_word_is_fine(self, room: Room) -> None:
        new_id = await room.turns.rotate(SessionName(owner="alice", kind="tracked"))
        assert session_of(await room.open(tracked="per_user")) == new_id


class TestOneAtATime:
    async def test_the_second_waits_for_the_first(self) -> None:
        room = Room(session_wait=30)
        first = await room.open(key="mine", input="one")
        second = asyncio.create_task(room.open(key="mine"))
        await asyncio.sleep(0)
        assert not second.done()
        await room.finish(first, "re: one")
        assert await room.texts(await second) == ["one", "re: one"]

    async def test_whoever_waits_too_long_is_told_so(self, room: Room) -> None:
        await room.open(key="mine")
        with pytest.raises(SessionBusyError):
            await room.open(key="mine")

    async def test_a_patient_one_waits_as_long_as_it_takes(self, room: Room) -> None:
        first = await room.open(key="mine")
        second = asyncio.create_task(room.open(key="mine", waits=True))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not second.done()
        room.turns.close(first)
        await second

    async def test_twenty_at_once_are_twenty_whole_turns(self) -> None:
        room = Room(session_wait=30)
        await asyncio.gather(*(room.say(str(number), key="mine") for number in range(20)))
        texts = await room.texts(await room.open(key="mine"))
        assert sorted(texts[::2], key=int) == [str(number) for number in range(20)]
        assert texts[1::2] == [f"re: {text}" for text in texts[::2]]

    async def test_closing_twice_is_closing_once(self, room: Room) -> None:
        first = await room.open(key="mine")
        room.turns.close(first)
        second = await room.open(key="mine")
        room.turns.close(first)
        with pytest.raises(SessionBusyError):
            await room.open(key="mine")
        room.turns.close(second)

    async def test_a_session_stays_taken_until_its_threads_have_ended(self) -> None:
        room, thread = Room(session_wait=30), Future[None]()
        turn = await room.open(key="mine")
        turn.work.add(thread)
        room.turns.close(turn)
        waiting = asyncio.create_task(room.open(key="mine"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        thread.set_result(None)
        await waiting

    async def test_a_thread_that_never_ends_holds_a_session_for_a_while_only(self) -> None:
        room = Room(session_wait=30, cancel_grace=0)
        turn = await room.open(key="mine")
        turn.work.add(Future[None]())
        room.turns.close(turn)
        await room.open(key="mine")

    async def test_whoever_is_expelled_can_write_nothing_more(self, room: Room) -> None:
        turn = await room.open(key="mine", input="late")
        await room.turns.expel(turn)
        await room.say("next", key="mine")
        assert turn.record is not None
        assert turn.lease is not None
        with pytest.raises(StaleTurnError):
            async with room.store.transaction() as transaction:
                transaction.save_session(turn.record, turn.lease)
        await room.finish(turn)
        assert await room.texts(await room.open(key="mine")) == ["next", "re: next"]

    @pytest.mark.parametrize("how", ["named", "fresh", "continued", "branched"])
    async def test_a_store_that_fails_leaves_no_session_taken(self, room: Room, how: str) -> None:
        first = await room.say("one", key="mine")
        if how == "branched":
            await room.say("two", key="mine")
        fields = {"named": {"key": "mine"}, "fresh": {}}.get(how, {"previous_run_id": first.run_id})
        sessions = room.store.sessions
        claim, begin = sessions.claim, sessions.begin

        def broken(*_: Any) -> Any:
            raise OSError("the disk is full")

        # Claiming fails before it waits for anything, which is as good as while it waits.
        sessions.claim = sessions.begin = broken  # type: ignore[method-assign]
        with pytest.raises(OSError, match="disk"):
            await room.open(**fields)
        sessions.claim, sessions.begin = claim, begin  # type: ignore[method-assign]
        locks = room.turns._locks
        assert not any(locks.held(f"ses_{number}") for number in range(10))
