"""The contract of stores for sessions."""

import asyncio

import pytest
from agent_framework import Content, Message

from frontdesk.errors import TooManyRequestsError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.session import CheckpointRef, ClientCall, ForkPoint, SessionName
from frontdesk.serialization.codec import encode
from frontdesk_testing.store_samples import (
    NOW,
    ODD_KEYS,
    OTHER,
    OWNER,
    build_messages,
    build_name,
    keep_session,
    session,
    texts,
)

LONG_CHAIN_LENGTH = 1_200
LARGE_BYTES = 1024 * 1024


class SessionNames:
    """Sessions and their names."""

    async def test_what_was_never_written_is_not_there(self, store: HostStateStore) -> None:
        assert await store.sessions.find(build_name()) is None
        assert await store.sessions.get(OWNER, "ses_1") is None
        assert list(await store.sessions.history(OWNER, "ses_1")) == []

    async def test_a_session_is_read_as_it_was_written(self, store: HostStateStore) -> None:
        record = session(
            key="mine",
            turns=3,
            messages=6,
            state={"a": {"b": [1, 2.5, None, True, "\0"]}},
            parent=ForkPoint(session_id="ses_0", messages=2),
            client_calls=(ClientCall(call_id="call_1", name="look"),),
            checkpoint=CheckpointRef(session_id="ses_0", checkpoint_id="point_1"),
            shared_state='{"$": "Content", "steps": [1, "\u00e9"]}',
        )
        await store.sessions.reserve(build_name(), "ses_1")
        await keep_session(store, record)
        assert await store.sessions.get(OWNER, "ses_1") == record
        assert await store.sessions.find(build_name()) == record

    async def test_a_session_is_replaced_when_it_is_written_again(self, store: HostStateStore) -> None:
        await keep_session(store, session(state={"a": 1}))
        await keep_session(store, session(turns=2, updated_at=NOW + 5))
        assert await store.sessions.get(OWNER, "ses_1") == session(turns=2, updated_at=NOW + 5)

    async def test_a_name_stays_with_the_first_who_reserves_it(self, store: HostStateStore) -> None:
        assert await store.sessions.reserve(build_name(), "ses_1") == "ses_1"
        assert await store.sessions.reserve(build_name(), "ses_2") == "ses_1"

    async def test_of_twenty_who_reserve_at_once_one_wins(self, store: HostStateStore) -> None:
        got = await asyncio.gather(*(store.sessions.reserve(build_name(), f"ses_{number}") for number in range(20)))
        assert len(set(got)) == 1
        assert await store.sessions.reserve(build_name(), "ses_late") == got[0]

    async def test_reserving_makes_no_session(self, store: HostStateStore) -> None:
        await store.sessions.reserve(build_name(), "ses_1")
        assert await store.sessions.find(build_name()) is None
        assert await store.sessions.get(OWNER, "ses_1") is None

    async def test_a_name_can_be_pointed_elsewhere_and_the_old_session_stays(self, store: HostStateStore) -> None:
        name = SessionName(owner=OWNER, kind="tracked")
        await store.sessions.reserve(name, "ses_1")
        await keep_session(store, session("ses_1"), build_messages("old"))
        async with store.transaction() as transaction:
            transaction.name_session(name, "ses_2")
        assert await store.sessions.find(name) is None
        assert await store.sessions.reserve(name, "ses_3") == "ses_2"
        await keep_session(store, session("ses_2"))
        assert await store.sessions.find(name) == session("ses_2")
        assert texts(await store.sessions.history(OWNER, "ses_1")) == ["old"]

    async def test_a_name_remembers_the_sessions_that_it_stood_for(self, store: HostStateStore) -> None:
        name = SessionName(owner=OWNER, kind="tracked")
        await store.sessions.reserve(name, "ses_1")
        for number in (1, 2, 3):
            await keep_session(store, session(f"ses_{number}", updated_at=NOW + number), build_messages("old"))
            async with store.transaction() as transaction:
                transaction.name_session(name, f"ses_{number + 1}")
        assert [record.session_id for record in await store.sessions.past(name)] == ["ses_3", "ses_2", "ses_1"]
        assert [record.session_id for record in await store.sessions.past(name, limit=1)] == ["ses_3"]
        async with store.transaction() as transaction:
            transaction.name_session(name, "ses_1")
            transaction.name_session(name, "ses_1")
        assert [record.session_id for record in await store.sessions.past(name)] == ["ses_3", "ses_2", "ses_1"]
        assert [await store.sessions.was(name, f"ses_{number}") for number in range(6)] == [
            False,
            True,
            True,
            True,
            # It stood for this one, which has no messages.
            False,
            False,
        ]
        for other in (name.replace(owner=OTHER), name.replace(channel="c", conversation_id="g"), build_name()):
            assert list(await store.sessions.past(other)) == []
            assert not await store.sessions.was(other, "ses_1")

    async def test_a_name_gives_nobody_the_session_of_another(self, store: HostStateStore) -> None:
        name = SessionName(owner=OTHER, kind="tracked")
        await keep_session(store, session("ses_1"), build_messages("mine"))
        async with store.transaction() as transaction:
            transaction.name_session(name, "ses_1")
        async with store.transaction() as transaction:
            transaction.name_session(name, "ses_2")
        assert list(await store.sessions.past(name)) == []
        assert not await store.sessions.was(name, "ses_1")

    async def test_names_of_different_kinds_are_never_equal(self, store: HostStateStore) -> None:
        parts = [
            {"value": "x"},
            {"channel": "x"},
            {"conversation_id": "x"},
            {"value": "x", "channel": "y"},
            {"value": "xy"},
            {"channel": "x", "conversation_id": "y"},
            {"channel": "xy"},
            {"value": "tracked"},
            {"value": "named"},
            {},
        ]
        owners = (OWNER, OTHER, "", "x")
        kinds = ("named", "tracked")
        names = [SessionName(owner=owner, kind=kind, **part) for owner in owners for kind in kinds for part in parts]
        for number, name in enumerate(names):
            assert await store.sessions.reserve(name, f"ses_{number}") == f"ses_{number}"
        for number, name in enumerate(names):
            assert await store.sessions.reserve(name, "other") == f"ses_{number}"

    @pytest.mark.parametrize("field", ["owner", "value", "channel", "conversation_id"])
    async def test_odd_names_are_names_like_any_other(self, store: HostStateStore, field: str) -> None:
        base = SessionName(owner=OWNER, kind="named", value="v", channel="c", conversation_id="i")
        names = [base.replace(**{field: key}) for key in ODD_KEYS]
        for number, name in enumerate(names):
            assert await store.sessions.reserve(name, f"ses_{number}") == f"ses_{number}"
        assert [await store.sessions.reserve(name, "other") for name in names] == [
            f"ses_{number}" for number in range(len(names))
        ]

    async def test_odd_ids_are_ids_like_any_other(self, store: HostStateStore) -> None:
        for key in ODD_KEYS:
            await keep_session(store, session(key, owner=key), build_messages(f"in {key}"))
        for key in ODD_KEYS:
            assert await store.sessions.get(key, key) == session(key, owner=key)
            assert texts(await store.sessions.history(key, key)) == [f"in {key}"]

    async def test_a_session_does_not_exist_for_anybody_else(self, store: HostStateStore) -> None:
        await keep_session(store, session(), build_messages("secret"))
        assert await store.sessions.get(OTHER, "ses_1") is None
        assert list(await store.sessions.history(OTHER, "ses_1")) == []
        assert await store.sessions.find(build_name("ses_1", owner=OTHER)) is None


class History:
    """Messages, and the branches that share them."""

    async def test_messages_come_back_in_order_and_whole(self, store: HostStateStore) -> None:
        await keep_session(store, session(), build_messages("one", "two"))
        await keep_session(store, session(), build_messages("three"))
        await keep_session(store, session(), [])
        messages = await store.sessions.history(OWNER, "ses_1")
        assert texts(messages) == ["one", "two", "three"]
        assert [message.to_dict() for message in messages] == [
            message.to_dict() for message in build_messages("one", "two", "three")
        ]

    async def test_a_large_history_is_charged_before_it_is_read(self, store: HostStateStore) -> None:
        sizes: list[int] = []

        async def refuse(size: int) -> None:
            sizes.append(size)
            raise TooManyRequestsError

        await keep_session(store, session(), build_messages("one"))
        assert texts(await store.sessions.history(OWNER, "ses_1", charge=refuse)) == ["one"]
        await keep_session(store, session(), build_messages("x" * LARGE_BYTES))
        with pytest.raises(TooManyRequestsError):
            await store.sessions.history(OWNER, "ses_1", charge=refuse)
        assert len(sizes) == 1
        assert sizes[0] > LARGE_BYTES

    async def test_a_history_is_read_from_its_end_in_pages(self, store: HostStateStore) -> None:
        await keep_session(store, session("other"), build_messages("not this"))
        for number in range(5):
            await keep_session(store, session("root"), build_messages(str(number)))
        branch = session("branch", parent=ForkPoint(session_id="root", messages=3))
        await keep_session(store, branch, build_messages("b"))
        for session_id, whole in (("root", ["0", "1", "2", "3", "4"]), ("branch", ["0", "1", "2", "b"])):
            read: list[list[str]] = []
            before: int | None = None
            while not read or before is not None:
                page = await store.sessions.history_page(OWNER, session_id, before=before, limit=2)
                read.insert(0, texts(page.messages))
                before = page.before
            assert [text for page_texts in read for text in page_texts] == whole
            assert [len(page_texts) for page_texts in read[1:]] == [2] * (len(read) - 1)
            everything = await store.sessions.history_page(OWNER, session_id, limit=5)
            assert (texts(everything.messages), everything.before) == (whole, None)
        for owner, session_id, end in ((OTHER, "root", None), (OWNER, "nowhere", None), (OWNER, "root", 0)):
            page = await store.sessions.history_page(owner, session_id, before=end, limit=2)
            assert (list(page.messages), page.before) == ([], None)

    async def test_equal_messages_are_all_kept(self, store: HostStateStore) -> None:
        for _ in range(4):
            await keep_session(store, session(), build_messages("yes"))
        assert texts(await store.sessions.history(OWNER, "ses_1")) == ["yes"] * 4

    async def test_changing_what_was_returned_changes_nothing(self, store: HostStateStore) -> None:
        await keep_session(store, session(), build_messages("one"))
        messages = await store.sessions.history(OWNER, "ses_1")
        if isinstance(messages, list):
            messages.clear()
        assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one"]

    async def test_a_branch_shares_what_was_before_it_and_nothing_after(self, store: HostStateStore) -> None:
        await keep_session(store, session("root"), build_messages("1", "2", "3"))
        await keep_session(
            store, session("left", parent=ForkPoint(session_id="root", messages=2)), build_messages("left")
        )
        await keep_session(
            store, session("right", parent=ForkPoint(session_id="root", messages=2)), build_messages("right")
        )
        await keep_session(store, session("root"), build_messages("4"))
        assert texts(await store.sessions.history(OWNER, "root")) == ["1", "2", "3", "4"]
        assert texts(await store.sessions.history(OWNER, "left")) == ["1", "2", "left"]
        assert texts(await store.sessions.history(OWNER, "right")) == ["1", "2", "right"]

    async def test_a_branch_of_a_branch_can_leave_before_or_after_its_parents_own_messages(
        self, store: HostStateStore
    ) -> None:
        await keep_session(store, session("root"), build_messages("1", "2", "3"))
        await keep_session(
            store, session("b", parent=ForkPoint(session_id="root", messages=2)), build_messages("b1", "b2")
        )
        expected = {
            0: ["c"],
            1: ["1", "c"],
            2: ["1", "2", "c"],
            3: ["1", "2", "b1", "c"],
            4: ["1", "2", "b1", "b2", "c"],
        }
        for shared in expected:
            branch = session(f"c{shared}", parent=ForkPoint(session_id="b", messages=shared))
            await keep_session(store, branch, build_messages("c"))
        assert {n: texts(await store.sessions.history(OWNER, f"c{n}")) for n in expected} == expected
        assert texts(await store.sessions.history(OWNER, "b")) == ["1", "2", "b1", "b2"]

    async def test_a_long_chain_of_branches_is_read_to_its_root(self, store: HostStateStore) -> None:
        await keep_session(store, session("s0"), build_messages("0"))
        for number in range(1, LONG_CHAIN_LENGTH):
            parent = ForkPoint(session_id=f"s{number - 1}", messages=number)
            await keep_session(store, session(f"s{number}", parent=parent), build_messages(str(number)))
        messages = await store.sessions.history(OWNER, f"s{LONG_CHAIN_LENGTH - 1}")
        assert texts(messages) == [str(number) for number in range(LONG_CHAIN_LENGTH)]

    async def test_two_sessions_that_take_turns_keep_their_own_messages(self, store: HostStateStore) -> None:
        for number in range(6):
            await keep_session(store, session("even"), build_messages(f"even {number}"))
            await keep_session(store, session("odd"), build_messages(f"odd {number}"))
            for name in ("even", "odd"):
                expected = [f"{name} {before}" for before in range(number + 1)]
                assert texts(await store.sessions.history(OWNER, name)) == expected

    async def test_large_messages_come_back_whole(self, store: HostStateStore) -> None:
        large = "\U0001f642" * LARGE_BYTES
        picture = Content.from_data(bytes(range(256)) * (LARGE_BYTES // 256), "image/png")
        written = [*build_messages(large), Message("user", [picture]), *build_messages("small")]
        await keep_session(store, session(), written)
        await keep_session(store, session(), build_messages(large[::-1]))
        messages = await store.sessions.history(OWNER, "ses_1")
        assert encode(list(messages)) == encode([*written, *build_messages(large)])

    async def test_contents_of_every_kind_come_back_as_they_were(self, store: HostStateStore) -> None:
        pytest.importorskip("hypothesis")
        from frontdesk_testing import strategies

        for kind, contents in strategies.CONTENTS.items():
            written = [Message("assistant", [content]) for content in strategies.samples(contents, number=8)]
            await keep_session(store, session(kind), written)
            assert encode(list(await store.sessions.history(OWNER, kind))) == encode(written), kind
