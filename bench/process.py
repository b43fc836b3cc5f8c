"""A server in a process of its own: start it, look at its memory and processor time, stop it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO

from bench.http_client import ask_once, build_request
from bench.machine import pin
from bench.setting import Setting
from bench.subjects.base import Subject

ROOT = Path(__file__).parent.parent
START_TIMEOUT = 30
STOP_TIMEOUT = 8


class StartFailed(Exception):
    """The server's process ended, or did not answer in time; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds a process ran, and seconds it wanted to run and something else had its core."""

    ran: float
    waited: float

    def since(self, earlier: Usage) -> Usage:
        return Usage(self.ran - earlier.ran, self.waited - earlier.waited)


class Server:
    def __init__(self, process: subprocess.Popen[str], port: int, start_seconds: float) -> None:
        self.port = port
        self.start_seconds = start_seconds
        self._process = process

    def memory(self) -> int:
        """Resident bytes."""
        command = ["ps", "-o", "rss=", "-p", str(self._process.pid)]
        status = Path(f"/proc/{self._process.pid}/status")
        if not status.exists():
            return int(subprocess.check_output(command)) * 1024
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def usage(self) -> Usage | None:
        return build_usage(self._process.pid)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def build_usage(pid: int) -> Usage | None:
    """None where the system does not tell it this exactly."""
    ran = waited = 0
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        return None
    for task in tasks.iterdir():
        try:
            fields = (task / "schedstat").read_text().split()
        except FileNotFoundError:
            continue
        ran += int(fields[0])
        waited += int(fields[1])
    return Usage(ran / 1e9, waited / 1e9) if ran else None


def child_environment() -> dict[str, str]:
    paths = [
        os.environ.get("PYTHONPATH", ""),
        str(ROOT),
        str(ROOT / "src"),
        str(ROOT / "packages/frontdesk-testing/src"),
    ]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def spawn(subject: Subject, core: int | None, setting: Setting, errors: IO[str]) -> subprocess.Popen[str]:
    command = [subject.python or sys.executable, "-m", "bench.server", subject.name, "--loop", subject.loop]
    command += setting.arguments()
    if subject.plain:
        command += ["--plain"]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        preexec_fn=lambda: pin(core),
    )


async def start_server(subject: Subject, core: int | None, setting: Setting) -> Server:
    with tempfile.TemporaryFile("w+") as errors:
        started = perf_counter()
        process = spawn(subject, core, setting, errors)
        try:
            assert process.stdout
            with process.stdout as output:
                port = int(output.readline())
            await wait_until_healthy(port, subject.health_path)
        except BaseException as error:
            process.kill()
            process.wait()
            errors.seek(0)
            raise StartFailed(f"{subject.name}: {errors.read()[-2000:] or 'no answer'}") from error
        return Server(process, port, perf_counter() - started)


async def wait_until_healthy(port: int, path: str) -> None:
    request = build_request("GET", path)
    async with asyncio.timeout(START_TIMEOUT):
        while True:
            try:
                if (await ask_once(port, request)).status == 200:
                    return
            except OSError:
                pass
            await asyncio.sleep(0.002)
