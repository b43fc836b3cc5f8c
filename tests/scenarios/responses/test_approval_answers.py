"""Answers in any order, from anybody, to anything, along any branch: a tool runs once at most, and only by a yes."""

import asyncio
from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.responses.cast import Till, build_answering, call
from tests.scenarios.responses.tap import read_events

ALICE, BOB = "the-key-of-alice", "the-key-of-bob-who-is-a-stranger"
PAY, REFUND = call("pay", "call_pay", amount=5), call("refund", "call_refund", amount=3)

moves = st.lists(
    st.fixed_dictionaries(
        {
            "who": st.sampled_from([ALICE, ALICE, ALICE, BOB]),
            "answers": st.lists(
                st.tuples(st.sampled_from(["pay", "refund", "pay", "refund", "made up"]), st.booleans()),
                min_size=1,
                max_size=2,
            ),
            "after": st.integers(-1, 6),
            "repeat": st.sampled_from(["nothing", "nothing", "as asked", "altered"]),
            "stream": st.booleans(),
        }
    ),
    max_size=8,
)


@given(moves)
def test_a_tool_runs_once_at_most_and_only_by_a_yes(steps: list[dict[str, Any]]) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[dict[str, Any]]) -> None:
    till = Till()
    target = build_answering(
        lambda messages: ["done"] if messages[-1].role == "tool" else [PAY, REFUND], tools=till.tools()
    )
    auth = ApiKeyAuth({"alice": ALICE, "bob": BOB})
    host = AgentFrameworkHost(target, channels=[ResponsesChannel(auth=auth)])
    transport = httpx.ASGITransport(app=host.app, client=("127.0.0.1", 1))
    async with (
        host.app.router.lifespan_context(host.app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http,
    ):
        asked = (await _post(http, ALICE, {"input": "pay and refund"})).json()
        questions = {item["name"]: item for item in asked["output"]}
        assert set(questions) == {"pay", "refund"}
        made, said_yes = [asked["id"]], set[str]()
        for step in steps:
            before = list(till.ran)
            body, known = _body(step, questions, made)
            response = await _post(http, step["who"], body)
            if response.status_code == 200:
                made.append(_response(response)["id"])
            yes = {name for name, approve in step["answers"] if approve}
            if response.status_code == 200:
                said_yes |= yes
            else:
                assert till.ran == before
            if step["who"] == BOB or not known or step["repeat"] == "altered":
                assert response.status_code in (400, 404, 409)
            names = [name for name, *_ in till.ran]
            assert len(names) == len(set(names))
            assert set(names) <= said_yes


def _body(step: dict[str, Any], questions: dict[str, Any], made: list[str]) -> tuple[dict[str, Any], bool]:
    said: list[Any] = []
    known = True
    for name, _ in step["answers"]:
        question = questions.get(name)
        known = known and question is not None
        if question is not None and step["repeat"] != "nothing":
            changed = {"arguments": '{"amount": 500}'} if step["repeat"] == "altered" else {}
            said.append({**question, **changed})
    for name, approve in step["answers"]:
        asked = questions[name]["id"] if name in questions else "made up"
        said.append({"type": "mcp_approval_response", "approval_request_id": asked, "approve": approve})
    body = {"input": said, "stream": step["stream"]}
    if 0 <= step["after"] < len(made):
        body["previous_response_id"] = made[step["after"]]
    return body, known


def _response(answer: httpx.Response) -> dict[str, Any]:
    if answer.headers["content-type"] == "application/json":
        return answer.json()
    events, _ = read_events(answer.content)
    return events[-1]["response"]


async def _post(http: httpx.AsyncClient, key: str, body: dict[str, Any]) -> httpx.Response:
    return await http.post("/v1/responses", json=body, headers={"authorization": f"Bearer {key}"})
