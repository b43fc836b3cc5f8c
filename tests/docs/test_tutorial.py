"""Every command of the tutorial runs in a fresh clone, and does what its page says.

The test reads the pages in order. It saves a code block below "Save this as `NAME`" or "Replace `NAME`", runs every
line of an `sh` block, and compares the output with a `text` block that follows (`...` stands for any text). What people
do on the web page and in Telegram is in `PEOPLE`, by page and heading. Only ports and the address of the database are
replaced.
"""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import randbelow
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.cli.processes import Running, environment
from tests.docs.pages import ROOT, prose_of, tables

TUTORIAL = ROOT / "docs/tutorial"
EXAMPLE = ROOT / "docs/examples/team"
PAGES = [
    TUTORIAL / f"{name}.md" for name in ("install", "api", "web-page", "telegram", "approvals", "restart", "two-hosts")
]
PORTS = ("8000", "8001", "8002", "8081", "8443")
SERVERS = ("frontdesk serve ", "frontdesk demo", "python -m frontdesk_testing.telegram", "nginx ")
BOB = 274898002
MAX_WORDS = 3500

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:Save this as|Replace) `([\w.]+)`:\s*\Z")


class Block(NamedTuple):
    """A code block, with the prose before it."""

    heading: str
    before: str
    language: str
    text: str

    @property
    def file(self) -> str | None:
        found = _FILE.search(self.before)
        return None if found is None else found[1]


def read_sections(page: Path) -> Iterator[tuple[str, str, list[Block]]]:
    """Return each heading of a page with its text and its code blocks."""
    text = page.read_text("utf-8")
    fences = list(_FENCE.finditer(text))
    headings = [
        found
        for found in re.finditer(r"^#+ (.+)$", text, re.MULTILINE)
        if not any(fence.start() < found.start() < fence.end() for fence in fences)
    ]
    ends = [found.start() for found in headings[1:]] + [len(text)]
    for found, end in zip(headings, ends, strict=True):
        blocks, read = list[Block](), found.start()
        for fence in fences:
            if found.start() < fence.start() < end:
                blocks.append(Block(found[1], text[read : fence.start()], fence[1], fence[2]))
                read = fence.end()
        yield found[1], text[found.start() : end], blocks


class Reader:
    """Somebody who works through the tutorial: their terminals, their servers, and the people they play."""

    def __init__(self, directory: Path, database: str) -> None:
        self.scratch, self.database = directory, database
        self.cwd = directory / "clone"
        self.ports = {port: str(free_port()) for port in PORTS}
        home = directory / "home"
        home.mkdir()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
        # Packages are found, not fetched: `share_packages` adds those of this environment.
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        kept = {name: value for name, value in environment().items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        self.environment = {**kept, **offline, **direct, "PATH": path, "HOME": str(home), "PYTHONUNBUFFERED": "1"}
        self.servers: dict[str, Running] = {}
        self.output = ""
        self.section = ""
        self.not_run: list[str] = []

    def read(self, page: Path) -> None:
        for heading, text, blocks in read_sections(page):
            self.section = re.sub(r"\s+", " ", text)
            people = PEOPLE.get((page.stem, heading), {})
            people.get("before", _do_nothing)(self)
            for block in blocks:
                self.follow(block)
            people.get("after", _do_nothing)(self)

    def follow(self, block: Block) -> None:
        """Do what a block is for: save a file, run commands, or compare their output."""
        text = self.translate(block.text.replace("\\\n", ""))
        if block.file is not None:
            (self.cwd / block.file).write_text(text, "utf-8")
        elif block.language == "sh":
            self.output = ""
            for line in text.strip().splitlines():
                self.run_line(line)
        elif block.language == "text" and block.heading != READING:
            self.compare(block.text)

    def translate(self, text: str) -> str:
        """Replace the ports and the address of the database with those of this test."""
        text = re.sub(rf"\b({'|'.join(PORTS)})\b", lambda found: self.ports[found[1]], text)
        return text.replace("postgresql://postgres:secret@127.0.0.1:5432/postgres", self.database)

    def run_line(self, line: str) -> None:
        if "# needs " in line:
            self.not_run.append(line)
        elif line.startswith(SERVERS):
            self.start(line)
        else:
            self.output += self.run(line)
            if " -m venv " in line:
                share_packages(self.cwd / "team/.venv")

    def run(self, line: str) -> str:
        """Run a line as a terminal does: its directory and its variables are those of the next one."""
        state = self.scratch / "terminal"
        script = f'{line}\nstatus=$?\npwd > "{state}.cwd"\nenv -0 > "{state}.env"\nexit $status\n'
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.cwd, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}\n{self.errors()}"
        self.cwd = Path(Path(f"{state}.cwd").read_text("utf-8").strip())
        variables = Path(f"{state}.env").read_text("utf-8").split("\0")
        self.environment = dict(variable.split("=", 1) for variable in variables if variable)
        return done.stdout

    def start(self, line: str) -> None:
        """Start a server in a terminal of its own. The server that has its port is stopped before."""
        port = self._port_of(line)
        if port in self.servers:
            self.stop(port)
        if line.startswith("frontdesk") and "--port" not in line:
            line += f" --port {port}"
        running = Running(command=("bash", "-c", f"exec {line}"), cwd=self.cwd, env=self.environment)
        self.servers[port] = running
        if line.startswith("frontdesk"):
            running.read_until("Ctrl-C stops")
        elif line.startswith("python"):
            running.read_until(f":{port}\n")
        else:
            wait_for_port(int(port), running)

    def _port_of(self, line: str) -> str:
        if line.startswith("nginx"):
            return self.ports["8443"]
        found = re.search(r"--port (\d+)", line)
        return self.ports["8000"] if found is None else found[1]

    def stop(self, port: str) -> None:
        """Press Ctrl-C in the terminal of a server."""
        running = self.servers.pop(port)
        code = running.stop()
        assert code == 0, f"{code}\n{running.output}\n{running.errors()}"
        running.__exit__()

    def compare(self, expected: str) -> None:
        """Fail if the last output differs from what the page shows."""
        parts = [re.escape(part) for part in expected.strip().split("...")]
        assert re.fullmatch(r"\s*" + ".*?".join(parts) + r".*?\s*", self.output, re.DOTALL), (
            f"{expected}\n---\n{self.output}"
        )

    def quote(self, text: str) -> str:
        """Return a text that the page tells people to say, or that it says they see."""
        assert text in self.section, f"{text!r} is not in {self.section!r}"
        return text

    def url(self, port: str) -> str:
        return f"http://127.0.0.1:{self.ports[port]}"

    def errors(self) -> str:
        return "\n".join(running.errors() for running in self.servers.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            error.add_note(self.errors())
        for running in self.servers.values():
            running.__exit__()


def _do_nothing(_: Reader) -> None:
    return


def free_port() -> int:
    """Return a free port below those that systems give out themselves, so that no other program gets it meanwhile."""
    while True:
        port = 20000 + randbelow(10000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


def wait_for_port(port: int, running: Running) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert running.process.poll() is None, running.errors()
            assert time.monotonic() < deadline, running.errors()
            time.sleep(0.02)
        else:
            return


def share_packages(home: Path) -> None:
    """Let an environment find the packages of this one, instead of an index. The checkout itself stays out."""
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")


def clone(target: Path) -> None:
    """Copy what a clone of the working tree has."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(".*", "__pycache__", "build", "dist"))
        return
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


class Page:
    """A visitor with the web page open."""

    def __init__(self, url: str, trust: ssl.SSLContext | bool = True) -> None:
        self.http = httpx.Client(base_url=url, headers={"origin": url}, timeout=180, trust_env=False, verify=trust)
        self.http.get("/chat").raise_for_status()

    def say(self, text: str) -> None:
        body = {"client_id": f"c{time.monotonic_ns()}", "text": text}
        self.http.post("/chat/api/conversations/main/messages", json=body).raise_for_status()

    def until(self, look: Callable[[list[dict[str, Any]]], Any]) -> Any:
        """Return what `look` finds in the messages, once it finds something."""
        cursor = 0
        while True:
            messages = self.http.get("/chat/api/conversations/main/messages").raise_for_status().json()["messages"]
            if found := look(messages):
                return found
            answer = self.http.get("/chat/api/poll", params={"after": cursor}).raise_for_status()
            cursor = answer.json()["cursor"]

    def has(self, text: str, times: int = 1) -> bool:
        """Wait until the page shows a text so many times."""
        return self.until(lambda messages: sum(text in one.get("text", "") for one in messages) >= times)

    def card(self, number: int = 1) -> dict[str, Any]:
        """Return an approval card, once the page shows it."""
        return self.until(lambda messages: [one["question"] for one in messages if one.get("question")][number - 1 :])[
            0
        ]

    def press(self, card: Mapping[str, Any], *, approved: bool) -> None:
        path = f"/chat/api/approvals/{card['approval_id']}"
        digest = self.http.get(path).raise_for_status().json()["digest"]
        self.http.post(path, json={"approved": approved, "digest": digest}).raise_for_status()


class Phone:
    """A person who uses the fake Telegram by its page."""

    def __init__(self, url: str, person: int) -> None:
        self.http = httpx.Client(base_url=f"{url}/people", timeout=180, trust_env=False)
        self.person = person

    def do(self, action: str, **fields: Any) -> None:
        answer = self.http.post(f"/{action}", json={"user": self.person, **fields})
        assert answer.is_success, answer.text

    def until(self, look: Callable[[list[dict[str, Any]]], Any]) -> Any:
        """Return what `look` finds in the messages of the bot, once it finds something."""
        after = -1
        while True:
            query = {"user": self.person, "chat": self.person, "after": after}
            state = self.http.get("/state", params=query).raise_for_status().json()
            messages = state.get("transcript", {}).get("messages", [])
            if found := look([one for one in messages if one["by_bot"]]):
                return found
            after = state["changes"]

    def has(self, text: str, times: int = 1) -> bool:
        """Wait until the bot has sent a text so many times."""
        return self.until(lambda messages: sum(text in one["text"] for one in messages) >= times)

    def press(self, button: str) -> None:
        """Press a button of the only message that has it, once there is one, and wait until it has none any more."""
        (message,) = self.until(
            lambda messages: [one for one in messages if any(button in row for row in one["buttons"])]
        )
        self.do("press", chat=self.person, message_id=message["message_id"], button=button)
        self.until(lambda messages: not any(one["buttons"] for one in messages))


ANSWER = "Order 7: two lamps, 120 euros, delivered yesterday."
people: dict[str, Any] = {}


def visit_demo(reader: Reader) -> None:
    page = Page(reader.url("8000"))
    page.say(reader.quote("When is breakfast?"))
    page.has("Breakfast is served")


def approve_own_request(reader: Reader) -> None:
    page = Page(reader.url("8000"))
    page.say(reader.quote("Where is order 7?"))
    page.has(ANSWER)
    page.say(reader.quote("Please refund order 7"))
    page.press(page.card(), approved=True)
    page.has(reader.quote("Refunded 120 euros for order 7."))


def write_to_the_bot(reader: Reader) -> None:
    assert "Bob" in httpx.get(f"{reader.url('8081')}/people/state", trust_env=False).text
    bob = Phone(reader.url("8081"), BOB)
    bob.do("say", text=reader.quote("Where is order 7?"))
    bob.has(ANSWER)
    # An answer is shown while it is written. Once the next turn is answered, the first one is stored.
    bob.do("say", text="Hello")
    bob.has("Questions so far: 2.")


def approve_for_the_page(reader: Reader) -> None:
    page, bob = Page(reader.url("8000")), Phone(reader.url("8081"), BOB)
    page.say(reader.quote("Please refund order 7"))
    page.card()
    bob.press(reader.quote("Approve"))
    page.has(reader.quote("Refunded 120 euros for order 7."))


def reject(reader: Reader) -> None:
    bob = Phone(reader.url("8081"), BOB)
    bob.press(reader.quote("Reject"))
    assert "visit-2" in reader.section


def stop_while_something_waits(reader: Reader) -> None:
    page, bob = Page(reader.url("8000")), Phone(reader.url("8081"), BOB)
    page.say(reader.quote("Please refund order 7"))
    page.card()
    bob.until(lambda messages: [one for one in messages if one["buttons"]])
    reader.quote("Stop the host with Ctrl-C")
    reader.stop(reader.ports["8000"])
    bob.do("say", text=reader.quote("Where is order 7?"))
    people["page"] = page


def approve_after_the_restart(reader: Reader) -> None:
    page, bob = people["page"], Phone(reader.url("8081"), BOB)
    bob.has(ANSWER, times=2)
    bob.press(reader.quote("Approve"))
    page.has(reader.quote("Refunded 120 euros for order 7."))


def stop_the_host(reader: Reader) -> None:
    reader.quote("Stop the host")
    reader.stop(reader.ports["8000"])


def need_nginx(reader: Reader) -> None:
    for program in ("nginx", "openssl"):
        if shutil.which(program, path=reader.environment["PATH"]) is None:
            pytest.skip(
                f"NOT TESTED: the tutorial behind nginx: there is no {program} (make test installs nginx as root)"
            )


def stop_one_host(reader: Reader) -> None:
    reader.quote("Stop one of the two hosts with Ctrl-C")
    reader.stop(reader.ports["8001"])


def approve_behind_nginx(reader: Reader) -> None:
    trust = ssl.create_default_context(cafile=str(reader.cwd / "cert.pem"))
    page = Page(reader.url("8443").replace("http", "https"), trust)
    bob = Phone(reader.url("8081"), BOB)
    page.say(reader.quote("Please refund order 7"))
    page.card()
    bob.press("Approve")
    page.has("Refunded 120 euros for order 7.")


READING = "How to read the commands"
PEOPLE: Mapping[tuple[str, str], Mapping[str, Callable[[Reader], None]]] = {
    ("install", "Look at the demo"): {"after": visit_demo},
    ("web-page", "Approve your own request"): {"after": approve_own_request},
    ("telegram", "Write to the bot"): {"before": write_to_the_bot},
    ("approvals", "Request a refund on the page"): {"after": approve_for_the_page},
    ("approvals", "Request a refund over the API"): {"after": reject},
    ("restart", "Stop the host while something waits"): {"after": stop_while_something_waits},
    ("restart", "Start it again"): {"after": approve_after_the_restart},
    ("two-hosts", "Start Postgres and move the state"): {"before": stop_the_host},
    ("two-hosts", "Put nginx in front"): {"before": need_nginx},
    ("two-hosts", "Stop one host"): {"before": stop_one_host, "after": approve_behind_nginx},
}


def url_of(conninfo: str) -> str:
    """Return the address of a test's database as a URL that needs no quotes in a shell."""
    parts = conninfo_to_dict(conninfo)
    host = quote(str(parts["host"]), safe="")
    return f"postgresql://{parts['user']}@{host}:{parts.get('port', 5432)}/{parts['dbname']}"


@contextmanager
def open_reader(directory: Path, conninfo: str) -> Iterator[Reader]:
    clone(directory / "clone")
    with Reader(directory, url_of(conninfo)) as reader:
        yield reader


# About twenty processes start one after the other, and each takes many seconds on a busy machine.
@pytest.mark.timeout(1800)
def test_every_command_of_the_tutorial_runs_in_a_fresh_clone(tmp_path: Path, postgres: str) -> None:
    with open_reader(tmp_path, postgres) as reader:
        for page in PAGES:
            reader.read(page)
        listed = [line.partition(" # needs ")[0] for line in reader.not_run]
    commands = [row[0].partition("`")[2].partition("...`")[0] for row in tables(TUTORIAL / "README.md")[READING]]
    assert len(listed) == len(commands)
    assert all(any(line.startswith(command) for line in listed) for command in commands)


def test_what_people_do_is_on_a_page() -> None:
    headings = {(page.stem, heading) for page in PAGES for heading, _, _ in read_sections(page)}
    assert set(PEOPLE) <= headings


def test_the_tutorial_is_short_and_its_index_lists_every_page() -> None:
    index = (TUTORIAL / "README.md").read_text("utf-8")
    listed = re.findall(r"^\d\. \[[^]]+\]\(([\w-]+)\.md\)$", index, re.MULTILINE)
    assert listed == [page.stem for page in PAGES]
    assert {path.stem for path in TUTORIAL.glob("*.md")} == {*listed, "README"}
    assert sum(len(path.read_text("utf-8").split()) for path in TUTORIAL.glob("*.md")) <= MAX_WORDS
    for number, page in enumerate(PAGES, 1):
        assert prose_of(page).startswith(f"# {number}. ")


def test_the_finished_files_are_those_of_the_last_pages() -> None:
    saved: dict[str, str] = {}
    for page in PAGES:
        for _, _, blocks in read_sections(page):
            saved |= {block.file: block.text for block in blocks if block.file is not None}
    finished = {path.name: path.read_text("utf-8") for path in EXAMPLE.iterdir() if path.is_file()}
    assert set(finished) == {"agent.py", "host.py", "nginx.conf"}
    for name, text in finished.items():
        assert text.partition('"""\n\n')[2] or text == saved[name], name
        assert text.endswith(saved[name]), name


def test_a_command_that_fails_and_an_output_that_differs_are_reported(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    with Reader(tmp_path, "") as reader:
        reader.run_line("cd .. && export COUNT=2")
        reader.run_line('echo "id: abc, questions: $COUNT"')
        reader.compare("id: ..., questions: 2")
        assert reader.cwd == tmp_path
        with pytest.raises(AssertionError):
            reader.compare("id: ..., questions: 3")
        with pytest.raises(AssertionError):
            reader.run_line("false")
        with pytest.raises(AssertionError):
            reader.quote("a text that no page has")
