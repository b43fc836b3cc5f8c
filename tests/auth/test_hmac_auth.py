"""Signed requests: what counts, and how often."""

import hashlib
import hmac
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import HmacAuth, HmacHeaders, Principal, Secret
from frontdesk.auth.nonces import ProcessNonces
from frontdesk.errors import TooManyRequestsError, UnauthenticatedError, UnavailableError
from frontdesk_testing.clock import FakeClock

SECRET = "the secret of alice and us"
OLD = "the secret that alice had"
NOW = 1_800_000_000.5


def make(secrets: Any = None, **options: Any) -> tuple[HmacAuth, FakeClock]:
    """An auth that has been there for a while."""
    clock = FakeClock(NOW - 1000)
    auth = HmacAuth(secrets or {"alice": SECRET, "bob": "bob's secret, long enough"}, clock=clock, **options)
    clock.set(NOW)
    return auth, clock


def get_scope(method: str = "POST", target: str = "/invocations?a=b%20c", kind: str = "http") -> dict[str, Any]:
    path, _, query = target.partition("?")
    scope: dict[str, Any] = {"type": kind, "raw_path": path.encode(), "path": path, "query_string": query.encode()}
    return {**scope, "method": method} if kind == "http" else scope


def raw(headers: dict[str, str], **changes: str | None) -> dict[bytes, bytes]:
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    merged = {**headers, **named}
    return {name.encode(): value.encode("latin-1") for name, value in merged.items() if value is not None}


async def ask(auth: HmacAuth, headers: dict[bytes, bytes], **where: str) -> Principal | None:
    return await auth.authenticate_request(get_scope(**where), headers)


async def refusal(auth: HmacAuth, headers: dict[bytes, bytes], **where: str) -> str:
    with pytest.raises(UnauthenticatedError) as caught:
        await ask(auth, headers, **where)
    assert SECRET not in caught.value.message
    return caught.value.code


def sign(auth: HmacAuth, principal: str = "alice", **given: Any) -> dict[str, str]:
    return auth.sign(principal, "POST", "/invocations?a=b%20c", b'{"message":"hi"}', **given)


class TestGoodSignatures:
    async def test_a_signature_that_any_tool_can_make_is_good(self) -> None:
        auth, _ = make()
        body_hash = hashlib.sha256(b"{}").hexdigest()
        lines = ["v2", "alice", "POST", "/invocations?a=b%20c", "1800000000", "nonce-42", body_hash]
        lines += ["x-agent-invocation-id:mine", "x-agent-session-id:one"]
        signature = hmac.new(SECRET.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
        headers = {
            b"x-signature-principal": b"alice",
            b"x-signature-timestamp": b"1800000000",
            b"x-signature-nonce": b"nonce-42",
            b"x-content-sha256": body_hash.encode(),
            b"x-signature": f"v2={signature}".encode(),
            b"x-agent-session-id": b"one",
            b"content-type": b"application/json",
            b"x-agent-invocation-id": b"mine",
        }
        assert await ask(auth, headers) == Principal(id="alice")

    async def test_what_sign_makes_is_good_once_for_each_nonce(self) -> None:
        auth, _ = make()
        for _ in range(3):
            assert await ask(auth, raw(sign(auth))) == Principal(id="alice")

    async def test_secrets_can_be_changed_without_a_break(self) -> None:
        theirs, _ = make({"alice": OLD})
        ours, _ = make({"alice": [Secret(SECRET), OLD]})
        assert await ask(ours, raw(sign(theirs))) == Principal(id="alice")
        assert await ask(ours, raw(sign(ours))) == Principal(id="alice")
        later, _ = make({"alice": SECRET})
        assert await refusal(later, raw(sign(theirs))) == "unauthenticated"

    async def test_the_headers_can_have_other_names(self) -> None:
        auth, _ = make(headers=HmacHeaders(principal="x-who", signature="x-mac"))
        headers = sign(auth)
        assert {"x-who", "x-mac", "x-signature-timestamp"} <= headers.keys()
        assert await ask(auth, raw(headers)) == Principal(id="alice")
        assert auth.body_header == b"x-content-sha256"

    async def test_a_handshake_is_signed_with_an_empty_body(self) -> None:
        auth, clock = make()
        headers = raw(auth.sign("alice", "GET", "/responses"))
        assert await ask(auth, headers, kind="websocket", target="/responses") == Principal(id="alice")
        clock.advance(10_000)
        # It has counted, and the connection is still that of the same one.
        scope = get_scope(kind="websocket", target="/responses")
        assert await auth.recheck(scope, headers) == Principal(id="alice")
        other = raw(auth.sign("alice", "GET", "/responses", b"x"))
        assert await refusal(auth, other, kind="websocket", target="/responses") == "unauthenticated"

    async def test_a_server_that_knows_no_raw_path_is_no_hindrance(self) -> None:
        auth, _ = make()
        scope = {"type": "http", "method": "GET", "path": "/a b\n", "query_string": b""}
        assert await auth.authenticate_request(scope, raw(auth.sign("alice", "GET", "/a%20b%0A")))


class TestWrongSignatures:
    async def test_none_at_all_is_somebody_elses_affair(self) -> None:
        auth, _ = make()
        for headers in ({}, {b"x-api-key": b"key"}, {b"x-signature-timestamp": b"1"}):
            assert await ask(auth, headers) is None

    @pytest.mark.parametrize(
        "changes",
        [
            {"x_signature": None},
            {"x_signature": ""},
            {"x_signature": "v2="},
            {"x_signature": "v2=" + "0" * 64},
            {"x_signature": "0" * 64},
            {"x_signature": "v1=" + "0" * 64},
            {"x_agent_invocation_id": "another"},
            {"x_agent_anything": ""},
            {"x_signature": "v2=\xff"},
            {"x_signature_principal": None},
            {"x_signature_principal": "bob"},
            {"x_signature_principal": "nobody"},
            {"x_signature_principal": "Alice"},
            {"x_signature_timestamp": None},
            {"x_signature_timestamp": "now"},
            {"x_signature_timestamp": "-1"},
            {"x_signature_timestamp": "1800000001"},
            {"x_signature_timestamp": "1" * 13},
            {"x_signature_timestamp": "1800000000.1234567"},
            {"x_signature_timestamp": "1800000000."},
            {"x_signature_timestamp": "1e9"},
            {"x_signature_nonce": None},
            {"x_signature_nonce": "short"},
            {"x_signature_nonce": "another-nonce"},
            {"x_signature_nonce": "a b c d e f"},
            {"x_signature_nonce": "n" * 129},
            {"x_content_sha256": None},
            {"x_content_sha256": "0" * 64},
            {"x_content_sha256": hashlib.sha256(b"").hexdigest().upper()},
        ],
        ids=repr,
    )
    async def test_a_part_that_is_missing_or_another_is_refused(self, changes: dict[str, str | None]) -> None:
        auth, _ = make()
        assert await refusal(auth, raw(sign(auth), **changes)) == "unauthenticated"

    @pytest.mark.parametrize(
        "where",
        [
            {"method": "DELETE"},
            {"target": "/invocations"},
            {"target": "/invocations?a=b"},
            {"target": "/other?a=b%20c"},
            {"target": "/invocations?a=b+c"},
        ],
        ids=repr,
    )
    async def test_it_is_good_for_nothing_else(self, where: dict[str, str]) -> None:
        auth, _ = make()
        assert await refusal(auth, raw(sign(auth)), **where) == "unauthenticated"

    @pytest.mark.parametrize("late", [-301, -6, 301, 100_000])
    async def test_it_is_good_for_a_while(self, late: float) -> None:
        auth, clock = make()
        headers = raw(sign(auth))
        clock.advance(late)
        assert await refusal(auth, headers) == "signature_expired"

    async def test_how_far_ahead_it_may_be_is_a_setting_of_its_own(self) -> None:
        for ahead, offset, good in ((5.0, 5, True), (5.0, 5.1, False), (0.0, 0, True), (0.0, 0.1, False)):
            auth, _ = make(max_ahead_seconds=ahead)
            headers = raw(sign(auth, timestamp=NOW + offset))
            if good:
                assert await ask(auth, headers)
            else:
                assert await refusal(auth, headers) == "signature_expired"

    @pytest.mark.parametrize("value", ["a\nb", "a\nx-agent-b:c"])
    async def test_a_header_of_two_lines_passes_for_no_two_headers(self, value: str) -> None:
        auth, _ = make()
        first, *_ = value.split("\n")
        headers = sign(auth, headers={"x-agent-a": first, "x-agent-b": "c"})
        assert await refusal(auth, raw(headers, x_agent_a=value)) == "unauthenticated"

    async def test_a_signed_header_that_comes_twice_is_refused(self) -> None:
        auth, _ = make()
        sent = {"x-agent-invocation-id": "mine"}
        headers = raw({**sent, **sign(auth, headers=sent)})
        twice = {**get_scope(), "headers": [(b"x-agent-invocation-id", b"other"), *headers.items()]}
        with pytest.raises(UnauthenticatedError, match="duplicate"):
            await auth.authenticate_request(twice, headers)

    async def test_headers_that_a_hook_reads_are_signed_by_name(self) -> None:
        auth, _ = make(signed_headers=["x-tenant"])
        sent = {"X-Tenant": " north ", "x-other": "1"}
        headers = raw(sign(auth, headers=sent), x_tenant="north", x_other="2")
        assert await ask(auth, headers) == Principal(id="alice")
        for tenant in ("south", None):
            other = raw(sign(auth, headers=sent), x_tenant=tenant)
            assert await refusal(auth, other) == "unauthenticated"


class TestRestarts:
    """What an earlier process may have accepted, and this one can't know."""

    async def ask_after(self, clock: FakeClock, headers: dict[bytes, bytes], seconds: float, **options: Any) -> str:
        """What a new process says to a signature, some time after its start."""
        auth = HmacAuth({"alice": SECRET}, clock=clock, **options)
        clock.advance(seconds)
        try:
            await ask(auth, headers)
        except (UnauthenticatedError, UnavailableError) as error:
            return error.code
        return "accepted"

    @pytest.mark.parametrize("offset", [-299, -1, 0, 0.5, 4.9])
    @pytest.mark.parametrize("seconds", [0, 1, 5, 6, 290])
    async def test_whatever_was_good_before_the_start_is_not_good_after_it(self, offset: float, seconds: float) -> None:
        before, clock = make()
        headers = raw(sign(before, timestamp=NOW + offset))
        assert await ask(before, headers)
        assert await self.ask_after(clock, headers, seconds) in ("unavailable", "signature_expired")

    async def test_it_says_when_to_come_back(self) -> None:
        clock = FakeClock(NOW)
        auth = HmacAuth({"alice": SECRET}, clock=clock)
        clock.advance(1)
        with pytest.raises(UnavailableError) as caught:
            await ask(auth, raw(sign(auth)))
        assert caught.value.retry_after == 4
        clock.advance(4)
        assert await ask(auth, raw(sign(auth)))

    async def test_without_a_tolerance_there_is_no_wait(self) -> None:
        auth = HmacAuth({"alice": SECRET}, clock=FakeClock(NOW), max_ahead_seconds=0)
        assert await ask(auth, raw(sign(auth)))
        assert await refusal(auth, raw(sign(auth, timestamp=NOW - 0.25))) == "signature_expired"

    async def test_a_store_that_survives_needs_no_wait_and_remembers(self) -> None:
        kept, clock = ProcessNonces(), FakeClock(NOW)
        headers: dict[bytes, bytes] = {}
        for start in range(3):
            auth = HmacAuth({"alice": SECRET}, clock=clock)
            auth.use_nonces(kept, durable=True)
            if not start:
                headers = raw(sign(auth, timestamp=NOW + 4))
                assert await ask(auth, headers)
            assert await refusal(auth, headers) == "signature_replayed"
            assert await ask(auth, raw(sign(auth)))

    async def test_a_restart_of_the_host_begins_anew_where_nothing_survives(self) -> None:
        auth, clock = make()
        clock.advance(1)
        auth.use_nonces(ProcessNonces(), durable=False)
        with pytest.raises(UnavailableError):
            await ask(auth, raw(sign(auth)))


class TestReplays:
    async def test_a_signature_counts_once(self) -> None:
        auth, clock = make()
        headers = raw(sign(auth))
        assert await ask(auth, headers)
        for _ in range(3):
            assert await refusal(auth, headers) == "signature_replayed"
            clock.advance(99)
        clock.advance(99)
        assert await refusal(auth, headers) == "signature_expired"

    async def test_a_signature_of_the_future_is_remembered_until_its_time_is_over(self) -> None:
        auth, clock = make(max_ahead_seconds=300)
        headers = raw(sign(auth, timestamp=NOW + 299))
        assert await ask(auth, headers)
        for _ in range(5):
            clock.advance(119)
            assert await refusal(auth, headers) == "signature_replayed"

    async def test_when_there_is_no_room_it_is_refused_and_nobody_else_is(self) -> None:
        auth, clock = make(max_remembered=3)
        first = [raw(sign(auth)) for _ in range(3)]
        for headers in first:
            assert await ask(auth, headers)
        with pytest.raises(TooManyRequestsError) as caught:
            await ask(auth, raw(sign(auth)))
        assert caught.value.retry_after == 605
        assert await ask(auth, raw(sign(auth, "bob"))) == Principal(id="bob")
        # What counted is not forgotten for the sake of what comes.
        with pytest.raises(TooManyRequestsError):
            await ask(auth, first[0])
        clock.advance(605)
        assert await ask(auth, raw(sign(auth))) == Principal(id="alice")

    async def test_there_was_no_room_until_the_time_that_a_clock_was_set_back_from(self) -> None:
        auth, clock = make(max_remembered=1)
        assert await ask(auth, raw(sign(auth)))
        clock.jump(86_400)
        # No room is given before its time either.
        with pytest.raises(TooManyRequestsError):
            await ask(auth, raw(sign(auth)))
        clock.advance(605)
        assert await ask(auth, raw(sign(auth)))
        clock.jump(-86_400)
        clock.advance(605)
        assert await ask(auth, raw(sign(auth)))

    async def test_a_stranger_takes_up_no_room(self) -> None:
        auth, _ = make(max_remembered=1)
        for number in range(50):
            await refusal(auth, raw(sign(auth), x_signature=f"v2={number:064x}"))
        assert await ask(auth, raw(sign(auth)))


@pytest.mark.parametrize(
    ("secrets", "options", "reason"),
    [
        ({"alice": ""}, {}, "shorter than"),
        ({"alice": "short"}, {}, "shorter than"),
        ({"alice": [SECRET, ""]}, {}, "shorter than"),
        ({"alice": Secret("short")}, {}, "shorter than"),
        ({"alice": []}, {}, "no secret"),
        ({"": SECRET}, {}, "has an invalid name"),
        ({"anonymous": SECRET}, {}, "has an invalid name"),
        ({"al\nice": SECRET}, {}, "has an invalid name"),
        ({"alice": SECRET, "bob": SECRET}, {}, "the same secret"),
        ({"alice": SECRET}, {"window_seconds": 0}, "positive"),
        ({"alice": SECRET}, {"max_remembered": 0}, "max_remembered must be at least 1"),
        ({"alice": SECRET}, {"max_ahead_seconds": -1}, "max_ahead_seconds"),
        ({"alice": SECRET}, {"max_ahead_seconds": 301}, "max_ahead_seconds"),
        ({"alice": SECRET}, {"signed_headers": "x-tenant"}, "signed_headers"),
        ({"alice": SECRET}, {"signed_headers": ["X-Tenant"]}, "signed_headers"),
        ({"alice": SECRET}, {"headers": HmacHeaders(nonce="x-agent-nonce")}, "name of signed_headers"),
        ({"alice": SECRET}, {"headers": HmacHeaders(nonce="x-n"), "signed_headers": ["x-n"]}, "name of signed_headers"),
        ({"alice": SECRET}, {"headers": HmacHeaders(nonce="x-signature")}, "different"),
        ({"alice": SECRET}, {"headers": HmacHeaders(nonce="X-Nonce")}, "lower-case"),
    ],
)
def test_what_is_wrong_is_found_at_once(secrets: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        HmacAuth(secrets, **options)
    assert SECRET not in str(caught.value)


def test_nobody_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        HmacAuth({})


def test_no_secret_is_shown() -> None:
    auth, _ = make()
    assert SECRET not in repr(auth) + repr(vars(auth))


@given(st.binary(max_size=80), st.sampled_from(list(HmacHeaders())))
async def test_no_bytes_in_a_header_are_more_than_a_refusal(value: bytes, name: str) -> None:
    auth, _ = make()
    headers = raw(sign(auth))
    if headers[name.encode()] == value:
        return
    with pytest.raises(UnauthenticatedError):
        await ask(auth, {**headers, name.encode(): value})


REPLICAS = 3
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 3), st.integers(0, REPLICAS - 1)),
        st.tuples(st.just("restart"), st.just(0), st.integers(0, REPLICAS - 1)),
        st.tuples(st.just("wait"), st.sampled_from([1, 4, 6, 120, 301]), st.just(0)),
    ),
    max_size=40,
)


@given(
    actions=ACTIONS,
    offsets=st.lists(st.floats(-310, 12), min_size=4, max_size=4),
    skews=st.lists(st.floats(-140, 140), min_size=REPLICAS, max_size=REPLICAS),
    durable=st.booleans(),
)
async def test_no_signature_counts_twice_over_replicas_restarts_and_clocks(
    actions: list[tuple[str, int, int]], offsets: list[float], skews: list[float], durable: bool
) -> None:
    """Replicas share a store that survives; where nothing does, there is one process after another."""
    kept, used = ProcessNonces(), [0, 0, 0, 0]
    clocks = [FakeClock(NOW + (skew if durable else 0)) for skew in skews]

    def start(number: int) -> HmacAuth:
        auth = HmacAuth({"alice": SECRET}, clock=clocks[number])
        auth.use_nonces(kept if durable else ProcessNonces(), durable=durable)
        return auth

    replicas = [start(number) for number in range(REPLICAS)]
    requests = [raw(sign(replicas[0], timestamp=NOW + offset)) for offset in offsets]
    for action, value, number in actions:
        number = number if durable else 0
        if action == "wait":
            for clock in clocks:
                clock.advance(value)
        elif action == "restart":
            replicas[number] = start(number)
        else:
            with suppress(UnauthenticatedError, UnavailableError):
                used[value] += await ask(replicas[number], requests[value]) is not None
    assert max(used) <= 1
