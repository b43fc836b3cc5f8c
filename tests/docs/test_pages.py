"""What the documents say can be run, called and followed."""

import ast
import json
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from mcp import Client

from frontdesk import AgentFrameworkHost
from frontdesk.channels.a2a.modes import INPUT_MODES
from frontdesk.channels.a2a.parse import parse_sent
from frontdesk.channels.a2a.schema import SendIn
from frontdesk.channels.invocations.parse import decode as decode_invocation
from frontdesk.channels.mcp import MCPChannel
from frontdesk.channels.responses.parse import decode as decode_response
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.cli.init import list_files
from frontdesk.cli.options import build_parser
from frontdesk.http.bodies import decode_as
from frontdesk_testing import serving
from tests.contracts.plain_channel import SAID
from tests.docs.pages import DATABASE, PAGES, ROOT, Block, anchors, blocks, commands, get_name, links, prose_of
from tests.docs.running import module_of

# The files of the tutorial belong together: `test_tutorial.py` runs them.
PYTHON = [block for block in blocks("python", calling=False) if block.page.parent.name != "tutorial"]
JSON = list(blocks("json"))
CALLS = {
    "InvocationsChannel": ("/invocations", {"message": "good day"}),
    "ResponsesChannel": ("/v1/responses", {"input": "good day"}),
    "ChatCompletionsChannel": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "good day"}]}),
    "ConversationsChannel": ("/v1/conversations", {}),
    "A2AChannel": (
        "/a2a/v1/message:send?A2A-Version=1.0",
        {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "good day"}]}},
    ),
}
READERS = {
    "/invocations": decode_invocation,
    "/v1/responses": decode_response,
    "/a2a/v1/message:send": lambda raw: parse_sent(msgspec.json.decode(raw, type=SendIn), "", INPUT_MODES),
    "/plain": lambda raw: decode_as(SAID, raw),
}
MISSING = {
    "init": ["hotel"],
    "serve": ["module:host"],
    "worker": ["module:host"],
    "check": ["module:host"],
    "keys": ["list"],
    "links": ["list", "--state", "a"],
    "deliveries": ["list", "--state", "a"],
    "deliver": ["text", "--to", "chat", "1", "--state", "a"],
    "run": ["text", "--to", "chat", "1", "--state", "a"],
    "move-state": ["--from", "a", "--to", "b"],
}


@pytest.mark.parametrize("block", PYTHON, ids=str)
async def test_python_in_the_documents_runs(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    # What keeps state keeps it where it is started, or where the environment says.
    monkeypatch.chdir(tmp_path)
    if DATABASE in block.text:
        monkeypatch.setenv(DATABASE, request.getfixturevalue("postgres"))
    tree = ast.parse(block.text)
    # What only runs as a script would serve for ever.
    tree.body = [node for node in tree.body if not _is_main(node)]
    space = module_of(str(block), compile(tree, str(block), "exec"))
    tests = [value for name, value in space.items() if name.startswith("test_")]
    for test in tests:
        await test()
    if "host" in space and not tests:
        await _call(space["host"])


async def _call(host: AgentFrameworkHost) -> None:
    if any(isinstance(channel, TelegramChannel) for channel in host.channels):
        # It would call the platform itself.
        return
    async with serving(host) as client:
        for channel in host.channels:
            if isinstance(channel, WebChatChannel):
                assert channel.path in (await client.http.get(channel.path)).raise_for_status().text
                continue
            if isinstance(channel, MCPChannel):
                async with Client(f"{client.base_url}{channel.path}") as tools:
                    assert (await tools.list_tools()).tools
                continue
            path, body = CALLS[type(channel).__name__]
            answer = await client.http.post(path, json=body)
            # A conversation has no status: it is there.
            assert answer.raise_for_status().json().get("status", "completed") == "completed"


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


@pytest.mark.parametrize("block", JSON, ids=str)
def test_json_in_the_documents_is_json(block: Block) -> None:
    for line in [block.text] if block.text.startswith("{\n") else block.text.splitlines():
        assert isinstance(json.loads(line), dict)


@pytest.mark.parametrize("command", sorted({command for _, command in commands("frontdesk")}))
def test_every_frontdesk_command_can_be_given(command: str) -> None:
    name, *arguments = shlex.split(command)[1:]
    # The bare name of a command speaks about it; one that needs a host is not meant to be typed like that.
    options = build_parser().parse_args([name, *(arguments or MISSING.get(name, []))])
    reference = getattr(options, "reference", None)
    if reference is not None and reference.module.startswith("docs/"):
        assert (ROOT / reference.module).is_file()


# Those for operators are sent by `tests/admin/test_http_api.py`.
CURL = sorted({command for _, command in commands("curl") if "--unix-socket" not in command})


@pytest.mark.parametrize("command", CURL)
def test_every_curl_line_can_be_sent(command: str) -> None:
    words = shlex.split(command)
    read = READERS[urlsplit(next(word for word in words if "://" in word)).path]
    assert words[words.index("-H") + 1].partition(":")[0] in ("content-type", "x-api-key")
    assert read(words[words.index("-d") + 1].encode())


@pytest.mark.parametrize(("page", "command"), sorted(set(commands("make"))))
def test_every_make_command_has_a_target(page: str, command: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    if page in ("docs/guides/models.md", "CHANGELOG.md"):
        # These pages also name targets of the Makefile that `frontdesk init` writes.
        makefile += list_files("openai", ["web"])["Makefile"]
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    wanted = [word for word in shlex.split(command)[1:] if "=" not in word and not word.startswith("-")]
    assert set(wanted) <= targets
    settings = {word.partition("=")[0] for word in shlex.split(command)[1:] if "=" in word}
    assert settings <= set(re.findall(r"^([A-Z]+) ", makefile, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=get_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{link} in {get_name(page)}"
        assert not anchor or anchor in anchors(found), f"{link} in {get_name(page)}"


@pytest.mark.parametrize("page", PAGES, ids=get_name)
def test_every_path_that_is_named_is_there(page: Path) -> None:
    for path in re.findall(r"`((?:src|tests|docs|bench|requirements)/[\w./-]+)`", prose_of(page)):
        assert (ROOT / path).exists(), f"{path} in {get_name(page)}"


@pytest.mark.parametrize("page", PAGES, ids=get_name)
def test_every_module_and_name_of_the_package_exists(page: Path) -> None:
    for name in re.findall(r"`(frontdesk(?:\.\w+)+)", prose_of(page)):
        assert pkgutil.resolve_name(name) is not None


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link]
    assert {get_name(page) for page in PAGES} <= {get_name(page) for page in seen}


def test_the_architecture_shows_the_layers_that_are_enforced() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (enforced,) = [contract for contract in project["tool"]["importlinter"]["contracts"] if contract["id"] == "layers"]
    shown = (ROOT / "docs/internals/architecture.md").read_text("utf-8").partition("## Layers")[2].split("```")[1]
    assert shown.removeprefix("text").split("\n")[1:-1] == [one for one in enforced["layers"] if one != "(__main__)"]
