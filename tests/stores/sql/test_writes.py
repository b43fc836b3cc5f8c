"""Many transactions in few statements come to the same as one after the other."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.models.session import Lease
from frontdesk.stores.sql.tables import GRANTS, HISTORY, LAST_SEEN, LINKS, Table
from frontdesk.stores.sql.writes import Do, Fence, Group, Op, Put, Write, group, group_writes

World = dict[str, Any]

small = st.integers(0, 2).map(str)
puts = st.one_of(
    st.builds(lambda key, data: Put(GRANTS, (key, 1.0, data)), small, st.binary(max_size=2)),
    st.builds(lambda key, at: Put(LAST_SEEN, (key, at, b"%d" % at)), small, st.integers(0, 3)),
    st.builds(lambda *row: Put(LINKS, row), small, small, small, st.binary(max_size=2)),
    st.builds(lambda key, data: Put(HISTORY, (key, data)), small, st.binary(max_size=2)),
)
fences = st.builds(lambda fence: Fence(Lease(session_id="s", fence=fence), False), st.integers(1, 3))
# Statements that see what was put before them, and change it.
does = st.sampled_from([Do("count"), Do("drop grants")])
transactions = st.lists(st.lists(puts | fences | does, max_size=4), max_size=8)


def put(world: World, table: Table, row: Sequence[Any]) -> None:
    if table.unique:
        rows = world.setdefault(table.name, {})
        known = rows.get(table.get_key(row))
        if known is None or not table.newest or table.extract_time(known) <= table.extract_time(row):
            rows[table.get_key(row)] = row
    else:
        world.setdefault(table.name, []).append(row)


def do(world: World, op: Do) -> None:
    if op.sql == "drop grants":
        world.pop(GRANTS.name, None)
    else:
        world.setdefault("counts", []).append({name: len(rows) for name, rows in world.items() if name != "counts"})


def one_by_one(writes: Sequence[Sequence[Op]]) -> World:
    world: World = {}
    for ops in writes:
        for op in ops:
            if isinstance(op, Put):
                put(world, op.table, op.row)
            elif isinstance(op, Do):
                do(world, op)
    return world


def together(writes: Sequence[Sequence[Op]]) -> World:
    world: World = {}
    for unit in group_writes([Write(ops) for ops in writes]):
        if isinstance(unit, Group):
            for table, rows in unit.rows:
                for row in rows:
                    put(world, table, row)
        else:
            for op in unit.ops:
                if isinstance(op, Put):
                    put(world, op.table, op.row)
                elif isinstance(op, Do):
                    do(world, op)
    return world


def of_each_session(world: World) -> World:
    """The messages of two sessions have no order between them."""
    rows = world.get(HISTORY.name, [])
    return {**world, HISTORY.name: {key: [row for row in rows if row[0] == key] for key in "012"}}


@given(transactions)
def test_the_result_is_the_same_as_one_by_one(writes: list[list[Op]]) -> None:
    assert of_each_session(together(writes)) == of_each_session(one_by_one(writes))


@given(transactions)
def test_every_transaction_is_in_one_unit_in_its_order(writes: list[list[Op]]) -> None:
    made = [Write(ops) for ops in writes]
    found = [one for unit in group_writes(made) for one in (unit.writes if isinstance(unit, Group) else [unit])]
    assert found == made


@given(transactions)
def test_no_statement_has_the_same_key_twice(writes: list[list[Op]]) -> None:
    # Postgres refuses to change a row twice in one statement.
    for unit in group_writes([Write(ops) for ops in writes]):
        if isinstance(unit, Group):
            for table, rows in unit.rows:
                keys = [table.get_key(row) for row in rows] if table.unique else []
                assert len(keys) == len(set(keys))


def test_two_processes_lock_rows_in_the_same_order() -> None:
    one, other = Put(GRANTS, ("a", 1.0, b"")), Put(GRANTS, ("b", 1.0, b""))
    link = Put(LINKS, ("a", "b", "c", b""))
    assert group([Write([one, other, link])]).rows == group([Write([link, other]), Write([one])]).rows


def test_what_a_write_says_of_itself() -> None:
    fence = Fence(Lease(session_id="s", fence=1), keep=True)
    assert Write([fence, Put(HISTORY, ("s", b""))]).plain
    assert not Write([fence, Do("count")]).plain
    assert Write([fence, Do("count")]).fences == [fence]
    assert list(group_writes([])) == []
