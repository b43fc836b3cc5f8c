"""Starts functions as processes of their own, forked from one that has imported the package already.

They are signalled and killed like any other; what is saved is the import, most of what it costs to start a host.
"""

import asyncio
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

PRELOADED = [
    "tests.faults.crash.server",
    "tests.faults.inbox.server",
    "frontdesk.cli.worker",
    "tests.faults.paying_host",
]

# Only what hangs should reach it, also on a machine that is busy with much else.
LONGEST = 120.0
Completed = subprocess.CompletedProcess[str]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class ForkedProcess:
    """A process, and its output to read."""

    def __init__(self, process: BaseProcess, output: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        self._process = process
        self._transport = transport
        self.stdout = output

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for the end; return the exit code, or the negative number of the signal that ended it."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        loop.add_reader(self._process.sentinel, lambda: ended.done() or ended.set_result(None))
        try:
            await ended
        finally:
            loop.remove_reader(self._process.sentinel)
        self._transport.close()
        assert self._process.exitcode is not None
        return self._process.exitcode


async def fork(name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> ForkedProcess:
    """Call a function, `module:function`, in a new process with this environment."""
    reading, writing = _context.Pipe(duplex=False)
    given = dict(os.environ if environment is None else environment)
    process = _context.Process(target=_run, args=(name, arguments, given, writing), daemon=True)
    # The first start waits until the package is imported.
    await asyncio.to_thread(process.start)
    writing.close()
    pipe = os.fdopen(os.dup(reading.fileno()), "rb")
    reading.close()
    output = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), pipe
    )
    return ForkedProcess(process, output, transport)


def run_forked(name: str, *arguments: str, directory: Path, environment: Mapping[str, str], stdin: str) -> Completed:
    """Call a function in a new process, and wait for its end, as `subprocess.run` does."""
    with TemporaryDirectory() as place:
        streams = [Path(place, stream) for stream in ("stdin", "stdout", "stderr")]
        streams[0].write_text(stdin, "utf-8")
        process = _context.Process(
            target=_run_to_its_end, args=(name, arguments, directory, dict(environment), streams), daemon=True
        )
        process.start()
        process.join(LONGEST)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(name, LONGEST)
        out, err = (stream.read_text("utf-8") for stream in streams[1:])
        return Completed([name, *arguments], process.exitcode, out, err)


def _run_to_its_end(
    name: str, arguments: Sequence[str], directory: Path, environment: Mapping[str, str], streams: Sequence[Path]
) -> None:
    for number, stream in enumerate(streams):
        opened = os.open(stream, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, closefd=False, encoding="utf-8")  # noqa: SIM115
        for number, mode in enumerate("rww")
    )
    os.chdir(directory)
    # As `python -m` does.
    sys.path.insert(0, str(directory))
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(pkgutil.resolve_name(name)(*arguments))


def _run(name: str, arguments: Sequence[str], environment: Mapping[str, str], output: Connection) -> None:
    os.dup2(output.fileno(), 1)
    output.close()
    # The one that there is belongs to the process that this one was forked from.
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    pkgutil.resolve_name(name)(*arguments)
