"""What is written as an array is what Postgres reads."""

from typing import Any

import psycopg
import pytest

from frontdesk.stores.sql.postgres.connections import columns

CASES = [
    ("text", ["", "plain", 'é 𝄞 {"a", NULL}', None]),
    ("bytea", [b"", b"\x00\xff", None]),
    ("double precision", [0.0, -1.5, 1e300, float("inf"), None]),
    ("bigint", [0, -1, 2**63 - 1, -(2**63), None]),
    ("smallint", [0, -1, 2**15 - 1, None]),
    ("boolean", [True, False, None]),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[kind for kind, _ in CASES])
def test_values_come_back(postgres: str, kind: str, values: list[Any]) -> None:
    with psycopg.connect(postgres) as connection:
        for some in (values, values[:1], [None]):
            (array,) = columns([kind], [[one] for one in some])
            found = connection.execute(f"SELECT %b::{kind}[]", [array]).fetchall()  # type: ignore[arg-type]
            assert found == [(some,)]


def test_columns_of_rows(postgres: str) -> None:
    rows = [("a", 1, None), ("b", None, b"x")]
    given = columns(("text", "bigint", "bytea"), rows)
    with psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT * FROM unnest(%b::text[], %b::bigint[], %b::bytea[])", given).fetchall()
    assert found == rows


@pytest.mark.parametrize(("kind", "value"), [("smallint", 2**15), ("bigint", 2**63), ("double precision", "x")])
def test_what_a_column_can_not_take_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(psycopg.DataError):
        columns([kind], [[value]])
