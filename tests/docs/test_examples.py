"""Every example is imported, started on a real server and called over HTTP."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, NotFoundError

from frontdesk_testing import parse_sse, serving
from tests.channels.web.visiting import open_visitor
from tests.docs.pages import DATABASE, EXAMPLES, ROOT
from tests.docs.running import example, example_module
from tests.scenarios.desk import until

ALICE = {"x-api-key": "alice-key-for-the-laptop"}
ALICE_TOO = {"authorization": "Bearer alice-key-for-the-phone"}
BOB = {"x-api-key": "bob-key-for-everything"}

# What to send to each example, and what its answer begins with.
CALLS: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "a2a_agents": ({"message": "good day"}, {}, "Say “I was charged twice”"),
    "agent_host": ({"message": "good day"}, {}, "You said: good day."),
    "agui_page": ({"message": "plan a trip"}, {}, "I have added the hotel to your plan."),
    "api_keys": ({"message": "good day"}, ALICE, "message 1"),
    "background": ({"message": "good day"}, {}, "good day"),
    "approvals": ({"message": "good day"}, {}, "Say “pay”"),
    "approvers": ({"message": "good day"}, {}, "Say “refund”"),
    "bearer_tokens": ({"message": "good day"}, {"x-api-key": "the-key-of-the-robot"}, "message 1"),
    "conversations": ({"message": "good day"}, {}, "I heard: good day."),
    "compactor": ({"message": "good day"}, {}, "message 1"),
    "mcp_host": ({"message": "good day"}, {}, "You said: good day"),
    "limits": ({"message": "good day"}, {}, "good day"),
    "delivery": ({"message": "good day"}, {}, "You said: good day"),
    "function_host": ({"message": "good day"}, {}, "GOOD DAY"),
    "state_postgres": ({"message": "good day"}, {}, "This is message 1."),
    "state_sqlite": ({"message": "good day"}, {}, "This is message 1."),
    "responses_host": ({"message": "good day"}, {}, "You said: good day."),
    "many_machines_postgres": ({"message": "good day"}, {}, "I'll remind you: good day"),
    "hooks": ({"input": {"nights": 3}}, {"x-guest": "Ada"}, "Ada: 360 €"),
    "workflow_host": ({"message": "good day"}, {}, "2 words"),
    "order_workflow": ({"customer_id": "c-1", "item": "tea"}, {}, "c-1: tea"),
    "telegram_multicast": ({"message": "good day"}, ALICE, "You said: good day"),
    "oauth_link": ({"message": "good day"}, {}, "message 1"),
    "profile_claim": ({"message": "good day"}, {"x-badge": "badge-of-alice-0001"}, "Welcome."),
    "profile_link": ({"message": "good day"}, {}, "message 1"),
    "profile_mixed": ({"message": "good day"}, {"x-api-key": "the-night-porters-key"}, "Welcome."),
    "profile_native": ({"message": "good day"}, ALICE, "Welcome."),
    "profile_open": ({"message": "good day"}, BOB, "Welcome."),
    "web_embed": ({"message": "good day"}, {}, "You asked: good day"),
    "web_theme": ({"message": "good day"}, {}, "You said: good day"),
    "web_sign_in": ({"message": "good day"}, {}, "message 1"),
    "workflow_pause": ({"message": "Ada"}, {}, "Welcome, Ada."),
}


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps state keeps it where it is started."""
    monkeypatch.chdir(tmp_path)
    # Telegram is not reached here: `test_telegram_examples.py` plays on a fake.
    monkeypatch.setenv("TELEGRAM_API_URL", "http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def _database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example on Postgres finds a database of its own."""
    if "postgres" in request.node.name:
        monkeypatch.setenv(DATABASE, request.getfixturevalue("postgres"))


def find_example(name: str) -> Path:
    return ROOT / f"docs/examples/{name}.py"


def test_every_example_is_called() -> None:
    assert {path.stem for path in EXAMPLES} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
async def test_an_example_answers(name: str) -> None:
    body, headers, answer = CALLS[name]
    async with serving(example(find_example(name))) as client:
        whole = (await client.http.post("/invocations", json=body, headers=headers)).raise_for_status().json()
        assert whole["status"] == "completed"
        assert whole["text"].startswith(answer)


@pytest.mark.parametrize("name", CALLS)
async def test_an_example_streams(name: str) -> None:
    body, headers, answer = CALLS[name]
    async with serving(example(find_example(name))) as client:
        response = await client.http.post("/invocations", json={**body, "stream": True}, headers=headers)
        events = list(parse_sse(response.raise_for_status().content))
    assert events[0].event == "started"
    assert {event.event for event in events[1:-1]} == {"update"}
    assert events[-1].event == "completed"
    assert events[-1].json()["text"].startswith(answer)


@pytest.mark.parametrize("name", ["agent_host", "workflow_host"])
def test_a_host_takes_twelve_lines(name: str) -> None:
    docstring, *lines = find_example(name).read_text("utf-8").splitlines()
    assert docstring.endswith('"""')
    assert len([line for line in lines if line.strip()]) <= 12


async def test_the_agent_remembers_its_session() -> None:
    async with serving(example(find_example("agent_host"))) as client:
        first = await client.invoke("my name is Ada")
        again = await client.invoke("who am I?", session_id=first["session_id"])
        other = await client.invoke("who am I?")
    assert again["text"].endswith("you said 1 other things.")
    assert other["text"].endswith("you said 0 other things.")


async def test_the_session_goes_on_after_a_restart() -> None:
    for text in ("This is message 1.", "This is message 3."):
        async with serving(example(find_example("state_sqlite"))) as client:
            assert (await client.invoke("hello", session_id="visit"))["text"] == text


async def test_two_hosts_on_postgres_serve_every_session() -> None:
    hosts = [example(find_example("state_postgres")) for _ in range(2)]
    async with serving(hosts[0]) as first, serving(hosts[1]) as second:
        told = [(await client.invoke("hello", session_id="visit"))["text"] for client in (first, second, first)]
    assert told == ["This is message 1.", "This is message 3.", "This is message 5."]


async def test_whoever_is_on_duty_approves_on_the_page() -> None:
    async with serving(example(find_example("approvers"))) as client, open_visitor(client.base_url) as manager:
        await manager.say("/duty")
        assert "on duty" in (await manager.wait_for_messages(2))[1]["text"]
        run = await client.invoke("refund, please", session_id="visit")
        assert run["approvals"][0]["waits_for"] == ["the manager on duty"]
        card = (await manager.wait_for_messages(3))[2]["question"]
        question = await manager.get(f"approvals/{card['approval_id']}")
        assert question["waits_for"] == ["the manager on duty"]
        answer = {"approved": True, "digest": question["digest"]}
        assert (await manager.post(f"approvals/{card['approval_id']}", **answer)).json()["outcome"] == "recorded"

        async def refunded() -> bool:
            first = (await client.http.get(f"/invocations/{run['id']}")).json()
            later = await client.http.get(f"/invocations/{first['continued_by']}")
            return later.status_code == 200 and later.json()["text"] == "Refunded 120 euros to Ada."

        await until(refunded)


async def test_an_agent_asks_another_and_a_person_approves_in_a_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    module = example_module(find_example("a2a_agents"))
    async with (
        serving(module.cashier) as cashier,
        serving(module.host) as concierge,
        open_visitor(cashier.base_url) as manager,
        open_visitor(concierge.base_url) as guest,
    ):
        monkeypatch.setenv("CASHIER_URL", cashier.base_url)
        await manager.say("/duty")
        await manager.wait_for_messages(2)
        await guest.say("I was charged twice")
        card = (await manager.wait_for_messages(3))[2]["question"]
        question = await manager.get(f"approvals/{card['approval_id']}")
        answer = {"approved": True, "digest": question["digest"]}
        assert (await manager.post(f"approvals/{card['approval_id']}", **answer)).json()["outcome"] == "recorded"
        assert (await guest.wait_for_messages(2))[1]["text"] == "The cashier says: Refunded 120 euros."


async def test_the_workflow_has_two_outputs() -> None:
    async with serving(example(find_example("workflow_host"))) as client:
        assert (await client.invoke("one two"))["outputs"] == ["2 words", "two one"]


async def test_the_workflow_waits_for_its_answer() -> None:
    async with serving(example(find_example("workflow_pause"))) as client:
        run = await client.invoke("Ada")
        (asked,) = run["requests"]
        assert (asked["data"], asked["response_type"]) == ({"room": "the attic", "price": 90}, "Choice")
        body = {"session_id": run["session_id"], "responses": {asked["id"]: {"accepted": True, "nights": 2}}}
        told = (await client.http.post("/invocations", json=body)).raise_for_status().json()
    assert told["text"] == "Booked: the attic, 180 €."


async def test_a_hook_refuses_in_its_own_words() -> None:
    async with serving(example(find_example("hooks"))) as client:
        refused = await client.http.post("/invocations", json={"input": {"nights": 31}})
        failed = await client.http.post("/invocations", json={"input": {}})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "stay_too_long")
    assert (failed.status_code, failed.json()["error"]["code"]) == (422, "hook_failed")
    assert "nights" not in failed.text


async def test_what_alice_makes_does_not_exist_for_bob() -> None:
    async with serving(example(find_example("api_keys"))) as client:
        made = await client.invoke("hello", headers=ALICE, session_id="desk")
        more = await client.invoke("hello", headers=ALICE_TOO, session_id="desk")
        other = await client.invoke("hello", headers=BOB, session_id="desk")
        found = [
            (await client.http.get(f"/invocations/{made['id']}", headers=headers)).status_code
            for headers in (ALICE_TOO, BOB, {"x-api-key": "nobody-knows-this-key"}, {})
        ]
    assert [one["text"] for one in (made, more, other)] == ["message 1", "message 3", "message 1"]
    assert found == [200, 404, 401, 401]


@pytest.mark.parametrize(("approved", "text"), [(True, "Paid 120 euros."), (False, "rejected")])
async def test_a_human_is_asked_before_the_tool_runs(approved: bool, text: str) -> None:
    async with serving(example(find_example("approvals"))) as client:
        asked = await client.invoke("pay")
        question = asked["approvals"][0]
        assert (question["tool"], question["arguments"]) == ("pay", {"amount": 120})
        body = {"approval": {"id": question["id"], "approved": approved}}
        answered = await client.http.post("/invocations", json=body)
        again = await client.http.post("/invocations", json=body)
    assert text in answered.json()["text"]
    assert answered.json()["session_id"] == asked["session_id"]
    assert (again.status_code, again.json()["error"]["code"]) == (409, "approval_answered")


async def test_one_agent_has_two_doors() -> None:
    async with serving(example(find_example("responses_host"))) as client:
        invoked = await client.invoke("good day")
        async with AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="any", http_client=direct()) as api:
            answered = await api.responses.create(model="any", input="good day")
            more = await api.responses.create(model="any", input="and", previous_response_id=answered.id)
            with pytest.raises(NotFoundError):
                await api.responses.retrieve(invoked["id"])
    assert answered.output_text == invoked["text"]
    assert (answered.model, answered.status) == ("Concierge", "completed")
    assert more.output_text.endswith("you said 1 other things.")


def direct() -> httpx2.AsyncClient:
    """What the client sends with, without the machine's proxies."""
    return httpx2.AsyncClient(trust_env=False)
