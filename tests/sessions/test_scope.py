"""The whole table of which session a tracked message belongs to."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.models.request import ConversationScope
from frontdesk.models.session import SessionName
from frontdesk.sessions.scope import SHARED, build_tracked_name

PERSON = SessionName(owner="alice", kind="tracked")
PERSON_HERE = SessionName(owner="alice", kind="tracked", channel="telegram", conversation_id="g")
EVERYBODY_HERE = SessionName(owner=SHARED, kind="tracked", channel="telegram", conversation_id="g")

TABLE: list[tuple[ConversationScope, bool, str | None, SessionName]] = [
    ("per_user", False, None, PERSON),
    ("per_user", False, "g", PERSON),
    ("per_user", True, None, PERSON),
    ("per_user", True, "g", PERSON),
    ("per_user_per_conversation", False, None, PERSON),
    ("per_user_per_conversation", False, "g", PERSON),
    ("per_user_per_conversation", True, None, PERSON),
    ("per_user_per_conversation", True, "g", PERSON_HERE),
    ("per_conversation", False, None, PERSON),
    ("per_conversation", False, "g", PERSON),
    ("per_conversation", True, None, PERSON),
    ("per_conversation", True, "g", EVERYBODY_HERE),
]


@pytest.mark.parametrize(("scope", "group", "conversation_id", "expected"), TABLE)
def test_the_table(scope: ConversationScope, group: bool, conversation_id: str | None, expected: SessionName) -> None:
    name = build_tracked_name(scope, owner="alice", channel="telegram", conversation_id=conversation_id, group=group)
    assert name == expected


def test_the_table_is_whole() -> None:
    scopes = ("per_user", "per_user_per_conversation", "per_conversation")
    assert {row[:3] for row in TABLE} == set(product(scopes, (False, True), (None, "g")))


scopes = st.sampled_from(["per_user", "per_user_per_conversation", "per_conversation"])
people = st.text(min_size=1, max_size=5)


@given(scope=scopes, one=people, two=people, channel=st.text(max_size=3), chat=st.none() | st.text(max_size=3))
def test_two_people_share_a_session_in_a_group_only(
    scope: ConversationScope, one: str, two: str, channel: str, chat: str | None
) -> None:
    for group in (False, True):
        names = [
            build_tracked_name(scope, owner=owner, channel=channel, conversation_id=chat, group=group)
            for owner in (one, two)
        ]
        shared = group and chat is not None and scope == "per_conversation"
        assert (names[0] == names[1]) == (one == two or shared)
