"""The contract of a store for titles and first words of sessions."""

from contextlib import suppress

from frontdesk.interfaces.store import HostStateStore
from frontdesk_testing.store_samples import ODD_KEYS, OTHER, OWNER, build_messages, keep_session, session, texts


async def _retitle(store: HostStateStore, title: str | None, *, owner: str = OWNER, session_id: str = "ses_1") -> None:
    async with store.transaction() as transaction:
        transaction.title_session(owner, session_id, title)


class SessionTitles:
    """Titles that people give their sessions."""

    async def test_a_title_is_kept_replaced_and_removed(self, store: HostStateStore) -> None:
        await keep_session(store, session("ses_1"), build_messages("one"))
        assert await store.sessions.titles(OWNER, ["ses_1"]) == {}
        for title in ("Holiday", "Plans", "nul\0byte \ud800"):
            await _retitle(store, title)
            assert await store.sessions.titles(OWNER, ["ses_1"]) == {"ses_1": title}
        await _retitle(store, None)
        await _retitle(store, None)
        assert await store.sessions.titles(OWNER, ["ses_1"]) == {}
        assert await store.sessions.titles(OWNER, []) == {}

    async def test_a_turn_leaves_the_title_alone(self, store: HostStateStore) -> None:
        await keep_session(store, session("ses_1"), build_messages("one"))
        await _retitle(store, "Holiday")
        await keep_session(store, session("ses_1", turns=2, messages=2), build_messages("two"))
        assert await store.sessions.titles(OWNER, ["ses_1"]) == {"ses_1": "Holiday"}

    async def test_a_title_is_for_a_session_of_the_owner_that_is_there(self, store: HostStateStore) -> None:
        await keep_session(store, session("ses_1"), build_messages("one"))
        await _retitle(store, "Mine")
        for title in ("Theirs", None):
            await _retitle(store, title, owner=OTHER)
        await _retitle(store, "Nothing", session_id="ses_2")
        assert await store.sessions.titles(OWNER, ["ses_1", "ses_2"]) == {"ses_1": "Mine"}
        assert await store.sessions.titles(OTHER, ["ses_1", "ses_2"]) == {}
        # A session that comes later is not called what somebody said before.
        await keep_session(store, session("ses_2"), build_messages("two"))
        assert await store.sessions.titles(OWNER, ["ses_2"]) == {}

    async def test_a_title_that_was_not_committed_is_none(self, store: HostStateStore) -> None:
        await keep_session(store, session("ses_1"), build_messages("one"))
        with suppress(RuntimeError):
            async with store.transaction() as transaction:
                transaction.title_session(OWNER, "ses_1", "Never")
                raise RuntimeError("stop")
        assert await store.sessions.titles(OWNER, ["ses_1"]) == {}

    async def test_sessions_of_odd_names_have_titles_of_their_own(self, store: HostStateStore) -> None:
        for number, odd in enumerate(ODD_KEYS):
            await keep_session(store, session(odd), build_messages(f"first {number}"))
            await _retitle(store, f"title {number}", session_id=odd)
        expected = {odd: f"title {number}" for number, odd in enumerate(ODD_KEYS)}
        assert await store.sessions.titles(OWNER, ODD_KEYS) == expected
        first = await store.sessions.first_messages(OWNER, ODD_KEYS)
        assert {odd: texts(messages) for odd, messages in first.items()} == {
            odd: [f"first {number}"] for number, odd in enumerate(ODD_KEYS)
        }

    async def test_a_session_begins_with_its_first_turn(self, store: HostStateStore) -> None:
        await keep_session(store, session("ses_1"), build_messages("one", "two"))
        await keep_session(store, session("ses_1", turns=2), build_messages("three"))
        await keep_session(store, session("ses_2", owner=OTHER), build_messages("theirs"))
        await keep_session(store, session("ses_3"), ())
        first = await store.sessions.first_messages(OWNER, ["ses_1", "ses_2", "ses_3", "ses_4"])
        assert {name: texts(messages) for name, messages in first.items()} == {"ses_1": ["one", "two"]}
        assert await store.sessions.first_messages(OWNER, []) == {}
