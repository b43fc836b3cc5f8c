"""A contract that nothing can break promises nothing: here things are broken, and it has to notice."""

import inspect
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import httpx
import pytest
from agent_framework import Message

from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import StaleTurnError
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.identity import IdentityRecord
from frontdesk.models.session import Lease
from frontdesk.stores.memory.approvals import MemoryAudit
from frontdesk.stores.memory.bounded_dict import FairBoundedDict
from frontdesk.stores.memory.store import InMemoryStateStore, MemoryTransaction
from frontdesk_testing import ChannelContract, StoreContract
from frontdesk_testing.store_isolation import READS, WRITES
from tests.contracts.test_channels import TestInvocations as Invocations


class HalfTransaction(MemoryTransaction):
    """Writes what it can, and then complains."""

    async def __aexit__(self, *error: Any) -> None:
        try:
            await super().__aexit__(*error)
        except BaseException:
            self._write()
            raise
        if error[0] is not None:
            self._write()

    def _write(self) -> None:
        for write, arguments in self._writes:
            write(*arguments)


def half_written(store: InMemoryStateStore) -> None:
    store.transaction = lambda: HalfTransaction(store)  # type: ignore[method-assign]


def never_fenced(store: InMemoryStateStore) -> None:
    store.sessions.check = lambda lease, session_id: None  # type: ignore[method-assign]


def same_fence(store: InMemoryStateStore) -> None:
    async def claim(session_id: str) -> Lease:
        return Lease(session_id=session_id, fence=1)

    store.sessions.claim = claim  # type: ignore[method-assign]


def last_told_counts(store: InMemoryStateStore) -> None:
    seen = store.identities.seen
    store.identities.see = lambda one: seen.put(one.isolation_key, one)  # type: ignore[method-assign]


def case_blind(store: InMemoryStateStore) -> None:
    plain = store.sessions.reserve

    async def reserve(name: Any, session_id: str) -> str:
        return await plain(name.replace(value=name.value.lower()), session_id)

    store.sessions.reserve = reserve  # type: ignore[method-assign]


def last_key_wins(store: InMemoryStateStore) -> None:
    async def remember(record: IdentityRecord) -> IdentityRecord:
        store.identities.save(record)
        return record

    store.identities.remember = remember  # type: ignore[method-assign]


def open_to_all(store: InMemoryStateStore) -> None:
    plain = store.runs.get

    async def get(owner: str, run_id: str) -> Any:
        for one in (owner, "alice", "bob"):
            if (found := await plain(one, run_id)) is not None:
                return found
        return None

    store.runs.get = get  # type: ignore[method-assign]


def answers_again(store: InMemoryStateStore) -> None:
    store.approvals.check = lambda owner, approval_id, status, first: None  # type: ignore[method-assign]


def begins_for_all(store: InMemoryStateStore) -> None:
    store.approvals.check_attempt = lambda owner, approval_id, attempt: None  # type: ignore[method-assign]


def releases_nothing(store: InMemoryStateStore) -> None:
    store.approvals.release = lambda owner, approval_id, attempt: None  # type: ignore[method-assign]


def forgets_events(store: InMemoryStateStore) -> None:
    plain = store.inbox.finish

    def finish(item: Any, *more: Any) -> None:
        plain(item, *more)
        store.inbox.known.pop((item.channel, item.event_id))

    store.inbox.finish = finish  # type: ignore[method-assign]


def keep_released_leases(store: InMemoryStateStore) -> None:
    store.sessions.release = lambda lease: None  # type: ignore[method-assign]


def releases_whatever_is_held(store: InMemoryStateStore) -> None:
    def release(lease: Lease) -> None:
        if (kept := store.sessions.kept.get(lease.session_id)) is not None:
            kept.fence = 0

    store.sessions.release = release  # type: ignore[method-assign]


def force_has_no_force(store: InMemoryStateStore) -> None:
    plain = store.sessions.claim

    async def claim(session_id: str, *, force: bool = False) -> Lease:
        kept = store.sessions.kept.get(session_id)
        return Lease(session_id=session_id, fence=kept.fence) if force and kept else await plain(session_id)

    store.sessions.claim = claim  # type: ignore[method-assign]


def free_after_every_write(store: InMemoryStateStore) -> None:
    plain = store.sessions.save

    def save(record: Any, lease: Lease) -> None:
        plain(record, lease)
        store.sessions.release(lease)

    store.sessions.save = save  # type: ignore[method-assign]


def all_leases_are_good(store: InMemoryStateStore) -> None:
    vars(store)["lease_seconds"] = 30.0


def grants_for_ever(store: InMemoryStateStore) -> None:
    store.identities.drop_grant = lambda grant_id: None  # type: ignore[method-assign]


def grants_for_all(store: InMemoryStateStore) -> None:
    store.identities.check_grant = lambda grant_id: None  # type: ignore[method-assign]


class FoldedShelf(FairBoundedDict[Any, Any]):
    """Takes some keys for others."""

    def __init__(self, fold: Callable[[Any], Any]) -> None:
        super().__init__(1000, lambda key, value: None)
        self._fold, plain = fold, self.get
        self.get = lambda key: plain(fold(key))

    def put(self, key: Any, value: Any) -> None:
        super().put(self._fold(key), value)

    def pop(self, key: Any) -> Any:
        return super().pop(self._fold(key))


def changes_blindly(store: InMemoryStateStore) -> None:
    store.identities.check_record = lambda record: None  # type: ignore[method-assign]


def overwrites_grants(store: InMemoryStateStore) -> None:
    store.identities.check_free = lambda grant_id, at: None  # type: ignore[method-assign]


def keeps_two_links(store: InMemoryStateStore) -> None:
    store.identities._forget_link = lambda key, link: None  # type: ignore[method-assign]


def last_link_counts(store: InMemoryStateStore) -> None:
    plain = store.identities._links

    async def linked_as(subject: str) -> Any:
        found = plain(store.identities.of_subject.get(subject, ()))
        return found[-1] if found else None

    store.identities.linked_as = linked_as  # type: ignore[method-assign]


def cancels_for_all(store: InMemoryStateStore) -> None:
    plain = store.approvals.cancel_all

    def cancel_all(owner: str, at: float, reason: str | None, audit: MemoryAudit) -> None:
        for one in list(store.approvals.owned):
            plain(one, at, reason, audit)

    store.approvals.cancel_all = cancel_all  # type: ignore[method-assign]


def fold_grants(store: InMemoryStateStore) -> None:
    store.identities.grants = FoldedShelf(lambda key: unicodedata.normalize("NFC", key))


def forgets_the_session(store: InMemoryStateStore) -> None:
    store.checkpoints.kept = FoldedShelf(lambda key: key[1])


def cuts_long_texts(store: InMemoryStateStore) -> None:
    plain = store.sessions.append

    def append(session_id: str, messages: Sequence[Any]) -> None:
        plain(session_id, [Message(one.role, [one.text[:65_536]]) for one in messages])

    store.sessions.append = append  # type: ignore[method-assign]


def one_history_for_all(store: InMemoryStateStore) -> None:
    plain, first = store.sessions.append, ""

    def append(session_id: str, messages: Sequence[Any]) -> None:
        nonlocal first
        first = first or session_id
        plain(first, messages)

    store.sessions.append = append  # type: ignore[method-assign]


def numbers_come_back(store: InMemoryStateStore) -> None:
    plain = store.conversations.delete_item

    def delete_item(*place: Any) -> None:
        plain(*place)
        store.conversations.count -= 1

    store.conversations.delete_item = delete_item  # type: ignore[method-assign]


def anybody_deletes(store: InMemoryStateStore) -> None:
    plain = store.runs.delete

    def delete(owner: str, run_id: str) -> None:
        for one in (owner, "alice"):
            plain(one, run_id)

    store.runs.delete = delete  # type: ignore[method-assign]


def everybody_asks(store: InMemoryStateStore) -> None:
    async def pending(owner: str) -> Any:
        return [one for of in list(store.approvals.owned) for one in store.approvals._list(of)]

    store.approvals.pending = pending  # type: ignore[method-assign]


def anybody_sends(store: InMemoryStateStore) -> None:
    store.outbox.check = lambda delivery: None  # type: ignore[method-assign]


def one_key_twice(store: InMemoryStateStore) -> None:
    store.outbox.check_new = lambda delivery_id: None  # type: ignore[method-assign]


def last_in_first_out(store: InMemoryStateStore) -> None:
    plain = store.outbox.open

    async def backwards(destination: Any, *, limit: int = 20) -> Any:
        return list(await plain(destination, limit=1000))[::-1][:limit]

    store.outbox.open = backwards  # type: ignore[method-assign]


def the_rest_lives(store: InMemoryStateStore) -> None:
    store.outbox.end_rest = lambda *given: None  # type: ignore[method-assign]


def everything_is_due(store: InMemoryStateStore) -> None:
    plain = store.outbox.waiting

    async def waiting(channel: str, *, now: float, **more: Any) -> Any:
        return await plain(channel, now=now + 1e9, **more)

    store.outbox.waiting = waiting  # type: ignore[method-assign]


def every_time_is_waited_for(store: InMemoryStateStore) -> None:
    plain = store.outbox.waiting

    async def waiting(channel: str, *, now: float, longest: float | None = None, **more: Any) -> Any:
        return await plain(channel, now=now, **more)

    store.outbox.waiting = waiting  # type: ignore[method-assign]


def nothing_is_stranded(store: InMemoryStateStore) -> None:
    async def stranded(*given: Any, **more: Any) -> Any:
        return ()

    store.tasks.stranded = stranded  # type: ignore[method-assign]


STORE_FAULTS: list[tuple[Callable[[InMemoryStateStore], None], str]] = [
    (half_written, "test_a_lease_that_has_ended_writes_nothing"),
    (half_written, "test_an_approval_that_does_not_wait_writes_nothing"),
    (never_fenced, "test_a_newer_lease_ends_the_older"),
    (same_fence, "test_of_twenty_claims_at_once_only_the_last_may_write"),
    (last_told_counts, "test_a_place_that_is_told_of_late_does_not_count"),
    (last_told_counts, "test_of_many_places_at_once_the_newest_counts"),
    (last_key_wins, "test_of_twenty_keys_at_once_one_stays"),
    (open_to_all, "test_one_id_of_two_owners_is_two_runs"),
    (answers_again, "test_of_twenty_answers_at_once_one_counts"),
    (answers_again, "test_the_same_answer_counts_again_until_it_is_acted_on"),
    (begins_for_all, "test_only_the_attempt_that_has_the_answer_begins"),
    (begins_for_all, "test_an_answer_that_was_not_acted_on_is_cancelled_too"),
    (releases_nothing, "test_an_answer_that_is_given_back_counts_again"),
    (forgets_events, "test_a_finished_event_stays_known"),
    (keep_released_leases, "test_a_lease_that_is_released_after_it_was_used_has_ended_too"),
    (releases_whatever_is_held, "test_releasing_again_or_an_older_lease_changes_nothing"),
    (force_has_no_force, "test_taking_by_force_ends_the_older_lease_after_what_it_has_written"),
    (free_after_every_write, "test_a_session_can_be_kept_over_what_is_written"),
    (all_leases_are_good, "test_good_leases_are_renewed_and_lost_ones_named"),
    (grants_for_ever, "test_a_grant_is_used_once"),
    (grants_for_ever, "test_of_twenty_uses_at_once_one_counts"),
    (grants_for_all, "test_what_comes_with_a_grant_that_is_not_there_is_not_written"),
    (fold_grants, "test_odd_ids_are_grants_like_any_other"),
    (changes_blindly, "test_a_change_is_made_only_by_who_knows_the_last_one"),
    (changes_blindly, "test_of_twenty_changes_at_once_one_counts"),
    (overwrites_grants, "test_a_grant_takes_only_a_free_place_where_that_is_asked_for"),
    (overwrites_grants, "test_of_twenty_for_one_free_place_one_gets_it"),
    (keeps_two_links, "test_an_identity_has_one_link"),
    (last_link_counts, "test_the_first_link_of_a_subject_counts"),
    (cancels_for_all, "test_the_open_questions_of_an_owner_are_cancelled_together"),
    (forgets_the_session, "test_a_deleted_checkpoint_is_gone_and_its_neighbours_are_not"),
    (forgets_the_session, "test_odd_ids_are_checkpoints_like_any_other"),
    (cuts_long_texts, "test_large_messages_come_back_whole"),
    (cuts_long_texts, "test_contents_of_every_kind_come_back_as_they_were"),
    (one_history_for_all, "test_two_sessions_that_take_turns_keep_their_own_messages"),
    (numbers_come_back, "test_the_number_of_a_deleted_item_is_not_given_out_again"),
    (half_written, "test_everything_at_once_from_fifty_is_written_whole_or_not_at_all"),
    (anybody_sends, "test_of_twenty_who_take_one_one_gets_it"),
    (anybody_sends, "test_whoever_changes_one_must_know_its_last_state"),
    (one_key_twice, "test_what_may_be_added_once_is_not_added_twice"),
    (last_in_first_out, "test_what_goes_to_one_destination_keeps_its_order"),
    (the_rest_lives, "test_a_dead_part_ends_what_follows_in_its_answer"),
    (everything_is_due, "test_only_the_first_says_whether_a_destination_is_due"),
    (nothing_is_stranded, "test_what_was_tried_and_is_due_too_far_ahead_is_found"),
    (every_time_is_waited_for, "test_a_time_that_is_too_far_ahead_is_not_waited_for"),
    (everybody_asks, "test_an_owner_sees_all_of_it_and_nobody_else_any"),
]


@pytest.mark.parametrize(("fault", "question"), STORE_FAULTS, ids=lambda one: getattr(one, "__name__", one))
async def test_a_broken_store_is_found_out(fault: Callable[[InMemoryStateStore], None], question: str) -> None:
    ask = getattr(StoreContract(), question)
    await ask(InMemoryStateStore())
    broken = InMemoryStateStore()
    fault(broken)
    with pytest.raises((AssertionError, pytest.fail.Exception, StaleTurnError)):
        await ask(broken)


async def test_a_store_that_mixes_up_names_is_found_out() -> None:
    broken = InMemoryStateStore()
    case_blind(broken)
    with pytest.raises(AssertionError):
        await StoreContract().test_odd_names_are_names_like_any_other(broken, "value")


async def test_a_store_in_which_anybody_deletes_is_found_out() -> None:
    await StoreContract().test_nobody_else_can_change_anything(InMemoryStateStore(), "delete_run")
    broken = InMemoryStateStore()
    anybody_deletes(broken)
    with pytest.raises(AssertionError):
        await StoreContract().test_nobody_else_can_change_anything(broken, "delete_run")


def test_every_call_in_an_owners_name_is_asked_in_anothers() -> None:
    asked: set[str] = set()
    for drawer, kind in drawers_of(HostStateStore).items():
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if {"owner", "isolation_key"} & set(inspect.signature(method).parameters):
                asked.add(f"{drawer}.{name}")
    # A new session and a new file have nothing that anybody could see; the session is looked at by its name.
    assert asked - {"sessions.begin", "files.put"} == set(READS) - {"sessions.find"}
    writes = {
        name
        for name, method in inspect.getmembers(StateTransaction, inspect.isfunction)
        if {"owner", "isolation_key"} & set(inspect.signature(method).parameters)
    }
    # Events of runs say themselves whose they are. An accepted event is new, and its owner is that of its files only.
    assert (writes | {"add_events"}) - {"accept"} == set(WRITES)


def drawers_of(kind: type) -> dict[str, type]:
    """The drawers of a store."""
    found = {name: one.fget for name, one in vars(kind).items() if isinstance(one, property)}
    hints = {name: get_type_hints(one).get("return") for name, one in found.items() if one is not None}
    return {
        name: one for name, one in hints.items() if isinstance(one, type) and one.__module__.startswith("frontdesk")
    }


class Forgetful(Invocations):
    """A channel that was given credentials to check, and does not."""

    def channel(self, **settings: Any) -> InvocationsChannel:
        return super().channel(**{**settings, "auth": None})


class Talkative(Invocations):
    """A channel whose errors have another shape than it says."""

    def error_text(self, response: httpx.Response) -> str:
        assert "detail" in response.json()
        return response.json()["detail"]


class Generous(Invocations):
    """A channel that takes bodies of any size."""

    def channel(self, **settings: Any) -> InvocationsChannel:
        return super().channel(**{**settings, "max_body_bytes": None})


CHANNEL_FAULTS: list[tuple[type[ChannelContract], str, Sequence[Any]]] = [
    (Forgetful, "test_nobody_gets_in_without_the_right_credentials", []),
    (Forgetful, "test_what_is_anothers_looks_like_what_does_not_exist", []),
    (Talkative, "test_an_unknown_method_is_a_405", []),
    (Generous, "test_the_largest_body_is_taken", []),
]


@pytest.mark.parametrize(("contract", "question", "arguments"), CHANNEL_FAULTS)
async def test_a_broken_channel_is_found_out(
    contract: type[ChannelContract], question: str, arguments: Sequence[Any]
) -> None:
    with pytest.raises(AssertionError):
        await getattr(contract(), question)(*arguments)


def test_a_contract_without_a_store_says_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="channel"):
        ChannelContract().channel()
