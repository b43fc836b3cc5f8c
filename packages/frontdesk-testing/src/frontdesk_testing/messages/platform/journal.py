"""The log of accepted calls. An entry is on disk before its call is acknowledged."""

import asyncio
import os
from pathlib import Path

import msgspec

from frontdesk_testing.messages.wire import Button, Command


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A call that was accepted."""

    number: int
    at: float
    method: str
    """`send`, `edit`, `delete`, `typing`, `answer`, `private` or `commands`."""
    chat_id: str = ""
    thread_id: str = ""
    message_id: str = ""
    text: str = ""
    media: tuple[str, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    idempotency_key: str = ""
    callback_id: str = ""
    user_id: str = ""
    commands: tuple[Command, ...] = ()
    scope: str = ""
    locale: str = ""


class Journal:
    """Appends entries. Concurrent entries share one write."""

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.entries: list[Entry] = []
        """All that is on the disk since this process began."""
        self._sync = sync
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._encoder = msgspec.json.Encoder()
        self._number = 0
        self._waiting: list[Entry] = []
        self._written: asyncio.Future[None] | None = None
        self._last: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def next_number(self) -> int:
        """Return the number of the next entry."""
        self._number += 1
        return self._number

    async def add(self, entry: Entry) -> None:
        """Append an entry. Return when it is on disk."""
        if not self._sync:
            # What the system has taken outlives this process, though not the machine.
            _write(self._file, self._encoder.encode(entry) + b"\n")
            self.entries.append(entry)
            return
        self._waiting.append(entry)
        if self._written is None:
            self._written = self._last = asyncio.get_running_loop().create_future()
        written = self._written
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())
        await asyncio.shield(written)

    async def wait_until_written(self) -> None:
        """Wait until all entries are written."""
        if self._last is not None:
            await asyncio.shield(self._last)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._written is not None:
            entries, written = self._waiting, self._written
            self._waiting, self._written = [], None
            await loop.run_in_executor(None, self._save, self._encoder.encode_lines(entries))
            self.entries += entries
            written.set_result(None)
        self._task = None

    def _save(self, lines: bytes) -> None:
        _write(self._file, lines)
        os.fsync(self._file)


def _write(file: int, lines: bytes) -> None:
    while lines:
        lines = lines[os.write(file, lines) :]


def read_journal(path: Path) -> list[Entry]:
    """Read the entries on disk. An incomplete last line was not accepted."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return msgspec.json.Decoder(Entry).decode_lines(whole)
