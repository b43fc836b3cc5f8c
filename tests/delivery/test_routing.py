"""Where an answer goes, as a table and as rules that no input breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.delivery.routing import CODES, KEPT_APART, MUTE, NOT_LATELY, UNKNOWN, route
from frontdesk.models.delivery import Route, Skipped
from frontdesk.models.identity import ChannelIdentity, LastSeen
from frontdesk.models.reply import Address, ResponseTarget
from frontdesk.serialization.codec import decode, encode

HOME = ChannelIdentity(channel="web", native_id="alice")
TELEGRAM = ChannelIdentity(channel="telegram", native_id="42")
TELEGRAM_TOO = ChannelIdentity(channel="telegram", native_id="43")
SLACK = ChannelIdentity(channel="slack", native_id="U1")
EMAIL = ChannelIdentity(channel="email", native_id="a@b.c")
EVERYWHERE = (HOME, TELEGRAM, SLACK, EMAIL)
PUSHING = ("telegram", "slack", "web")

at = Address.of


def build_seen(who: ChannelIdentity, at: float = 0.0) -> LastSeen:
    return LastSeen(isolation_key="alice", identity=who, conversation_id=None, at=at)


def build_skipped(*pairs: tuple[Address, str]) -> tuple[Skipped, ...]:
    return tuple(Skipped(address=address, reason=reason, code=CODES[reason]) for address, reason in pairs)


def back(*reasons: tuple[Address, str], fallback: bool = True) -> Route:
    return Route(originating=True, skipped=build_skipped(*reasons), fallback=fallback)


def only(*destinations: ChannelIdentity, skip: tuple[tuple[Address, str], ...] = ()) -> Route:
    return Route(originating=False, destinations=tuple(map(at, destinations)), skipped=build_skipped(*skip))


def nowhere(channel: str) -> Address:
    return Address(channel=channel, native_id="")


TABLE: dict[str, tuple[ResponseTarget, LastSeen | None, Route]] = {
    "originating": (ResponseTarget.originating(), build_seen(TELEGRAM), back(fallback=False)),
    "none": (ResponseTarget.none(), build_seen(TELEGRAM), Route(originating=False)),
    "active: elsewhere": (ResponseTarget.active(), build_seen(TELEGRAM), only(TELEGRAM)),
    "active: here": (ResponseTarget.active(), build_seen(HOME), back(fallback=False)),
    "active: never seen": (ResponseTarget.active(), None, back()),
    "active: on a mute channel": (ResponseTarget.active(), build_seen(EMAIL), back((at(EMAIL), MUTE))),
    "channel": (ResponseTarget.channel("telegram"), None, only(TELEGRAM)),
    "channel: the same": (ResponseTarget.channel("web"), None, back(fallback=False)),
    "channel: mute": (ResponseTarget.channel("email"), None, back((at(EMAIL), MUTE))),
    "channel: not known there": (ResponseTarget.channel("sms"), None, back((nowhere("sms"), UNKNOWN))),
    "channels": (ResponseTarget.channels(["slack", "telegram"]), None, only(SLACK, TELEGRAM)),
    "channels: one twice": (ResponseTarget.channels(["slack", "slack"]), None, only(SLACK)),
    "channels: one is mute": (
        ResponseTarget.channels(["telegram", "email"]),
        None,
        only(TELEGRAM, skip=((at(EMAIL), MUTE),)),
    ),
    "channels: and here": (
        ResponseTarget.channels(["telegram", "web"]),
        None,
        Route(originating=True, destinations=(at(TELEGRAM),)),
    ),
    "channels: and back": (
        ResponseTarget.channels(["originating", "telegram"]),
        None,
        Route(originating=True, destinations=(at(TELEGRAM),)),
    ),
    "channels: only back": (ResponseTarget.channels(["originating"]), None, back(fallback=False)),
    "channels: none named": (ResponseTarget.channels([]), None, back()),
    "identity": (ResponseTarget.identity(SLACK), None, only(SLACK)),
    "identity: oneself": (ResponseTarget.identity(HOME), None, back(fallback=False)),
    "identity: somebody the host does not know": (
        ResponseTarget.identity(TELEGRAM_TOO),
        None,
        only(TELEGRAM_TOO),
    ),
    "identities": (
        ResponseTarget.identities([SLACK, EMAIL, HOME]),
        None,
        Route(originating=True, destinations=(at(SLACK),), skipped=build_skipped((at(EMAIL), MUTE))),
    ),
    "all linked": (
        ResponseTarget.all_linked(),
        None,
        Route(originating=True, destinations=(at(TELEGRAM), at(SLACK)), skipped=build_skipped((at(EMAIL), MUTE))),
    ),
}


@pytest.mark.parametrize(("target", "last_seen", "expected"), TABLE.values(), ids=TABLE.keys())
def test_the_table(target: ResponseTarget, last_seen: LastSeen | None, expected: Route) -> None:
    assert route(target, origin=HOME, known=EVERYWHERE, last_seen=last_seen, pushing=PUSHING) == expected


# Where it was asked, where the person was last seen (from 100 on that counts), whether a caller waits, and the route.
ACTIVE: dict[str, tuple[ChannelIdentity, LastSeen | None, bool, Route]] = {
    "elsewhere": (HOME, build_seen(TELEGRAM, 100), False, only(TELEGRAM)),
    "elsewhere, and somebody waits": (HOME, build_seen(TELEGRAM, 100), True, only(TELEGRAM)),
    "here": (HOME, build_seen(HOME, 100), False, back(fallback=False)),
    "here, long ago": (HOME, build_seen(HOME, 99), False, back()),
    "elsewhere, long ago": (HOME, build_seen(TELEGRAM, 99), False, back((at(TELEGRAM), NOT_LATELY))),
    "never": (HOME, None, False, back()),
    "on a mute channel": (HOME, build_seen(EMAIL, 100), False, back((at(EMAIL), MUTE))),
    "on the wire that waits": (EMAIL, build_seen(EMAIL, 100), True, back(fallback=False)),
    "on a wire that nobody waits at": (EMAIL, build_seen(EMAIL, 100), False, only(HOME, TELEGRAM, SLACK)),
    "elsewhere, long ago, and nobody waits": (EMAIL, build_seen(SLACK, 99), False, only(SLACK, HOME, TELEGRAM)),
    "never, and nobody waits": (EMAIL, None, False, only(HOME, TELEGRAM, SLACK)),
    "elsewhere, and asked on a wire": (EMAIL, build_seen(SLACK, 100), False, only(SLACK)),
}


@pytest.mark.parametrize(("origin", "last_seen", "waiting", "expected"), ACTIVE.values(), ids=ACTIVE.keys())
def test_where_an_active_person_is(
    origin: ChannelIdentity, last_seen: LastSeen | None, waiting: bool, expected: Route
) -> None:
    found = route(
        ResponseTarget.active,
        origin=origin,
        known=EVERYWHERE,
        last_seen=last_seen,
        pushing=PUSHING,
        active_since=100,
        waiting=waiting,
    )
    assert found == expected


def test_somebody_active_who_can_be_reached_nowhere_can_poll_where_they_asked() -> None:
    found = route(ResponseTarget.active, origin=EMAIL, known=(EMAIL,), last_seen=build_seen(EMAIL), waiting=False)
    assert found == back()


def test_a_person_is_not_followed_to_a_channel_that_is_kept_apart() -> None:
    found = route(ResponseTarget.active, origin=HOME, last_seen=build_seen(SLACK), pushing=PUSHING, allow=apart)
    assert found == back((at(SLACK), KEPT_APART))


def test_somebody_whom_nobody_knows_elsewhere_is_answered_where_they_are() -> None:
    assert route(ResponseTarget.all_linked(), origin=HOME) == back()
    assert route(ResponseTarget.channel("telegram"), origin=HOME) == back((nowhere("telegram"), UNKNOWN))


def test_the_word_originating_in_a_list_of_channels_was_an_unknown_channel() -> None:
    found = route(ResponseTarget.channels(["originating", "email"]), origin=HOME, known=(EMAIL,), pushing=PUSHING)
    assert found == Route(originating=True, skipped=build_skipped((at(EMAIL), MUTE)))


def test_why_somebody_gets_nothing_was_told_in_words_alone() -> None:
    found = route(
        ResponseTarget.channels(["sms", "email", "slack"]),
        origin=HOME,
        known=EVERYWHERE,
        pushing=PUSHING,
        allow=apart,
    )
    assert [one.code for one in found.skipped] == ["unknown_recipient", "no_push_capability", "link_policy"]


def test_two_identities_on_one_channel_both_get_the_answer() -> None:
    known = (TELEGRAM, TELEGRAM_TOO)
    found = route(ResponseTarget.channel("telegram"), origin=HOME, known=known, pushing=PUSHING)
    assert found == only(TELEGRAM, TELEGRAM_TOO)


def apart(source: str, destination: str) -> bool:
    """A policy that lets nothing of the web be heard on Slack."""
    return (source, destination) != ("web", "slack")


def test_the_link_policy_is_asked_about_every_destination() -> None:
    found = route(ResponseTarget.all_linked(), origin=HOME, known=EVERYWHERE, pushing=PUSHING, allow=apart)
    assert found.destinations == (at(TELEGRAM),)
    assert found.skipped == build_skipped((at(SLACK), KEPT_APART), (at(EMAIL), MUTE))
    # Whoever named it: what a hook names is granted, but not what the policy keeps apart.
    found = route(ResponseTarget.identity(SLACK), origin=HOME, known=EVERYWHERE, pushing=PUSHING, allow=apart)
    assert found == back((at(SLACK), KEPT_APART))


def test_a_channel_may_always_be_heard_on_itself() -> None:
    found = route(
        ResponseTarget.identity(TELEGRAM_TOO), origin=TELEGRAM, pushing=PUSHING, allow=lambda source, there: False
    )
    assert found == only(TELEGRAM_TOO)


channels = st.sampled_from(["web", "telegram", "slack", "email", "sms"])
identities = st.builds(ChannelIdentity, channel=channels, native_id=st.sampled_from(["alice", "1", "2"]))
targets = st.one_of(
    st.builds(ResponseTarget.originating),
    st.builds(ResponseTarget.none),
    st.builds(ResponseTarget.active),
    st.builds(ResponseTarget.all_linked),
    st.builds(ResponseTarget.channels, st.lists(channels, max_size=4)),
    st.builds(ResponseTarget.identities, st.lists(identities, max_size=4)),
)


@given(
    target=targets,
    origin=identities,
    known=st.lists(identities, max_size=5),
    last=st.none() | identities,
    pushing=st.frozensets(channels),
    kept_apart=st.frozensets(st.tuples(channels, channels)),
    lately=st.booleans(),
    waiting=st.booleans(),
)
def test_no_answer_is_lost_doubled_or_sent_where_it_may_not_go(
    target: ResponseTarget,
    origin: ChannelIdentity,
    known: list[ChannelIdentity],
    last: ChannelIdentity | None,
    pushing: frozenset[str],
    kept_apart: frozenset[tuple[str, str]],
    lately: bool,
    waiting: bool,
) -> None:
    found = route(
        target,
        origin=origin,
        known=known,
        last_seen=None if last is None else build_seen(last),
        pushing=pushing,
        allow=lambda source, there: (source, there) not in kept_apart,
        active_since=0.0 if lately else 1.0,
        waiting=waiting,
    )
    assert found.originating or found.destinations or target.kind == "none"
    assert len(set(found.destinations)) == len(found.destinations)
    assert at(origin) not in found.destinations
    assert all(address.channel in pushing for address in found.destinations)
    allowed = {at(one) for one in known} | set(target.addresses) | ({at(last)} if last is not None else set())
    assert set(found.destinations) <= allowed
    assert not set(found.destinations) & {one.address for one in found.skipped}
    assert all(one.reason for one in found.skipped)
    assert not any(
        (origin.channel, one.channel) in kept_apart for one in found.destinations if one.channel != origin.channel
    )
    assert found.fallback == (
        found.originating
        and not found.destinations
        and target.kind != "originating"
        and not _home_is_wanted(
            target, origin, known, last if lately and (waiting or origin.channel in pushing) else None
        )
    )
    if target.kind == "active" and found.destinations:
        # One place if it is followed, and all of them only if nothing else can be reached.
        followed = last is not None and lately and found.destinations == (at(last),)
        assert followed or not (waiting or origin.channel in pushing)


def _home_is_wanted(
    target: ResponseTarget, origin: ChannelIdentity, known: list[ChannelIdentity], last: ChannelIdentity | None
) -> bool:
    if target.kind == "identities":
        return at(origin) in target.addresses
    if target.kind == "active":
        return last is not None and at(last) == at(origin)
    here = at(origin) in {at(one) for one in known}
    return here and (target.kind == "all_linked" or origin.channel in target.names)


@given(target=targets | st.builds(ResponseTarget.channels, st.lists(channels, max_size=4), echo_input=st.booleans()))
def test_a_target_is_a_key_and_survives_json(target: ResponseTarget) -> None:
    again = decode(encode(target))
    assert again == target
    assert {target: 1}[again] == 1
