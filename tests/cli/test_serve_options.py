"""`frontdesk serve --reload --root-path --proxy`: what each of them changes."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from frontdesk.cli import main
from tests.cli.processes import Running

HOST = """
from frontdesk import AgentFrameworkHost, InProcessTaskRunner
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel


async def answer(text: str) -> str:
    return "the first"


host = AgentFrameworkHost(answer, channels=[InvocationsChannel(), WebChatChannel()])
"""


def test_a_changed_file_is_served_anew_at_the_same_port(tmp_path: Path) -> None:
    source = tmp_path / "app.py"
    source.write_text(HOST, "utf-8")
    with Running("serve", "app:host", "--port", "0", "--reload", cwd=tmp_path) as server:
        url = server.url()
        assert ask(url) == "the first"
        # A mistake is told, and the next change is waited for.
        change(source, "host = 1 / 0")
        server.read_errors_until("app.py:1: ZeroDivisionError")
        change(source, HOST.replace("the first", "the second"))
        deadline = time.monotonic() + 60
        while (said := ask(url)) != "the second":
            assert time.monotonic() < deadline, said
        assert server.stop() == 0
        assert "Traceback" not in server.errors()


def change(source: Path, text: str) -> None:
    """Write a file whose time differs from the one before, however coarse the clock of its file system is."""
    later = source.stat().st_mtime + 10
    source.write_text(text, "utf-8")
    os.utime(source, (later, later))


def ask(url: str) -> str:
    # A connection waits in the queue of the port while no process serves it.
    return httpx.post(f"{url}/invocations", json={"message": "hi"}, timeout=60).raise_for_status().json()["text"]


@pytest.fixture(scope="module")
def behind_a_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve as if a proxy on this machine had cut off /desk."""
    place = tmp_path_factory.mktemp("proxied")
    (place / "app.py").write_text(HOST, "utf-8")
    options = ("--root-path", "/desk", "--proxy", "127.0.0.1,10.0.0.0/8", "--log-level", "debug")
    with Running("serve", "app:host", "--port", "0", *options, cwd=place) as server:
        yield server


def test_the_path_that_was_cut_off_is_in_what_is_answered(behind_a_proxy: Running) -> None:
    url = behind_a_proxy.url()
    begun = httpx.post(f"{url}/invocations", json={"message": "hi", "background": True})
    assert begun.status_code == 202
    assert begun.headers["location"].startswith("/desk/invocations/")
    page = httpx.get(f"{url}/chat").raise_for_status().text
    # The page finds its files and calls where browsers reach it.
    assert 'href="/desk/chat/' in page
    assert 'href="/chat/' not in page


def test_the_caller_is_the_one_whom_the_proxy_names(behind_a_proxy: Running) -> None:
    url, passed_on = behind_a_proxy.url(), {"x-forwarded-for": "192.0.2.7"}
    refused = httpx.post(f"{url}/invocations", json={"message": "hi"}, headers=passed_on)
    assert refused.status_code == 401
    # What a caller writes in front of what the proxy has added is not believed.
    forged = {"x-forwarded-for": "127.0.0.1, 192.0.2.7"}
    assert httpx.post(f"{url}/invocations", json={"message": "hi"}, headers=forged).status_code == 401
    behind_a_proxy.read_errors_until("192.0.2.7:")


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--root-path", "desk", "must begin with a slash"),
        ("--root-path", "/desk/", "not end with one"),
        ("--root-path", "/a b", "is not a path"),
        ("--proxy", "*", "neither an address nor a network"),
        ("--proxy", "127.0.0.1,nginx", "'nginx' is neither"),
        ("--proxy", "0.0.0.0/0", "all addresses"),
        ("--proxy", "::/0", "all addresses"),
    ],
)
def test_what_can_t_be_meant_is_refused(option: str, value: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["serve", "app:host", option, value])
    assert left.value.code == 2
    assert told in capsys.readouterr().err
