"""Real processes of the command, read and written like a user would."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frontdesk.cli import main
from tests.forked import run_forked

FRONTDESK = (sys.executable, "-m", "frontdesk.cli")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This one, without what would change the demo or the language of errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8", **(extra or {})}


def frontdesk(
    *arguments: str, cwd: Path | None = None, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    place, given = cwd or Path.cwd(), environment(env)
    return run_forked("tests.cli.processes:run_command", *arguments, directory=place, environment=given, stdin=stdin)


def run_command(*arguments: str) -> int:
    """Do what the `frontdesk` program does."""
    return main(arguments)


class Running:
    """A command that goes on: its output is read as it comes."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = FRONTDESK,
        **options: Any,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors, **options}
        # A shell that starts the tests in its background makes them deaf to Ctrl-C; a user's terminal does not.
        self.process = subprocess.Popen(
            [*command, *arguments],
            cwd=cwd,
            env=environment(env),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **settings,
        )
        self.output = ""

    def read_until(self, text: str) -> str:
        """All output so far, once the text is in it."""
        assert self.process.stdout is not None
        while text not in self.output:
            chunk = os.read(self.process.stdout.fileno(), 65536)
            assert chunk, f"ended without {text!r}:\n{self.output}\n{self.errors()}"
            self.output += chunk.decode()
        return self.output

    def url(self) -> str:
        """The base of the URLs that a server prints."""
        output = self.read_until("Ctrl-C stops")
        first = next(word for word in output.split() if word.startswith("http://"))
        return "/".join(first.split("/")[:3])

    def type(self, text: str) -> None:
        """Writes a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def read_errors_until(self, text: str) -> None:
        """Waits for a line in the log; a file can't be awaited, so it is looked at again and again."""
        deadline = time.monotonic() + 30
        while text not in self.errors():
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.errors()}"
            time.sleep(0.02)

    def errors(self) -> str:
        """What it wrote to its error output."""
        self._errors.seek(0)
        return self._errors.read().decode()

    def end(self) -> int:
        """Closes its input and waits for the end."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.output += self.process.stdout.read().decode()
        return code

    def stop(self) -> int:
        """Ctrl-C, and waits for the end."""
        self.interrupt()
        return self.end()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                stream.close()
