"""The page about clients is made from what `make clients` has found, and what it installs is pinned."""

import json

import pytest

from tests.clients.page import TRIED, page
from tests.clients.programs import CLIENTS, HERE, KNOWN, ROOT, PythonClient

FOUND = json.loads((HERE / "results.json").read_text())


def test_the_page_says_what_was_found() -> None:
    assert (ROOT / "docs/reference/clients.md").read_text("utf-8") == page(FOUND)


def test_what_did_not_work_is_on_the_page() -> None:
    found = {"some": {"version": "1", "found": {"Responses": {"answer": "yes", "stream": "Error: `no`"}}}}
    told = page(found)
    assert "| `some` | 1 | Responses | yes | no |  |" in told
    assert "- `some` on Responses, stream: `Error: no`" in told


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_client_was_tried_at_its_version(client: PythonClient) -> None:
    assert FOUND[client.name]["version"] == client.version
    tried = {name for found in FOUND[client.name]["found"].values() for name in found}
    assert {"answer", "approval" if "a2a" in client.name else "tools"} <= tried <= set(TRIED)
    apis = FOUND[client.name]["found"].items()
    wrong = {(client.name, api, name) for api, found in apis for name in found if found[name] != "yes"}
    assert wrong == {known for known in KNOWN if known[0] == client.name}


def test_what_npm_installs_names_no_host_and_has_a_hash() -> None:
    text = (HERE / "node/package-lock.json").read_text()
    assert "://" not in text
    packages = json.loads(text)["packages"]
    assert packages.pop("")["dependencies"] == json.loads((HERE / "node/package.json").read_text())["dependencies"]
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
