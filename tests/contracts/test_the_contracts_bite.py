"""A contract that nothing can break promises nothing: here things are broken, and it has to notice."""

from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.data.identity import IdentityRecord
from frontdesk.data.session import Lease
from frontdesk.stores.memory import InMemoryStateStore, MemoryTransaction
from frontdesk.testing import ChannelContract, StoreContract
from tests.contracts.test_channels import TestInvocations as Invocations


class HalfTransaction(MemoryTransaction):
    """Writes what it can, and then complains."""

    async def __aexit__(self, *error: Any) -> None:
        for write, arguments in self._writes:
            write(*arguments)
        await super().__aexit__(*error)


def half_written(store: InMemoryStateStore) -> None:
    store.transaction = lambda: HalfTransaction(store)  # type: ignore[method-assign]


def never_fenced(store: InMemoryStateStore) -> None:
    store.sessions.check = lambda lease, session_id: None  # type: ignore[method-assign]


def same_fence(store: InMemoryStateStore) -> None:
    async def claim(session_id: str) -> Lease:
        return Lease(session_id=session_id, fence=1)

    store.sessions.claim = claim  # type: ignore[method-assign]


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
    store.approvals.check = lambda owner, approval_id: None  # type: ignore[method-assign]


def forgets_events(store: InMemoryStateStore) -> None:
    plain = store.inbox.finish

    def finish(item: Any) -> None:
        plain(item)
        store.inbox.known.pop((item.channel, item.event_id))

    store.inbox.finish = finish  # type: ignore[method-assign]


STORE_FAULTS: list[tuple[Callable[[InMemoryStateStore], None], str]] = [
    (half_written, "test_a_lease_that_has_ended_writes_nothing"),
    (half_written, "test_an_approval_that_does_not_wait_writes_nothing"),
    (never_fenced, "test_a_newer_lease_ends_the_older"),
    (same_fence, "test_of_twenty_claims_at_once_only_the_last_may_write"),
    (last_key_wins, "test_of_twenty_keys_at_once_one_stays"),
    (open_to_all, "test_one_id_of_two_owners_is_two_runs"),
    (answers_again, "test_of_twenty_answers_at_once_one_counts"),
    (forgets_events, "test_a_finished_event_stays_known"),
]


@pytest.mark.parametrize(("fault", "question"), STORE_FAULTS, ids=lambda one: getattr(one, "__name__", one))
async def test_a_broken_store_is_found_out(fault: Callable[[InMemoryStateStore], None], question: str) -> None:
    ask = getattr(StoreContract(), question)
    await ask(InMemoryStateStore())
    broken = InMemoryStateStore()
    fault(broken)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await ask(broken)


async def test_a_store_that_mixes_up_names_is_found_out() -> None:
    broken = InMemoryStateStore()
    case_blind(broken)
    with pytest.raises(AssertionError):
        await StoreContract().test_odd_names_are_names_like_any_other(broken, "value")


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
