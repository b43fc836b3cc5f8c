"""`FoundryHostedAgentHistoryProvider` against the strict fake, behind a host and alone."""

import asyncio
import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Content, Message

from frontdesk import (
    AgentFrameworkHost,
    ChannelConfigurationError,
    FoundryHostedAgentHistoryProvider,
    InMemoryStateStore,
    IsolationKeys,
    PlatformAuth,
    TrustedPeers,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import UnavailableError
from frontdesk.foundry.conventions import foundry_response_id, is_response_id
from frontdesk.history.foundry.provider import get_directory
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import HostClient, serving
from tests.foundry.fake import FakeStorage, HttpStorage

ADA = IsolationKeys(user_key="ada", call_id="call-ada")
BOB = IsolationKeys(user_key="bob", call_id="call-bob")


@pytest.fixture
def fake() -> FakeStorage:
    fake = FakeStorage()
    fake.calls |= {"call-ada": "ada", "call-bob": "bob"}
    return fake


@pytest.fixture
def provider(fake: FakeStorage) -> FoundryHostedAgentHistoryProvider:
    return FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), timeout_seconds=5)


def _turn(number: int) -> list[Message]:
    return [Message("user", [f"question {number}"]), Message("assistant", [f"answer {number}"])]


async def _write(
    provider: FoundryHostedAgentHistoryProvider, number: int, previous: str | None = None, keys: IsolationKeys = ADA
) -> str:
    response_id = foundry_response_id(previous)
    with provider.bind_request_context(response_id=response_id, previous_response_id=previous, isolation=keys):
        await provider.save_messages("ses_1", _turn(number))
    return response_id


async def _texts(
    provider: FoundryHostedAgentHistoryProvider, previous: str | None, keys: IsolationKeys = ADA, **more: Any
) -> list[str]:
    with provider.bind_request_context(
        response_id=foundry_response_id(previous), previous_response_id=previous, isolation=keys
    ):
        return [message.text for message in await provider.get_messages("ses_1", **more)]


async def test_a_turn_is_one_completed_response(fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider) -> None:
    variables = {
        "FOUNDRY_AGENT_NAME": "concierge",
        "FOUNDRY_AGENT_VERSION": "3",
        "FOUNDRY_AGENT_SESSION_ID": "sandbox-1",
        "AZURE_AI_MODEL_DEPLOYMENT_NAME": "a-model",
    }
    provider.look(variables.get)
    first = await _write(provider, 1)
    second = await _write(provider, 2, first)
    one, two = fake.of("ada")
    assert two.response["id"] == second
    assert two.response["response_id"] == second
    assert two.response["previous_response_id"] == first
    assert two.response["agent_session_id"] == "sandbox-1"
    assert two.response["agent_reference"] == {"type": "agent_reference", "name": "concierge", "version": "3"}
    assert two.response["model"] == "a-model"
    assert two.response["status"] == "completed"
    assert two.history == [*one.given, *(item["id"] for item in one.response["output"])]
    assert "previous_response_id" not in one.response
    assert await _texts(provider, second) == ["question 1", "answer 1", "question 2", "answer 2"]
    assert provider.failed_writes == 0


async def test_fields_that_are_not_known_are_left_out(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider
) -> None:
    await _write(provider, 1)
    (stored,) = fake.of("ada")
    assert not {"model", "agent_reference", "agent_session_id"} & stored.response.keys()


async def test_a_branch_has_what_was_said_up_to_its_response(provider: FoundryHostedAgentHistoryProvider) -> None:
    first = await _write(provider, 1)
    await _write(provider, 2, first)
    branch = await _write(provider, 3, first)
    assert await _texts(provider, branch) == ["question 1", "answer 1", "question 3", "answer 3"]


async def test_a_response_of_another_person_or_of_nobody_is_an_empty_history(
    provider: FoundryHostedAgentHistoryProvider,
) -> None:
    first = await _write(provider, 1)
    assert await _texts(provider, first, BOB) == []
    assert await _texts(provider, foundry_response_id()) == []
    assert await _texts(provider, "resp_of_ours") == []


async def test_a_turn_behind_a_response_that_is_gone_is_written_alone(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider, caplog: pytest.LogCaptureFixture
) -> None:
    lost = foundry_response_id()
    second = await _write(provider, 2, lost)
    assert "writing the turn alone" in caplog.text
    assert await _texts(provider, second) == ["question 2", "answer 2"]
    assert provider.failed_writes == 0


async def test_the_same_turn_once_more_counts_as_written(provider: FoundryHostedAgentHistoryProvider) -> None:
    response_id = foundry_response_id()
    for _ in range(2):
        with provider.bind_request_context(response_id=response_id, isolation=ADA):
            await provider.save_messages("ses_1", _turn(1))
    assert await _texts(provider, response_id) == ["question 1", "answer 1"]
    assert provider.failed_writes == 0


async def test_two_turns_of_one_request_are_two_responses(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider
) -> None:
    response_id = foundry_response_id()
    with provider.bind_request_context(response_id=response_id, isolation=ADA):
        await provider.save_messages("ses_1", _turn(1))
        await provider.save_messages("ses_1", _turn(2))
    one, two = fake.of("ada")
    assert one.response["id"] == response_id
    assert two.response["previous_response_id"] == response_id


async def test_a_session_without_response_ids_goes_on_by_its_state(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider
) -> None:
    state: dict[str, Any] = {}
    for number in (1, 2):
        with provider.bind_request_context(response_id=f"run_{number}", isolation=ADA):
            await provider.save_messages("ses_1", _turn(number), state=state)
    assert all(is_response_id(stored.response["id"]) for stored in fake.of("ada"))
    with provider.bind_request_context(response_id="run_3", isolation=ADA):
        assert len(await provider.get_messages("ses_1", state=state)) == 4


async def test_the_sandbox_is_no_conversation(provider: FoundryHostedAgentHistoryProvider) -> None:
    await _write(provider, 1)
    provider.look({"FOUNDRY_AGENT_SESSION_ID": foundry_response_id()}.get)
    with provider.bind_request_context(response_id=foundry_response_id(), isolation=ADA):
        assert await provider.get_messages("sandbox-1") == []


async def test_a_session_can_have_the_name_of_a_response(provider: FoundryHostedAgentHistoryProvider) -> None:
    first = await _write(provider, 1)
    with provider.bind_request_context(response_id=foundry_response_id(), isolation=ADA):
        assert len(await provider.get_messages(first)) == 2


async def test_a_history_that_is_cut_begins_behind_the_results_of_earlier_calls(fake: FakeStorage) -> None:
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), history_limit=2)
    response_id = foundry_response_id()
    turn = [
        Message("user", ["hi"]),
        Message("assistant", [Content.from_function_call("c", "look", arguments="{}")]),
        Message("tool", [Content.from_function_result("c", result="seen")]),
        Message("assistant", ["done"]),
    ]
    with provider.bind_request_context(response_id=response_id, isolation=ADA):
        await provider.save_messages("ses_1", turn)
    assert await _texts(provider, response_id) == ["done"]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_an_outage_never_fails_a_write_and_is_counted(
    fake: FakeStorage,
    provider: FoundryHostedAgentHistoryProvider,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    first = await _write(provider, 1)
    fake.fails_with = status
    await _write(provider, 2, first)
    assert provider.failed_writes == 1
    assert "failed to store" in caplog.text
    assert "question" not in caplog.text
    with pytest.raises(UnavailableError) as caught:
        await _texts(provider, first)
    assert (caught.value.code, caught.value.retry_after) == ("history_unavailable", 1.0)


async def test_a_service_that_hangs_is_waited_for_no_longer_than_was_set(fake: FakeStorage) -> None:
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), timeout_seconds=0.02)
    fake.hangs = True
    async with asyncio.timeout(60):
        await _write(provider, 1, foundry_response_id())
        assert provider.failed_writes == 1
        with pytest.raises(UnavailableError):
            await _texts(provider, foundry_response_id())


async def test_a_history_that_hangs_leaves_time_for_the_turn(fake: FakeStorage) -> None:
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), timeout_seconds=1)
    first = await _write(provider, 1)
    fake.hangs, fake.fails_only = True, "history"
    await _write(provider, 2, first)
    assert provider.failed_writes == 0
    assert len(fake.of("ada")) == 2


async def test_a_mistake_in_code_is_raised(
    provider: FoundryHostedAgentHistoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: Any) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(HttpStorage, "create", broken)
    with pytest.raises(TypeError, match="a bug"):
        await _write(provider, 1)
    assert provider.failed_writes == 0


# Behind a host.


def _agent(provider: FoundryHostedAgentHistoryProvider) -> Agent:
    def answer(messages: Sequence[Message]) -> str:
        return " | ".join(message.text for message in messages if message.role == "user")

    return Agent(ScriptedChatClient(answer), name="Echo", context_providers=[provider])


def _host(provider: FoundryHostedAgentHistoryProvider, **options: Any) -> AgentFrameworkHost:
    auth = PlatformAuth(trusted=TrustedPeers("127.0.0.0/8"))
    channels = [ResponsesChannel(auth=auth, response_id_factory=foundry_response_id), InvocationsChannel(auth=auth)]
    return AgentFrameworkHost(_agent(provider), channels=channels, **options)


async def _ask(client: HostClient, text: str, keys: IsolationKeys = ADA, **body: Any) -> dict[str, Any]:
    headers = {"x-agent-user-id": str(keys.user_key), "x-agent-foundry-call-id": str(keys.call_id)}
    answer = await client.http.post("/responses", json={"input": text, **body}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _get_text(response: dict[str, Any]) -> str:
    return response["output"][0]["content"][0]["text"]


async def test_a_host_loads_chains_and_branches_from_foundry(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider
) -> None:
    async with serving(_host(provider)) as client:
        assert provider.load_messages is True
        one = await _ask(client, "one")
        two = await _ask(client, "two", previous_response_id=one["id"])
        branch = await _ask(client, "three", previous_response_id=one["id"])
        assert (_get_text(two), _get_text(branch)) == ("one | two", "one | three")
        assert [stored.response["id"] for stored in fake.of("ada")] == [one["id"], two["id"], branch["id"]]
        hosting = fake.of("ada")[0].response["output"][0]["agent_framework"]["properties"]["hosting"]
        assert hosting["originating_channel"] == "responses"
        await _ask(client, "kept by nobody", store=False)
        assert len(fake.responses) == 3


@pytest.mark.parametrize("shared", [True, False])
async def test_a_host_with_a_shared_store_only_mirrors(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider, shared: bool
) -> None:
    class Shared(InMemoryStateStore):
        lease_seconds = 30.0 if shared else None

    host = _host(provider, store=Shared())
    assert provider.load_messages is not shared
    if not shared:
        return
    async with serving(host) as client:
        one = await _ask(client, "one")
        two = await _ask(client, "two", previous_response_id=one["id"])
        assert _get_text(two) == "one | two"
        assert [stored.response["id"] for stored in fake.of("ada")] == [one["id"], two["id"]]
        assert not [asked for asked in fake.asked if "batch" in asked]
        await _ask(client, "kept by nobody", store=False)
        assert len(fake.responses) == 2


@pytest.mark.parametrize(
    ("given", "chosen", "loads"), [(True, None, True), (False, None, False), (None, "host", False)]
)
def test_the_operator_can_choose(fake: FakeStorage, given: bool | None, chosen: Any, loads: bool) -> None:
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), load_messages=given)
    _host(provider, history=chosen)
    assert provider.load_messages is loads


async def test_turns_go_on_while_foundry_is_away(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider
) -> None:
    async with serving(_host(provider)) as client:
        fake.fails_with = 503
        assert _get_text(await _ask(client, "one")) == "one"
        assert provider.failed_writes == 1
        fake.fails_with = None
        assert _get_text(await _ask(client, "two")) == "two"
        assert provider.failed_writes == 1


async def test_a_history_that_can_not_be_read_is_told_and_not_passed_over(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider
) -> None:
    async with serving(_host(provider), raise_errors=False) as client:
        one = await _ask(client, "one")
        fake.fails_with = 503
        two = await _ask(client, "two", previous_response_id=one["id"])
        assert two["status"] == "failed"
        assert two["error"]["message"] == "The history of this conversation can't be read. Try again later."


# In files, for development.


def _local(root: Path) -> FoundryHostedAgentHistoryProvider:
    return FoundryHostedAgentHistoryProvider(local_storage_root=root)


async def test_files_are_parted_by_person_and_chat(tmp_path: Path) -> None:
    provider = _local(tmp_path)
    keys = IsolationKeys(user_key="ada", chat_key="chat-1")
    with provider.bind_request_context(response_id="run_1", isolation=keys):
        await provider.save_messages("ses_1", _turn(1))
        assert len(await provider.get_messages("ses_1")) == 2
    await provider.save_messages("ses_1", _turn(2))
    assert (tmp_path / "ada" / "chat-1" / "ses_1.jsonl").exists()
    assert (tmp_path / "~none" / "~none" / "ses_1.jsonl").exists()
    with provider.bind_request_context(response_id="run_1", isolation=BOB):
        assert await provider.get_messages("ses_1") == []
    assert provider.follows_responses is False


_UNSAFE = [
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "~none",
    "~iso-YQ",
    "/etc",
    "a" * 300,
    "ä",
    "a\0b",
    "CON",
    "nul.txt",
    "a.",
    " a",
]


def test_no_key_leads_out_of_the_root_or_to_another_person(tmp_path: Path) -> None:
    places = {
        get_directory(tmp_path, IsolationKeys(user_key=key, chat_key=None)): key
        for key in [*_UNSAFE, None, "none", "a"]
    }
    assert len(places) == len(_UNSAFE) + 3
    for place in places:
        assert place.resolve().parent.parent == tmp_path.resolve()


@pytest.fixture
def _disk_that_ignores_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lstat = os.lstat

    def lstat_in_any_case(path: Any, **options: Any) -> os.stat_result:
        found = tmp_path
        for name in Path(path).relative_to(tmp_path).parts if Path(path).is_relative_to(tmp_path) else ():
            same = [entry for entry in found.iterdir() if entry.name.lower() == name.lower()]
            found = same[0] if same else found / name
        return lstat(found if Path(path).is_relative_to(tmp_path) else path, **options)

    monkeypatch.setattr(os, "lstat", lstat_in_any_case)


def _names(root: Path, *keys: str) -> list[str]:
    """Create the directories of people, and return their names."""
    found: list[str] = []
    for key in keys:
        place = get_directory(root, IsolationKeys(user_key=key, chat_key=key))
        place.mkdir(parents=True, exist_ok=True)
        found.append(place.parent.name)
    return found


@pytest.mark.usefixtures("_disk_that_ignores_case")
@pytest.mark.parametrize("keys", [("Alice", "alice"), ("alice", "Alice"), ("ALICE", "alice", "aLICE", "Alice")])
def test_people_whose_keys_differ_in_case_had_one_directory(tmp_path: Path, keys: tuple[str, ...]) -> None:
    names = _names(tmp_path, *keys)
    assert len({name.lower() for name in names}) == len(keys)
    assert _names(tmp_path, *keys) == names


# Their encodings differ in case only.
@pytest.mark.parametrize("keys", [("//a", "//G"), ("A" * 300, "a" * 300)])
def test_no_two_names_differ_in_case_only(tmp_path: Path, keys: tuple[str, ...]) -> None:
    names = _names(tmp_path, *keys, *(f"{letter}:{number}" for letter in "aAbB" for number in range(50)))
    assert len({name.lower() for name in names}) == len(names)
    assert max(len(name) for name in names) <= 255


@pytest.mark.usefixtures("_disk_that_ignores_case")
@pytest.mark.parametrize("key", ["Alice", "alice", "a@example.com", "ALICE"])
def test_directories_of_earlier_versions_are_found(tmp_path: Path, key: str) -> None:
    encoded = base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
    earlier = f"~iso-{encoded}" if "@" in key else key
    (tmp_path / earlier / earlier).mkdir(parents=True)
    assert _names(tmp_path, key) == [earlier]
    others = _names(tmp_path, *{"Alice", "alice", "ALICE"} - {key})
    assert earlier.lower() not in {name.lower() for name in others}
    assert _names(tmp_path, key) == [earlier]


def test_directories_that_differ_in_case_are_found_where_a_disk_has_both(tmp_path: Path) -> None:
    for name in ("alice", "Alice"):
        (tmp_path / name / name).mkdir(parents=True)
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this disk ignores case")
    assert _names(tmp_path, "Alice", "alice") == ["Alice", "alice"]


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "ada").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="is outside of it"):
        get_directory(root, IsolationKeys(user_key="ada"))


# What is found when it is made.


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.history.foundry.provider._has_sdk", lambda: False)
    with pytest.raises(ChannelConfigurationError, match=r"install \"\.\[foundry\]\""):
        FoundryHostedAgentHistoryProvider()


def test_files_are_no_history_in_foundry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("frontdesk.history.foundry.provider._has_sdk", lambda: False)
    monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "test")
    with pytest.raises(ChannelConfigurationError, match="the SDK is missing"):
        _host(_local(tmp_path), allow_in_process_runner=True)


@pytest.mark.parametrize("options", [{"timeout_seconds": 0}, {"history_limit": 0}, {"history_limit": -2}])
def test_settings_without_sense_are_refused(fake: FakeStorage, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), **options)


async def test_an_agent_without_a_host_uses_it_too(
    fake: FakeStorage, provider: FoundryHostedAgentHistoryProvider
) -> None:
    agent, session = _agent(provider), AgentSession()
    with provider.bind_request_context(response_id=foundry_response_id(), isolation=ADA):
        await agent.run("one", session=session)
    with provider.bind_request_context(response_id=foundry_response_id(), isolation=ADA):
        assert (await agent.run("two", session=session)).text == "one | two"
