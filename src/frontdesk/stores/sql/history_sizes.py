"""Estimates the memory that stored messages take after parsing, without parsing them.

The stored lengths are read first. Messages of more than `READ_AHEAD_BYTES` are read for the estimate, a few at a time.
"""

from collections.abc import Sequence
from contextlib import suppress

from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import UnreadableRecordError
from frontdesk.json_size import estimate_row
from frontdesk.stores.sql.files import has_files, references_in
from frontdesk.stores.sql.writes import Engine

READ_AHEAD_BYTES = 256 * 1024
"""The bytes that are read before they are charged."""
_CHUNK_BYTES = 2 * 1024 * 1024
_MAX_ASKED = 200


async def estimate(engine: Engine, records: Sequence[bytes]) -> int:
    """Return the memory of records after decoding, with the files that they refer to, in bytes."""
    size = await run_sized(sum(map(len, records)), lambda: sum(map(estimate_row, records)))
    return size + sum(await _sizes_of_files(engine, records))


async def full_sizes(engine: Engine, records: Sequence[bytes]) -> list[int]:
    files = await _sizes_of_files(engine, records)
    return [len(data) + size for data, size in zip(records, files, strict=True)]


async def _sizes_of_files(engine: Engine, records: Sequence[bytes]) -> list[int]:
    uses = [await _list_file_ids(data) for data in records]
    ids = sorted({file_id for used in uses for file_id in used})
    sizes: dict[str, int] = {}
    for start in range(0, len(ids), _MAX_ASKED):
        asked = ids[start : start + _MAX_ASKED]
        sql = f"SELECT file_id, size FROM files WHERE file_id IN ({', '.join('?' for _ in asked)})"
        # In a message the bytes are base64.
        sizes.update({file_id: count * 4 // 3 for file_id, count in await engine.read(sql, tuple(asked))})
    return [sum(sizes.get(file_id, 0) for file_id in used) for used in uses]


async def _list_file_ids(data: bytes) -> Sequence[str]:
    # A record that cannot be read is set aside by whoever decodes it.
    with suppress(UnreadableRecordError):
        return await run_sized(len(data), references_in, data) if has_files(data) else ()
    return ()


async def estimate_stored(engine: Engine, sql: str, values: Sequence[object], rows: Sequence[tuple[int, int]]) -> int:
    """Return the same for rows, given by numbers and lengths.

    `sql` selects the `data` of rows with `number` in a range: above one value, up to another. These two follow
    `values`.
    """
    total, start = 0, 0
    while start < len(rows):
        end, length = start + 1, rows[start][1]
        while end < len(rows) and length + rows[end][1] <= _CHUNK_BYTES:
            length += rows[end][1]
            end += 1
        read = await engine.read(sql, (*values, rows[start][0] - 1, rows[end - 1][0]))
        total += await estimate(engine, [data for (data,) in read])
        start = end
    return total
