"""The server's process: `python -m bench.server SUBJECT`. Prints its port, then serves until it is told to stop."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from bench.http_client import LOCALHOST
from bench.setting import Setting
from bench.subjects import find_subject


def report_start(server: uvicorn.Server, on_started: Callable[[], None]) -> uvicorn.Server:
    """The same server, which calls back when it has started."""
    start = server.startup

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await start(sockets=sockets)
        on_started()

    server.startup = startup
    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject")
    parser.add_argument("--loop", default="auto")
    parser.add_argument("--sample", type=Path)
    parser.add_argument("--state", default="")
    parser.add_argument("--target", default="stub")
    parser.add_argument("--door", default="open")
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    subject = find_subject(args.subject)
    config = uvicorn.Config(
        subject.build_app(Setting(args.sample, args.state, args.target, args.door)),
        loop=args.loop,
        http="httptools",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    # asyncio turns Nagle's delay off only for a socket that says it is TCP.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind((LOCALHOST, 0))
    print(listener.getsockname()[1], flush=True)
    # Nobody reads the pipe any more; whatever the subject prints must not fill it.
    os.dup2(2, 1)
    server = uvicorn.Server(config) if args.plain else report_start(subject.server(config), subject.prepare_started)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
