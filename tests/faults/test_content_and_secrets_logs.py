"""Secrets in the log of a real process: in the access log, in tracebacks, and in the HTTP client's own request log."""

import sys
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import Running

BOT = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawX"
TOKEN = "a-token-in-the-address-of-a-page"
PASSWORD = "the-password-of-the-database"
KEY = "a-key-that-is-long-enough"
HOST = f"""
import logging

import httpx

from frontdesk import AgentFrameworkHost, ApiKeyAuth, Secret
from frontdesk.channels.invocations import InvocationsChannel

PHRASE = Secret("an odd phrase that nothing gives away")
logging.getLogger("httpx").setLevel("DEBUG")
logging.getLogger("httpcore").setLevel("DEBUG")


async def calling(text: str) -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        # Nothing listens there; the client has logged the address by then.
        await client.get("http://127.0.0.1:1/bot{BOT}/getMe", headers={{"authorization": "Bearer {TOKEN}"}})
    return text


async def target(text: str) -> str:
    try:
        await calling(text)
    except httpx.ConnectError as error:
        said = f"could not call http://x/bot{BOT}/getMe nor postgresql://ada:{PASSWORD}@db/x: " + PHRASE.reveal()
        raise RuntimeError(said) from error
    return text


host = AgentFrameworkHost(target, channels=[InvocationsChannel(auth=ApiKeyAuth({{"alice": "{KEY}"}}))])

if __name__ == "__main__":
    logging.basicConfig(level="INFO")
    host.serve(port=0, log_level="debug")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "host.py").write_text(HOST)
    return tmp_path


def _call(url: str) -> None:
    with httpx.Client(trust_env=False) as client:
        answer = client.post(
            f"{url}/invocations?access_token={TOKEN}", json={"message": "hi"}, headers={"x-api-key": KEY}
        )
        assert answer.json()["status"] == "failed"
        assert BOT not in answer.text
        assert PASSWORD not in answer.text


def _nothing_is_told(log: str) -> None:
    for secret in (BOT, TOKEN, PASSWORD, KEY, "an odd phrase"):
        assert secret not in log, secret
    # All of it was written, but for that.
    assert "[redacted]" in log
    assert "RuntimeError: could not call" in log
    assert "POST /invocations?access_token=[redacted]" in log


def test_frontdesk_serve_tells_no_secret(folder: Path) -> None:
    with Running("serve", "host.py:host", "--port", "0", "--log-level", "debug", cwd=folder) as server:
        _call(server.url())
        assert server.stop() == 0
        _nothing_is_told(server.errors())


def test_host_serve_tells_no_secret(folder: Path) -> None:
    with Running(cwd=folder, command=[sys.executable, "host.py"]) as server:
        server.read_errors_until("Uvicorn running on ")
        _call(server.errors().partition("Uvicorn running on ")[2].split()[0])
        server.stop()
        _nothing_is_told(server.output + server.errors())
