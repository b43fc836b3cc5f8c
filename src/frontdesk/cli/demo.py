"""`frontdesk demo`: serves a demo agent and prints example commands."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from frontdesk.cli.options import CHAT_URL, PORT
from frontdesk.cli.serve import PortTakenError, base_url, listen, serve
from frontdesk.cli.terminal import CommandError, list_findings
from frontdesk.demo import build_host, choose_client
from frontdesk.demo.stories import PATH as RESTAURANT
from frontdesk.errors import ChannelConfigurationError
from frontdesk.errors.base import install_hint
from frontdesk.interfaces.channel import Channel

MAX_PORTS = 20
_TOKEN = "700000001:a-token-that-opens-nothing-but-a-fake"  # noqa: S105
_COMMAND = (sys.executable, "-m", "frontdesk_testing.telegram", "--with-parent", "--token", _TOKEN)


def run(arguments: Namespace) -> int:
    if not arguments.telegram:
        return _serve(arguments)
    with _fake_telegram() as url:
        return _serve(arguments, url, _telegram_channel(url))


def _serve(arguments: Namespace, telegram_url: str = "", *channels: Channel) -> int:
    choice = choose_client()
    try:
        host = build_host(choice.client, state_dir=arguments.state_dir, channels=channels)
        host.check_bind(arguments.host)
    except ChannelConfigurationError as error:
        raise CommandError(list_findings("the demo", error.findings)) from None
    listener = _listen(arguments.host, arguments.port)
    text = welcome(base_url(listener), choice.note, telegram_url)
    return serve(host, listener, on_ready=lambda: print(text, flush=True), log_level="warning", grace_seconds=1)


def _listen(host: str, port: int | None) -> socket.socket:
    if port is not None:
        return listen(host, port)
    for number in range(PORT, PORT + MAX_PORTS):
        try:
            listener = listen(host, number)
        except PortTakenError:
            continue
        if number != PORT:
            print(f"Port {PORT} is taken, so the demo is on port {number}.\n")
        return listener
    raise CommandError(
        f"the ports {PORT} to {PORT + MAX_PORTS - 1} of {host} are all in use. Choose another with --port"
    )


def welcome(base: str, note: str, telegram_url: str = "") -> str:
    url = f"{base}/invocations"
    return f"""\
The Marmalade, a small hotel by the sea: a real agent with three tools, behind its front desk.
{note}

  talk     {base}/chat   (a page for your browser)
  dine     {base}{RESTAURANT}/chat   (another one: a workflow that asks with a form)
  ask      {url}
  OpenAPI  {url}/docs/openapi.json
  OpenAI   {base}/v1   (the base URL for any client of the OpenAI APIs; any key will do)
  health   {base}/healthz{_page(telegram_url)}

Ask, with an answer in one piece:
  {_curl(url, message="My name is Ada. When is breakfast?", session_id="visit-1")}
Go on with that conversation:
  {_curl(url, message="What did I say before?", session_id="visit-1")}
Ask, with an answer that comes word by word:
  {_curl(url, message="What can you do?", stream=True)}
Ask as a client of the OpenAI Responses API does:
  {_curl(f"{base}/v1/responses", model="Concierge", input="What is 17 times 23?")}
Talk to it in another terminal; it asks you before it books anything (try: Book a sea view room for two nights):
  {_chat(url)}

Ctrl-C stops the demo."""


def _page(telegram_url: str) -> str:
    return (
        f"\n  Telegram {telegram_url}/   (a fake one: on its page you write to the bot as Ann)" if telegram_url else ""
    )


def _curl(url: str, **body: object) -> str:
    options = "-sN" if body.get("stream") else "-s"
    return f"curl {options} {url} -H 'content-type: application/json' -d {shlex.quote(json.dumps(body))}"


def _chat(url: str) -> str:
    """Return the chat command for the shell from which the demo was started."""
    started = Path(sys.argv[0])
    if started.stem != "frontdesk":
        command = f"{shlex.quote(sys.executable)} -m frontdesk.cli chat"
    elif (on_path := shutil.which("frontdesk")) is not None and os.path.samefile(on_path, started):
        command = "frontdesk chat"
    else:
        command = f"{shlex.quote(os.path.relpath(started))} chat"
    return command if url == CHAT_URL else f"{command} {url}"


@contextmanager
def _fake_telegram() -> Generator[str]:
    if find_spec("frontdesk_testing") is None:
        raise CommandError(f"--telegram needs the package frontdesk-testing: {install_hint('testing')}")
    # A session of its own: Ctrl-C is for the demo, which closes the input of the fake when it has ended.
    process = subprocess.Popen(  # noqa: S603
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    with process:
        url = b"" if process.stdout is None else process.stdout.readline().strip()
        if not url:
            raise CommandError("the fake Telegram did not start")
        try:
            yield url.decode()
        finally:
            if process.stdin is not None:
                process.stdin.close()


def _telegram_channel(url: str) -> Channel:
    # Imported by those who want it: other demos start faster.
    from frontdesk.channels.telegram import TelegramChannel

    return TelegramChannel(bot_token=_TOKEN, api_url=url, transport="polling")
