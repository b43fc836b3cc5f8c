"""Keys: every text is one, no two are the same, and the plain ones stay as they are."""

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.models.session import SessionName
from frontdesk.stores.sql.tables import GRANTS, HISTORY, LINKS, Table, arrays_sql, key, name_key, values_sql

TEXTS = st.text(max_size=300) | st.text("\x00\x01ab", max_size=5) | st.characters(categories=["Cs"])
PLAIN = st.text(st.characters(categories=["L", "N", "P"]), max_size=200)


@given(TEXTS, TEXTS)
def test_two_texts_have_two_keys(one: str, other: str) -> None:
    assert (key(one) == key(other)) is (one == other)
    # Nor is one text the key of another.
    assert key(one) != other or one == other


@given(PLAIN)
def test_a_plain_text_is_its_own_key(text: str) -> None:
    assert key(text) == text


@given(TEXTS | st.text(min_size=1000, max_size=1100))
def test_every_key_can_be_stored(text: str) -> None:
    stored = key(text)
    assert "\0" not in stored
    # An index of Postgres takes 2,704 bytes, and no key has more than three columns.
    assert len(stored.encode()) <= 800


NAMES = st.builds(
    SessionName,
    owner=st.text(max_size=3),
    kind=st.sampled_from(["named", "tracked"]),
    value=st.text(max_size=3),
    channel=st.text(max_size=3),
    conversation_id=st.text(max_size=3),
)


@given(NAMES, NAMES)
def test_two_names_have_two_keys(one: SessionName, other: SessionName) -> None:
    assert (name_key(one) == name_key(other)) is (one == other)
    assert name_key(one).isalnum()


def columns(sql: str) -> str:
    return " ".join(sql.split())


def test_rows_are_put_in_the_words_of_each_database() -> None:
    assert columns(values_sql(HISTORY, 2)) == "INSERT INTO history (session_id, data) VALUES (?, ?), (?, ?)"
    assert columns(values_sql(GRANTS, 1)) == (
        "INSERT INTO grants (grant_id, expires_at, data) VALUES (?, ?, ?) "
        "ON CONFLICT (grant_id) DO UPDATE SET expires_at = excluded.expires_at, data = excluded.data"
    )
    assert columns(arrays_sql(HISTORY)) == (
        "INSERT INTO history (session_id, data) SELECT * FROM unnest(%b::text[], %b::bytea[])"
    )


def test_the_key_of_a_row_comes_first_in_every_table() -> None:
    from frontdesk.stores.sql import tables

    for table in vars(tables).values():
        if isinstance(table, Table):
            assert table.columns[: len(table.unique)] == table.unique
            assert len(table.columns) == len(table.types)
    assert LINKS.get_key(("a", "b", "c", None, 0.0, b"")) == ("a", "b")
