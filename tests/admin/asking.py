"""Asks a host by its socket."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec


async def exchange(path: Path, *requests: bytes) -> list[Any]:
    reader, writer = await asyncio.open_unix_connection(path, limit=2**24)
    answers: list[Any] = []
    try:
        async with asyncio.timeout(60):
            for request in requests:
                writer.write(request)
                line = await reader.readline()
                answers.append(msgspec.json.decode(line) if line else None)
    finally:
        writer.close()
    return answers


def ask(call: str, **given: Any) -> bytes:
    return msgspec.json.encode({"call": call, "given": given}) + b"\n"
