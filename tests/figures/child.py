"""The child processes of `make figures`: a host to attack, and a client that requests `/healthz` meanwhile."""

import asyncio
import json
import resource
import select
import socket
import sys
from collections.abc import AsyncIterator
from time import perf_counter, sleep

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel

KEY = "the key of an attacker, long enough"
MIB = 1024 * 1024
PIECE = "x" * 64 * 1024
HOLD_SECONDS = 5.0
PROBE_SECONDS = 0.005
PROBE_TIMEOUT = 30.0


async def talk(text: str) -> AsyncIterator[str]:
    """Answer by the last word: `hold` after some seconds, `large` with 1 MiB, `endless` until nobody reads."""
    if text.endswith("hold"):
        await asyncio.sleep(HOLD_SECONDS)
    if text == "large":
        yield MIB * "x"
    while text == "endless":
        yield PIECE
    yield "done"


def run_host(port: int, state_dir: str, max_files: int) -> None:
    """Serve a host with default limits."""
    if max_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
    auth = ApiKeyAuth({"attacker": KEY})
    channels = [kind(auth=auth) for kind in (InvocationsChannel, ResponsesChannel, ConversationsChannel)]
    AgentFrameworkHost(talk, channels=channels, state_dir=state_dir).serve("127.0.0.1", port)


def run_probe(port: int) -> None:
    """Request `/healthz`, each time on a new connection, until stdin is closed. Then print what was measured."""
    longest = failed_since = failed = 0.0
    print("started", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        began = perf_counter()
        if request_health(port):
            longest, failed_since = max(longest, perf_counter() - began), 0.0
        else:
            failed_since = failed_since or began
            failed = max(failed, perf_counter() - failed_since)
        sleep(PROBE_SECONDS)
    print(json.dumps({"wait": longest, "failed": failed}))


def request_health(port: int) -> bool:
    """Return True if the host answers with 200."""
    try:
        with socket.create_connection(("127.0.0.1", port), PROBE_TIMEOUT) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


if __name__ == "__main__":
    command, port, *rest = sys.argv[1:]
    if command == "host":
        run_host(int(port), rest[0], int(rest[1]))
    else:
        run_probe(int(port))
