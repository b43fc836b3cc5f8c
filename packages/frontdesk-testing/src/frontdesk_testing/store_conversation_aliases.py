"""The contract of a store for conversations that have moved."""

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.conversation import ConversationAlias, merge_aliases
from frontdesk_testing.store_samples import ODD_KEYS, move_conversation


async def names(store: HostStateStore, *wanted: str) -> list[tuple[str, str, str | None]]:
    """Return the first, the current and the next name of each."""
    found = [await store.conversation_aliases.find("chat", name) for name in wanted]
    return [(one.first_name, one.current_name, one.next_name) for one in found if one is not None]


class ConversationAliases:
    """Names of conversations, by channel."""

    async def test_every_name_of_a_chain_knows_the_first_and_the_current(self, store: HostStateStore) -> None:
        assert await store.conversation_aliases.find("chat", "a") is None
        assert await move_conversation(store, "a", "b")
        assert await names(store, "a", "b") == [("a", "b", "b"), ("a", "b", None)]
        assert await move_conversation(store, "b", "c")
        assert not await move_conversation(store, "a", "b")
        assert await names(store, "a", "b", "c") == [("a", "c", "b"), ("a", "c", "c"), ("a", "c", None)]
        assert await store.conversation_aliases.find("other", "a") is None

    async def test_two_chains_become_one(self, store: HostStateStore) -> None:
        for old, new in (("a", "b"), ("c", "d"), ("b", "c")):
            assert await move_conversation(store, old, new)
        chain = [("a", "d", "b"), ("a", "d", "c"), ("a", "d", "d"), ("a", "d", None)]
        assert await names(store, "a", "b", "c", "d") == chain

    async def test_channels_on_which_conversations_have_moved_are_known(self, store: HostStateStore) -> None:
        channels = ["chat", "other", *ODD_KEYS]
        assert list(await store.conversation_aliases.moved_on(channels)) == []
        for channel in ("chat", *ODD_KEYS):
            assert await move_conversation(store, "a", "b", channel)
        assert set(await store.conversation_aliases.moved_on(channels)) == {"chat", *ODD_KEYS}

    async def test_names_that_were_changed_meanwhile_stay(self, store: HostStateStore) -> None:
        first, second = merge_aliases("a", "b", None, None), merge_aliases("b", "a", None, None)
        assert first is not None
        assert second is not None
        assert await store.conversation_aliases.merge("chat", first, version=0)
        for version in (0, 2):
            assert not await store.conversation_aliases.merge("chat", second, version=version)
        assert await names(store, "a", "b") == [("a", "b", "b"), ("a", "b", None)]

    async def test_odd_names_of_conversations_are_like_any_other(self, store: HostStateStore) -> None:
        for number, odd in enumerate(ODD_KEYS):
            assert await move_conversation(store, odd, f"new {number}")
        for number, odd in enumerate(ODD_KEYS):
            new = ConversationAlias(name=f"new {number}", first_name=odd, current_name=f"new {number}")
            assert await store.conversation_aliases.find("chat", f"new {number}") == new
