"""`make clients`: installs the clients of others, runs each against a host, and writes what works."""

import asyncio
import json
import sys
from typing import Any

from frontdesk_testing import serving
from tests.clients.host import build_host
from tests.clients.page import page
from tests.clients.programs import CLIENTS, HERE, KNOWN, ROOT, NotInstalledError

RESULTS = HERE / "results.json"
PAGE = ROOT / "docs/reference/clients.md"


async def try_clients(names: list[str]) -> int:
    """Try the clients with these names, or all; return how many things did not work that are not known."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    wrong = 0
    async with serving(build_host()) as served:
        for client in CLIENTS:
            if names and client.name not in names:
                continue
            try:
                await client.install()
            except NotInstalledError as error:
                print(f"NOT TESTED: {client.name} {client.version} could not be installed here: {error}")
                continue
            found = await client.ask(f"{served.base_url}/v1")
            results[client.name] = {"version": client.version, "found": found}
            for door, tried in found.items():
                wrong += sum(said != "yes" and (client.name, door, name) not in KNOWN for name, said in tried.items())
                print(f"{client.name} {client.version}, {door}: {json.dumps(tried)}", flush=True)
    ordered = {client.name: results[client.name] for client in CLIENTS if client.name in results}
    RESULTS.write_text(json.dumps(ordered, indent=2) + "\n")
    PAGE.write_text(page(ordered))
    return wrong


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(try_clients(sys.argv[1:])) else 0)
