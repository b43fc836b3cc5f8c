"""`frontdesk chat` speaks the Responses API where a host serves no Invocations."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.cli.chat import to_invocation, to_responses
from tests.cli.processes import Running, frontdesk
from tests.cli.test_chat import TWO_PAYMENTS, lines_of
from tests.examples import examples

HOST = (
    TWO_PAYMENTS.replace("channels.invocations import InvocationsChannel", "channels.responses import ResponsesChannel")
    .replace("channels=[InvocationsChannel()]", "channels=[ResponsesChannel(), LOCKED]")
    .replace("import AgentFrameworkHost", "import AgentFrameworkHost, ApiKeyAuth")
    .replace(
        "host = ",
        'KEYS = ApiKeyAuth({"ada": "a-key-that-is-long"})\n'
        'LOCKED = ResponsesChannel(name="locked", path="/locked", auth=KEYS)\nhost = ',
    )
    .replace(
        "else calls\n",
        'else ([Content.from_text(f"{len(messages)}: {messages[-1].text}")] if "pay" not in '
        "messages[-1].text else calls)\n",
    )
)


@pytest.fixture(scope="module")
def payer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a host with nothing but the Responses API."""
    folder = tmp_path_factory.mktemp("payer")
    (folder / "payer.py").write_text(HOST)
    with Running("serve", "payer:host", "--port", "0", cwd=folder) as server:
        yield server.url().rstrip("/").removesuffix("/locked")


def test_turns_and_approvals_are_one_conversation(payer: str) -> None:
    ended = frontdesk("chat", payer, stdin=lines_of("hello", "pay", "y", "y", "/new", "hello"))
    assert (ended.returncode, ended.stderr) == (0, "")
    hello, first, second, paid, _, anew = ended.stdout.splitlines()
    assert (hello, anew) == ("1: hello", "1: hello")
    assert first.startswith('Payer wants to run pay with {"euros": 1} (')
    assert second.startswith('Payer wants to run pay with {"euros": 2} (')
    assert paid == "paid 1 and paid 2"


def test_the_url_may_name_the_api_and_a_key_may_be_needed(payer: str) -> None:
    named = frontdesk("chat", f"{payer}/v1/responses", stdin=lines_of("hello", "again"))
    assert (named.returncode, named.stdout.splitlines()) == (0, ["1: hello", "3: again"])
    locked = frontdesk("chat", f"{payer}/locked/v1", "--api-key", "a-key-that-is-long", stdin="hello\n")
    assert (locked.returncode, locked.stdout) == (0, "1: hello\n")
    refused = frontdesk("chat", f"{payer}/locked/v1", stdin="hello\n")
    assert (refused.returncode, "401" in refused.stderr) == (1, True)


def test_a_session_is_a_response_or_a_conversation() -> None:
    message = {"message": "hello", "stream": True}
    assert to_responses(message) == {"input": "hello", "stream": True}
    assert to_responses({**message, "session_id": "resp_1"})["previous_response_id"] == "resp_1"
    assert to_responses({**message, "session_id": "conv_1"})["conversation"] == "conv_1"


def test_the_next_turn_goes_on_from_an_answer_and_not_from_a_failure() -> None:
    assert to_invocation({"id": "resp_2", "status": "completed"})["session_id"] == "resp_2"
    assert to_invocation({"id": "resp_2", "status": "failed"})["session_id"] is None
    kept = {"id": "resp_2", "status": "completed", "conversation": {"id": "conv_1"}}
    assert to_invocation(kept)["session_id"] == "conv_1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "content", "text", "arguments", "id"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    response=st.fixed_dictionaries(
        {},
        optional={
            "id": JSON,
            "status": JSON,
            "output": JSON
            | st.just([{"type": "message", "content": [{"text": "hi"}]}, {"type": "mcp_approval_request"}]),
            "conversation": JSON,
            "error": JSON,
        },
    )
)
@examples(60)
def test_whatever_a_server_answers_is_read(response: dict[str, Any]) -> None:
    answer = to_invocation(response)
    assert isinstance(answer["text"], str)
    assert json.dumps(answer["approvals"])
