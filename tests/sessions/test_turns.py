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
def remaining() -> Room:
    return Room()


def session_of(turn: Turn) -> str:
    assert turn.record is not None
    return turn.record.session_id


class TestSessionMode:
    async def test_auto_without_a_name_is_a_fresh_session(self, remaining: Room) -> None:
        one, two = await remaining.open(), await remaining.open()
        assert session_of(one) != session_of(two)
        assert one.session is not None
        assert one.session.session_id == session_of(one)

    async def test_a_fresh_session_can_be_named_by_its_id_later(self, remaining: Room) -> None:
        first = await remaining.say("one")
        assert first.session_key is not None
        turn = await remaining.open(key=first.session_key)
        assert session_of(turn) == first.session_id
        assert await remaining.texts(turn) == ["one", "re: one"]

    async def test_required_needs_a_name(self, remaining: Room) -> None:
        with pytest.raises(SessionRequiredError):
            await remaining.open(session_mode="required")
        assert not remaining.ids.made

    @pytest.mark.parametrize(
        "fields",
        [{"key": "mine"}, {"session": ChannelSession(conversation_id="c")}, {"tracked": "per_user"}],
        ids=["key", "conversation", "tracked"],
    )
    async def test_required_is_content_with_any_name(self, remaining: Room, fields: dict[str, Any]) -> None:
        await remaining.converse("c")
        turn = await remaining.open(session_mode="required", **fields)
        assert turn.record is not None

    async def test_required_is_content_with_a_run_to_continue(self, remaining: Room) -> None:
        run = await remaining.say("one")
        turn = await remaining.open(session_mode="required", previous_run_id=run.run_id)
        assert session_of(turn) == run.session_id

    async def test_disabled_has_no_session_whatever_is_named(self, remaining: Room) -> None:
        run = await remaining.say("one", key="mine")
        named: list[dict[str, Any]] = [
            {},
            {"key": "mine"},
            {"tracked": "per_user"},
            {"previous_run_id": run.run_id},
        ]
        for fields in named:
            turn = await remaining.open(session_mode="disabled", **fields)
            assert turn.record is None
            assert turn.session is None
            assert list(await turn.history()) == []
            remaining.turns.close(turn)


class TestNamedBranches:
    async def test_a_key_begins_as_a_branch_of_a_run_and_goes_on_by_itself(self, remaining: Room) -> None:
        first = await remaining.say("one", key="mine")
        await remaining.say("two", key="mine")
        for said in ("other", "more"):
            await remaining.say(said, key="branch", previous_run_id=first.run_id)
        branch, mine = await remaining.open(key="branch"), await remaining.open(key="mine")
        assert await remaining.texts(branch) == ["one", "re: one", "other", "re: other", "more", "re: more"]
        assert await remaining.texts(mine) == ["one", "re: one", "two", "re: two"]

    async def test_it_never_goes_on_in_the_session_of_the_run(self, remaining: Room) -> None:
        first = await remaining.say("one", key="mine")
        turn = await remaining.open(key="branch", previous_run_id=first.run_id)
        assert session_of(turn) != first.session_id
        assert await remaining.texts(turn) == ["one", "re: one"]

    async def test_a_run_that_is_not_there_begins_no_branch(self, remaining: Room) -> None:
        with pytest.raises(NotFoundError):
            await remaining.open(key="branch", previous_run_id="run_of_another")


class TestNames:
    async def test_one_name_is_one_session(self, remaining: Room) -> None:
        await remaining.say("one", key="mine")
        turn = await remaining.open(key="mine")
        assert await remaining.texts(turn) == ["one", "re: one"]
        assert turn.record is not None
        assert turn.record.key == "mine"

    async def test_one_name_of_two_people_is_two_sessions(self, remaining: Room) -> None:
        await remaining.say("secret", key="mine", owner="alice")
        turn = await remaining.open(key="mine", owner="bob")
        assert await remaining.texts(turn) == []

    async def test_a_key_a_conversation_and_a_tracked_session_are_never_the_same(self, remaining: Room) -> None:
        fields: list[dict[str, Any]] = [
            {"key": "x"},
            {"session": await remaining.converse("x")},
            {"tracked": "per_user_per_conversation", "conversation_id": "x", "group": True},
            {"tracked": "per_conversation", "conversation_id": "x", "group": True},
            {"tracked": "per_user"},
        ]
        assert len({session_of(await remaining.open(**one)) for one in fields}) == len(fields)

    async def test_a_name_beats_the_tracked_session(self, remaining: Room) -> None:
        tracked = await remaining.say("tracked", tracked="per_user")
        turn = await remaining.open(key="mine", tracked="per_user")
        assert session_of(turn) != tracked.session_id

    async def test_a_direct_chat_is_the_same_session_on_every_tracked_channel(self, remaining: Room) -> None:
        first = await remaining.say("one", channel="telegram", tracked="per_user_per_conversation", conversation_id="7")
        turn = await remaining.open(channel="slack", tracked="per_conversation", conversation_id="D1")
        assert session_of(turn) == first.session_id

    async def test_a_group_shares_a_session_only_where_the_scope_says_so(self, remaining: Room) -> None:
        group = {"conversation_id": "g", "group": True, "channel": "telegram"}
        shared = await remaining.say("hello all", tracked="per_conversation", **group)
        theirs = await remaining.open(owner="bob", tracked="per_conversation", **group)
        assert session_of(theirs) == shared.session_id
        assert await remaining.texts(theirs) == ["hello all", "re: hello all"]
        own = await remaining.open(owner="bob", tracked="per_user_per_conversation", **group)
        assert session_of(own) != shared.session_id

    async def test_a_hook_can_choose_the_tracked_session(self, remaining: Room) -> None:
        first = await remaining.say("one", tracked="per_user")
        turn = await remaining.open(session=ChannelSession(isolation_key="alice"))
        assert session_of(turn) == first.session_id

    async def test_a_stranger_cannot_name_a_new_session(self, remaining: Room) -> None:
        for session in (ChannelSession(key="mine"), ChannelSession(conversation_id="c")):
            with pytest.raises(NotFoundError):
                await remaining.open(caller=STRANGER, session=session)
        assert not remaining.ids.made

    async def test_a_stranger_can_go_on_with_a_session_that_the_host_named(self, remaining: Room) -> None:
        first = await remaining.say("one", caller=STRANGER)
        turn = await remaining.open(caller=STRANGER, key=first.session_key)
        assert session_of(turn) == first.session_id

    async def test_the_framework_gets_our_session_id_and_its_own_state(self, remaining: Room) -> None:
        turn = await remaining.open(key="mine")
        assert turn.session is not None
        turn.session.state["seen"] = {"deep": [1]}
        await remaining.finish(turn)
        again = await remaining.open(key="mine")
        assert again.session is not None
        assert again.session.session_id == session_of(turn)
        assert again.session.state["seen"] == {"deep": [1]}


class TestContinue:
    async def test_after_the_last_run_the_session_goes_on(self, remaining: Room) -> None:
        first = await remaining.say("one")
        second = await remaining.say("two", previous_run_id=first.run_id)
        assert second.session_id == first.session_id
        turn = await remaining.open(previous_run_id=second.run_id)
        assert await remaining.texts(turn) == ["one", "re: one", "two", "re: two"]

    async def test_after_an_earlier_run_it_branches(self, remaining: Room) -> None:
        first = await remaining.say("one")
        await remaining.say("two", previous_run_id=first.run_id)
        branch = await remaining.open(previous_run_id=first.run_id, input="other")
        assert session_of(branch) != first.session_id
        assert await remaining.texts(branch) == ["one", "re: one"]
        other = await remaining.finish(branch, "re: other")
        assert other.previous_run_id == first.run_id
        main = await remaining.open(key=first.session_key)
        assert await remaining.texts(main) == ["one", "re: one", "two", "re: two"]
        deeper = await remaining.open(previous_run_id=other.run_id)
        assert await remaining.texts(deeper) == ["one", "re: one", "other", "re: other"]

    async def test_a_branch_can_be_named_like_any_session(self, remaining: Room) -> None:
        first = await remaining.say("one")
        await remaining.say("two", previous_run_id=first.run_id)
        branch = await remaining.say("other", previous_run_id=first.run_id)
        turn = await remaining.open(key=branch.session_key)
        assert session_of(turn) == branch.session_id

    async def test_a_branch_starts_with_the_state_of_its_time(self, remaining: Room) -> None:
        turn = await remaining.open()
        assert turn.session is not None
        turn.session.state["step"] = 1
        first = await remaining.finish(turn)
        turn = await remaining.open(previous_run_id=first.run_id)
        assert turn.session is not None
        turn.session.state["step"] = 2
        await remaining.finish(turn)
        branch = await remaining.open(previous_run_id=first.run_id)
        assert branch.session is not None
        assert branch.session.state["step"] == 1
        assert branch.session.session_id == session_of(branch)

    async def test_while_the_session_is_taken_it_branches_at_once(self, remaining: Room) -> None:
        first = await remaining.say("one")
        holding = await remaining.open(previous_run_id=first.run_id)
        branch = await remaining.open(previous_run_id=first.run_id)
        assert session_of(holding) == first.session_id
        assert session_of(branch) != first.session_id
        assert await remaining.texts(branch) == ["one", "re: one"]

    async def test_a_strangers_run_looks_like_one_that_does_not_exist(self, remaining: Room) -> None:
        first = await remaining.say("one")
        errors: list[NotFoundError] = []
        for owner, run_id in (("bob", first.run_id), ("bob", "run_unknown"), ("alice", "run_unknown")):
            with pytest.raises(NotFoundError) as caught:
                await remaining.open(owner=owner, previous_run_id=run_id)
            errors.append(caught.value)
        assert len({(error.message, error.code, error.param) for error in errors}) == 1

    async def test_a_run_without_a_session_cannot_be_continued(self, remaining: Room) -> None:
        run = await remaining.say("one", session_mode="disabled")
        with pytest.raises(NotFoundError):
            await remaining.open(previous_run_id=run.run_id)

    async def test_a_run_that_ends_while_another_looks_at_it_is_not_lost(self) -> None:
        remaining = Room()
        first = await remaining.say("one")
        store = remaining.store.sessions
        plain_get = store.get

        async def slow_get(owner: str, session_id: str) -> Any:
            record = await plain_get(owner, session_id)
            store.get = plain_get  # type: ignore[method-assign]
            await remaining.say("meanwhile", previous_run_id=first.run_id)
            return record

        store.get = slow_get  # type: ignore[method-assign]
        turn = await remaining.open(previous_run_id=first.run_id, input="late")
        await remaining.finish(turn, "re: late")
        main = await remaining.open(key=first.session_key)
        assert await remaining.texts(main) == ["one", "re: one", "meanwhile", "re: meanwhile"]


class TestRotate:
    async def test_a_new_session_begins_and_the_old_one_stays(self, remaining: Room) -> None:
        name = SessionName(owner="alice", kind="tracked")
        old = await remaining.say("one", tracked="per_user")
        new_id = await remaining.turns.rotate(name)
        turn = await remaining.open(tracked="per_user")
        assert session_of(turn) == new_id
        assert await remaining.texts(turn) == []
        assert old.session_id is not None
        kept = await remaining.store.sessions.history("alice", old.session_id)
        assert [message.text for message in kept] == ["one", "re: one"]

    async def test_a_turn_that_is_under_way_ends_in_the_old_session(self, remaining: Room) -> None:
        turn = await remaining.open(tracked="per_user", input="one")
        await remaining.turns.rotate(SessionName(owner="alice", kind="tracked"))
        run = await remaining.finish(turn)
        assert run.session_id == session_of(turn)
        assert session_of(await remaining.open(tracked="per_user")) != run.session_id

    async def test_rotating_before_the_first_word_is_fine(self, remaining: Room) -> None:
        new_id = await remaining.turns.rotate(SessionName(owner="alice", kind="tracked"))
        assert session_of(await remaining.open(tracked="per_user")) == new_id


class TestOneAtATime:
    async def test_the_second_waits_for_the_first(self) -> None:
        remaining = Room(session_wait=30)
        first = await remaining.open(key="mine", input="one")
        second = asyncio.create_task(remaining.open(key="mine"))
        await asyncio.sleep(0)
        assert not second.done()
        await remaining.finish(first, "re: one")
        assert await remaining.texts(await second) == ["one", "re: one"]

    async def test_whoever_waits_too_long_is_told_so(self, remaining: Room) -> None:
        await remaining.open(key="mine")
        with pytest.raises(SessionBusyError):
            await remaining.open(key="mine")

    async def test_a_patient_one_waits_as_long_as_it_takes(self, remaining: Room) -> None:
        first = await remaining.open(key="mine")
        second = asyncio.create_task(remaining.open(key="mine", waits=True))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not second.done()
        remaining.turns.close(first)
        await second

    async def test_twenty_at_once_are_twenty_whole_turns(self) -> None:
        remaining = Room(session_wait=30)
        await asyncio.gather(*(remaining.say(str(number), key="mine") for number in range(20)))
        texts = await remaining.texts(await remaining.open(key="mine"))
        assert sorted(texts[::2], key=int) == [str(number) for number in range(20)]
        assert texts[1::2] == [f"re: {text}" for text in texts[::2]]

    async def test_closing_twice_is_closing_once(self, remaining: Room) -> None:
        first = await remaining.open(key="mine")
        remaining.turns.close(first)
        second = await remaining.open(key="mine")
        remaining.turns.close(first)
        with pytest.raises(SessionBusyError):
            await remaining.open(key="mine")
        remaining.turns.close(second)

    async def test_a_session_stays_taken_until_its_threads_have_ended(self) -> None:
        remaining, thread = Room(session_wait=30), Future[None]()
        turn = await remaining.open(key="mine")
        turn.work.add(thread)
        remaining.turns.close(turn)
        waiting = asyncio.create_task(remaining.open(key="mine"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        thread.set_result(None)
        await waiting

    async def test_a_thread_that_never_ends_holds_a_session_for_a_while_only(self) -> None:
        remaining = Room(session_wait=30, cancel_grace=0)
        turn = await remaining.open(key="mine")
        turn.work.add(Future[None]())
        remaining.turns.close(turn)
        await remaining.open(key="mine")

    async def test_whoever_is_expelled_can_write_nothing_more(self, remaining: Room) -> None:
        turn = await remaining.open(key="mine", input="late")
        await remaining.turns.expel(turn)
        await remaining.say("next", key="mine")
        assert turn.record is not None
        assert turn.lease is not None
        with pytest.raises(StaleTurnError):
            async with remaining.store.transaction() as transaction:
                transaction.save_session(turn.record, turn.lease)
        await remaining.finish(turn)
        assert await remaining.texts(await remaining.open(key="mine")) == ["next", "re: next"]

    @pytest.mark.parametrize("how", ["named", "fresh", "continued", "branched"])
    async def test_a_store_that_fails_leaves_no_session_taken(self, remaining: Room, how: str) -> None:
        first = await remaining.say("one", key="mine")
        if how == "branched":
            await remaining.say("two", key="mine")
        fields = {"named": {"key": "mine"}, "fresh": {}}.get(how, {"previous_run_id": first.run_id})
        sessions = remaining.store.sessions
        claim, begin = sessions.claim, sessions.begin

        def broken(*_: Any) -> Any:
            raise OSError("the disk is full")

        # Claiming fails before it waits for anything, which is as good as while it waits.
        sessions.claim = sessions.begin = broken  # type: ignore[method-assign]
        with pytest.raises(OSError, match="disk"):
            await remaining.open(**fields)
        sessions.claim, sessions.begin = claim, begin  # type: ignore[method-assign]
        locks = remaining.turns._locks
        assert not any(locks.held(f"ses_{number}") for number in range(10))
