"""The SDK of Foundry as a judge: its client writes for us over TLS, and its own host reads our turns as we read its."""

import asyncio
import json
import logging
import re
import shlex
import shutil
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn

if find_spec("azure") is None:
    pytest.skip("the SDK of Foundry judges in an environment of its own: make foundry", allow_module_level=True)

from agent_framework import Agent, Content, Message

from frontdesk import (
    AgentFrameworkHost,
    ChannelConfigurationError,
    FoundryHostedAgentHistoryProvider,
    IsolationKeys,
    PlatformAuth,
    TrustedEnvironment,
    foundry_response_id,
)
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.foundry.conventions import ITEM_PREFIXES, get_partition, item_id
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import serving
from tests.faults.ports import free_port
from tests.foundry.fake import TOKEN, FakeStorage
from tests.foundry.how_to import FILES, answer, commands, output, start_program

trustme: Any = import_module("trustme")
sdk: Any = import_module("azure.ai.agentserver.responses")
generator: Any = import_module("azure.ai.agentserver.responses._id_generator").IdGenerator

ADA = {"x-agent-user-id": "ada", "x-agent-foundry-call-id": "call-ada"}
BOB = {"x-agent-user-id": "bob", "x-agent-foundry-call-id": "call-bob"}


class Credential:
    """A token that does not expire."""

    async def get_token(self, *scopes: str, **_: Any) -> Any:
        assert scopes == ("https://ai.azure.com/.default",)
        return SimpleNamespace(token=TOKEN, expires_on=int(time.time()) + 3600)

    async def close(self) -> None:
        pass

    async def __aenter__(self) -> "Credential":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An authority that every client of this process trusts; before the first of them is made."""
    made = trustme.CA()
    place = tmp_path_factory.mktemp("authority") / "ca.pem"
    made.cert_pem.write_to_path(str(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(place))
        yield made


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def _serve(app: Any, authority: Any = None) -> AsyncIterator[str]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, lifespan="on" if authority is None else "off")
    config.load()
    if authority is not None:
        config.ssl = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(config.ssl)
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]))
    try:
        await server.ready.wait()
        scheme = "http" if authority is None else "https"
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.force_exit = True
        server.should_exit = True
        await task


@pytest.fixture
async def world(authority: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[FakeStorage, str]]:
    """The storage behind TLS, and the environment of a hosted agent."""
    fake = FakeStorage()
    fake.calls |= {"call-ada": "ada", "call-bob": "bob"}
    async with _serve(fake.app, authority) as base:
        monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "test")
        monkeypatch.setenv("FOUNDRY_PROJECT_ENDPOINT", base)
        monkeypatch.setenv("FOUNDRY_AGENT_NAME", "concierge")
        monkeypatch.setenv("FOUNDRY_AGENT_VERSION", "1")
        monkeypatch.setenv("FOUNDRY_AGENT_SESSION_ID", "sandbox-1")
        yield fake, base


def _join_said(messages: Any) -> str:
    return " | ".join(message.text for message in messages if message.role == "user")


def _ours(provider: FoundryHostedAgentHistoryProvider) -> AgentFrameworkHost:
    agent = Agent(ScriptedChatClient(_join_said), name="Ours", context_providers=[provider])
    channel = ResponsesChannel(auth=PlatformAuth(trusted=TrustedEnvironment()), response_id_factory=foundry_response_id)
    return AgentFrameworkHost(agent, channels=[channel], allow_in_process_runner=True, on_shutdown=[provider.aclose])


def _theirs(base: str) -> Any:
    """The SDK's own host, which answers with all that the person has said."""
    settings = sdk.FoundryStorageSettings.from_endpoint(base)
    store = sdk.FoundryStorageProvider(Credential(), settings)
    app = sdk.ResponsesAgentServerHost(store=store, configure_observability=None)

    @app.response_handler
    async def answer(request: Any, context: Any, cancelled: Any) -> Any:
        said = [
            part["text"]
            for item in await context.get_history()
            if item["type"] == "message" and item["role"] == "user"
            for part in item["content"]
        ]
        return sdk.TextResponse(context, request, text=" | ".join([*said, await context.get_input_text()]))

    return app


async def _ask(http: httpx.AsyncClient, text: str, headers: dict[str, str] = ADA, **body: Any) -> dict[str, Any]:
    asked = {"input": text, "model": "m", **body}
    answer = await http.post("/responses", json=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _text(response: dict[str, Any]) -> str:
    return response["output"][0]["content"][0]["text"]


def test_ids_are_those_of_the_sdk() -> None:
    made = foundry_response_id()
    assert generator.is_valid(made, ["caresp"]) == (True, None)
    assert generator.extract_partition_key(made) == get_partition(made)
    theirs = generator.new_response_id()
    assert get_partition(theirs) == generator.extract_partition_key(theirs)
    assert get_partition(generator.new_response_id(made)) == get_partition(foundry_response_id(theirs[:0] + made))
    for kind, prefix in ITEM_PREFIXES.items():
        ours, its = item_id(kind, made), generator.new_item_id({"type": kind}, made)
        assert ours.partition("_")[0] == its.partition("_")[0] == prefix
        assert len(ours) == len(its)
        assert generator.is_valid(ours) == (True, None)


async def test_each_reads_what_the_other_has_written(world: tuple[FakeStorage, str]) -> None:
    fake, base = world
    provider = FoundryHostedAgentHistoryProvider(credential=Credential(), timeout_seconds=30)
    async with (
        serving(_ours(provider)) as client,
        _serve(_theirs(base)) as place,
        httpx.AsyncClient(base_url=place, trust_env=False, timeout=60) as theirs,
    ):
        one = await _ask(client.http, "one")
        assert fake.responses[one["id"]].response["agent_reference"]["name"] == "concierge"
        two = await _ask(theirs, "two", previous_response_id=one["id"])
        assert _text(two) == "one | two"
        three = await _ask(client.http, "three", previous_response_id=two["id"])
        assert _text(three) == "one | two | three"
        four = await _ask(theirs, "four", previous_response_id=three["id"])
        assert _text(four) == "one | two | three | four"
        branch = await _ask(client.http, "five", previous_response_id=two["id"])
        assert _text(branch) == "one | two | five"
        shown = await theirs.get(f"/responses/{one['id']}", headers=ADA)
        assert (shown.status_code, shown.json()["status"]) == (200, "completed")
        # To another person none of it is there.
        assert _text(await _ask(client.http, "mine", BOB, previous_response_id=four["id"])) == "mine"
    assert provider.failed_writes == 0


async def test_items_of_every_kind_come_back_through_the_sdk(world: tuple[FakeStorage, str]) -> None:
    provider = FoundryHostedAgentHistoryProvider(credential=Credential(), timeout_seconds=30)
    call = Content.from_function_call("call_1", "look", arguments="{}")
    turn = [
        Message("user", ["hi", Content.from_uri("data:image/png;base64,aGk=", media_type="image/png")]),
        Message("assistant", [Content.from_text_reasoning(text="hm"), "so", call]),
        Message("tool", [Content.from_function_result("call_1", result="seen")]),
        Message("assistant", [Content.from_function_approval_request("ask_1", call)]),
    ]
    response_id, keys = foundry_response_id(), IsolationKeys(user_key="ada", call_id="call-ada")
    with provider.bind_request_context(response_id=response_id, isolation=keys):
        await provider.save_messages("s", turn)
    with provider.bind_request_context(
        response_id=foundry_response_id(), previous_response_id=response_id, isolation=keys
    ):
        back = await provider.get_messages("s")
    assert [[content.type for content in message.contents] for message in back] == [
        [content.type for content in message.contents] for message in turn
    ]
    await provider.aclose()


@pytest.mark.parametrize("fault", ["429", "503", "hangs", "refuses connections"])
async def test_outages_are_waited_for_two_seconds_and_turns_go_on(world: tuple[FakeStorage, str], fault: str) -> None:
    fake, _ = world
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    endpoint = f"https://127.0.0.1:{closed.getsockname()[1]}" if fault == "refuses connections" else None
    provider = FoundryHostedAgentHistoryProvider(credential=Credential(), endpoint=endpoint)
    fake.fails_with, fake.hangs = int(fault) if fault.isdigit() else None, fault == "hangs"
    async with serving(_ours(provider)) as client:
        began = time.monotonic()
        assert _text(await _ask(client.http, "one")) == "one"
        took = time.monotonic() - began
    closed.close()
    assert provider.failed_writes == 1
    # The SDK by itself tries for 4.8 seconds; the limit is there to end what hangs.
    assert took < 20, took
    print(f"{fault}: {took:.1f} s")


async def test_a_turn_that_was_written_before_is_no_failure(world: tuple[FakeStorage, str]) -> None:
    provider = FoundryHostedAgentHistoryProvider(credential=Credential(), timeout_seconds=30)
    response_id, keys = foundry_response_id(), IsolationKeys(user_key="ada", call_id="call-ada")
    for _ in range(2):
        with provider.bind_request_context(response_id=response_id, isolation=keys):
            await provider.save_messages("s", [Message("user", ["hi"])])
    assert provider.failed_writes == 0
    await provider.aclose()


async def test_outside_of_foundry_people_have_memories_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOUNDRY_HOSTING_ENVIRONMENT", raising=False)
    provider = FoundryHostedAgentHistoryProvider()
    response_id = foundry_response_id()
    with provider.bind_request_context(response_id=response_id, isolation=IsolationKeys(user_key="ada")):
        await provider.save_messages("s", [Message("user", ["hi"]), Message("assistant", ["so"])])
    found: list[int] = []
    for user in ("ada", "bob"):
        with provider.bind_request_context(
            response_id=foundry_response_id(),
            previous_response_id=response_id,
            isolation=IsolationKeys(user_key=user),
        ):
            found.append(len(await provider.get_messages("s")))
    assert found == [2, 0]


def test_what_is_missing_in_foundry_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "test")
    monkeypatch.delenv("FOUNDRY_PROJECT_ENDPOINT", raising=False)
    with pytest.raises(ChannelConfigurationError) as caught:
        FoundryHostedAgentHistoryProvider()
    assert len(caught.value.findings) == 2
    with pytest.raises(ChannelConfigurationError, match="https"):
        FoundryHostedAgentHistoryProvider(credential=Credential(), endpoint="http://project")


def test_files_have_no_effect_in_foundry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "test")
    caplog.set_level(logging.INFO, "frontdesk.host")
    provider = FoundryHostedAgentHistoryProvider(
        credential=Credential(), endpoint="https://project.example", local_storage_root=tmp_path
    )
    assert provider.follows_responses
    assert [record.levelname for record in caplog.records if "local_storage_root" in record.message] == ["INFO"]


async def test_the_page_says_how_it_runs_as_in_foundry(tmp_path: Path) -> None:
    _, serve, curl = commands("2. As Foundry runs it")
    served = serve.strip().replace("PORT=8088", f"PORT={free_port()}")
    assert served != serve.strip()
    async with start_program(served, tmp_path) as base:
        said = await answer(curl, base, tmp_path)
        assert said["output"][0]["content"][0]["text"].startswith("You said: Good day.")
        async with httpx.AsyncClient(base_url=base, trust_env=False) as http:
            assert (await http.get("/readiness")).status_code == 200
            refused = await http.post("/responses", json={"input": "hi"})
            assert (refused.status_code, refused.headers["x-platform-error-source"]) == (401, "user")


async def test_the_commands_of_the_image_work(tmp_path: Path) -> None:
    """What the image runs, and what its health check runs, in this environment in the place of a container."""
    text = (FILES / "Dockerfile").read_text("utf-8")
    command, check = (json.loads(found) for found in re.findall(r"CMD (\[.*\])$", text, re.MULTILINE)[::-1])
    (tmp_path / "app").mkdir()
    shutil.copy(FILES / "agent.py", tmp_path / "app")
    hosted = {
        "FOUNDRY_HOSTING_ENVIRONMENT": "test",
        "FOUNDRY_PROJECT_ENDPOINT": "https://127.0.0.1:9",
        "PORT": str(free_port()),
    }
    async with start_program(shlex.join(command), tmp_path, tmp_path / "app", hosted) as base:
        await output(shlex.join(check), tmp_path, {"PORT": base.rpartition(":")[2]})


@pytest.mark.parametrize("named", ["nonsense", "caresp_short", f"resp_{'a' * 50}"])
async def test_a_malformed_id_is_answered_as_the_sdk_answers_it(world: tuple[FakeStorage, str], named: str) -> None:
    _, base = world
    asked = {"input": "hi", "model": "m", "previous_response_id": named}
    errors: list[tuple[int, str, str]] = []
    async with _serve(_theirs(base)) as url, httpx.AsyncClient(base_url=url) as http:
        theirs = await http.post("/responses", json=asked, headers=ADA)
        errors.append((theirs.status_code, *(theirs.json()["error"][name] for name in ("code", "param"))))
    async with serving(_ours(FoundryHostedAgentHistoryProvider(credential=Credential()))) as client:
        ours = await client.http.post("/responses", json=asked, headers=ADA)
        errors.append((ours.status_code, *(ours.json()["error"][name] for name in ("code", "param"))))
    assert errors[0] == errors[1]


async def test_the_client_of_a_project_found_no_host() -> None:
    """`azure-ai-projects` appends `/openai/v1` to the address of a project."""
    projects: Any = import_module("azure.ai.projects.aio")
    agent = Agent(ScriptedChatClient(_join_said), name="Ours")
    channels = [ResponsesChannel(), ConversationsChannel(), ChatCompletionsChannel()]
    async with serving(AgentFrameworkHost(agent, channels=channels)) as client:
        project = projects.AIProjectClient(endpoint=client.base_url, credential=Credential())
        async with project, project.get_openai_client() as openai:
            talk = await openai.conversations.create()
            first = await openai.responses.create(model="Ours", input="one", conversation=talk.id)
            assert first.output_text == "one"
            assert (await openai.responses.retrieve(first.id)).output_text == "one"
            async with openai.responses.stream(model="Ours", input="two", conversation=talk.id) as stream:
                assert (await stream.get_final_response()).output_text == "one | two"
            said: Any = [{"role": "user", "content": "three"}]
            completion = await openai.chat.completions.create(model="Ours", messages=said)
            assert completion.choices[0].message.content == "three"
