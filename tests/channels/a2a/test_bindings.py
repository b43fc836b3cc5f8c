"""The card, and what the two bindings have in common: versions, extensions, errors and content types."""

import json
from typing import Any

import httpx
import pytest
from a2a.types import a2a_pb2
from agent_framework import tool
from google.protobuf.json_format import ParseDict

from frontdesk import ApiKeyAuth, BearerAuth
from frontdesk.channels.a2a import AgentExtension, AgentSkill
from frontdesk_testing import EchoAgent
from tests.channels.a2a.caller import VERSION, Client, RefusedError, calling, joined, message, states
from tests.scenarios.cast import build_scripted, parrot
from tests.scenarios.test_decisions import Shop

KEY = "the-key-of-alice"


async def card_of(client: Client, path: str = "") -> dict[str, Any]:
    answer = await client.http.get(f"{path}/.well-known/agent-card.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    ParseDict(answer.json(), a2a_pb2.AgentCard())
    return answer.json()


async def test_the_card_is_at_the_root_and_below_the_path() -> None:
    async with calling(parrot(), title="Helper", description="Helps.", version="2.1") as client:
        card = await card_of(client)
        assert card == await card_of(client, "/a2a")
        assert (card["name"], card["description"], card["version"]) == ("Helper", "Helps.", "2.1")
        urls = [(one["url"], one["protocolBinding"], one["protocolVersion"]) for one in card["supportedInterfaces"]]
        base = str(client.http.base_url).rstrip("/")
        assert urls == [(f"{base}/a2a", "JSONRPC", "1.0"), (f"{base}/a2a/v1", "HTTP+JSON", "1.0")]
        assert card["capabilities"]["streaming"] is True
        assert card["capabilities"]["pushNotifications"] is False
        assert card["capabilities"]["extendedAgentCard"] is False
        assert len(card["skills"]) == 1


async def test_a_card_is_cached() -> None:
    async with calling(parrot()) as client:
        path = "/.well-known/agent-card.json"
        answer = await client.http.get(path)
        assert "max-age=" in answer.headers["cache-control"]
        for name, value in (
            ("if-none-match", answer.headers["etag"]),
            ("if-none-match", f'"other", W/{answer.headers["etag"]}'),
            ("if-modified-since", answer.headers["last-modified"]),
        ):
            again = await client.http.get(path, headers={name: value})
            assert (again.status_code, again.content) == (304, b""), name
            assert again.headers["etag"] == answer.headers["etag"]
        for name, value in (("if-none-match", '"x"'), ("if-modified-since", "nonsense")):
            assert (await client.http.get(path, headers={name: value})).status_code == 200
        head = await client.http.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert (await client.http.post(path)).status_code == 405


async def test_the_public_url_is_on_the_card() -> None:
    options = {"public_url": "https://agents.example.com"}
    async with calling(parrot(), options=options, tenants=["acme"]) as client:
        card = await card_of(client)
        assert [one["url"] for one in card["supportedInterfaces"]] == [
            "https://agents.example.com/a2a",
            "https://agents.example.com/a2a/v1",
        ] * 2
        assert [one.get("tenant") for one in card["supportedInterfaces"]] == [None, None, "acme", "acme"]


async def test_tools_are_on_the_extended_card_only() -> None:
    @tool(approval_mode="never_require")
    def secret_tool() -> str:
        """Works."""
        return ""

    auth = ApiKeyAuth({"alice": KEY})
    skills = [AgentSkill(id="talk", name="Talk", description="Talks.", tags=["chat"], examples=["hi"])]
    more = [AgentSkill(id="inside", name="Inside", description="For partners.")]
    agent = build_scripted(lambda _: ["hi"], tools=[secret_tool])
    async with calling(agent, auth=auth, skills=skills, extended_skills=more) as client:
        card = await card_of(client)
        assert [skill["id"] for skill in card["skills"]] == ["talk"]
        assert "secret_tool" not in json.dumps(card)
        assert card["capabilities"]["extendedAgentCard"] is True
        alice = client.as_caller(KEY)
        extended = await alice.call("GetExtendedAgentCard")
        assert [skill["id"] for skill in extended["skills"]] == ["talk", "secret_tool", "inside"]
        rest = await client.http.get("/a2a/v1/extendedAgentCard", headers={**VERSION, "x-api-key": KEY})
        assert rest.json() == extended
        for path, method in (("/a2a/v1/extendedAgentCard", "GET"), ("/a2a", "POST")):
            answer = await client.http.request(method, path, headers=VERSION, json={})
            assert answer.status_code == 401
            assert "www-authenticate" in answer.headers
    async with calling(agent, show_tools_as_skills=True) as client:
        assert [skill["id"] for skill in (await card_of(client))["skills"]] == ["secret_tool"]
        with pytest.raises(RefusedError) as error:
            await client.call("GetExtendedAgentCard")
        assert error.value.reason == "UNSUPPORTED_OPERATION"


async def test_the_schemes_of_the_card_are_those_of_the_auth() -> None:
    bearer = BearerAuth(issuer="https://login.example.com", audience="api://a")
    async with calling(parrot(), auth=[ApiKeyAuth({"alice": KEY}), bearer]) as client:
        card = await card_of(client)
        assert card["securitySchemes"]["api_key"] == {
            "apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}
        }
        assert card["securitySchemes"]["bearer"] == {"httpAuthSecurityScheme": {"scheme": "bearer"}}
        assert [list(one["schemes"]) for one in card["securityRequirements"]] == [["api_key"], ["bearer"]]


@pytest.mark.parametrize(
    ("given", "works"),
    [("1.0", True), ("1.0.3", True), ("", False), ("0.3", False), ("99.0", False), ("1.1", False), ("x", False)],
)
async def test_the_version_is_checked(given: str, works: bool) -> None:
    async with calling(parrot()) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
        rpc = await client.http.post("/a2a", json=body, headers={"A2A-Version": given})
        rest = await client.http.get("/a2a/v1/tasks", headers={"A2A-Version": given})
        asked = await client.http.get("/a2a/v1/tasks", params={"A2A-Version": given})
        assert rpc.status_code == 200
        if works:
            assert "result" in rpc.json()
            assert (rest.status_code, asked.status_code) == (200, 200)
            return
        assert rpc.json()["error"]["code"] == -32009
        for answer in (rest, asked):
            assert (answer.status_code, answer.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
            assert answer.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


async def test_extensions_are_echoed_and_required_ones_are_needed() -> None:
    extension = AgentExtension(uri="urn:example:geo", description="Places.", required=True, params={"unit": "km"})
    async with calling(parrot(), extensions=[extension]) as client:
        shown = (await card_of(client))["capabilities"]["extensions"][0]
        assert shown == {
            "uri": "urn:example:geo",
            "description": "Places.",
            "required": True,
            "params": {"unit": "km"},
        }
        with pytest.raises(RefusedError) as error:
            await client.send("hi")
        assert (error.value.code, error.value.reason) == (-32008, "EXTENSION_SUPPORT_REQUIRED")
        rest = await client.http.post("/a2a/v1/message:send", json={"message": message("hi")}, headers=VERSION)
        assert rest.status_code == 400
        headers = {**VERSION, "A2A-Extensions": "urn:other, urn:example:geo"}
        answer = await client.http.post("/a2a/v1/message:send", json={"message": message("hi")}, headers=headers)
        assert (answer.status_code, answer.headers["a2a-extensions"]) == (200, "urn:example:geo")


async def test_http_and_json_serves_the_same_tasks() -> None:
    async with calling(parrot()) as client:
        sent = {"message": message("hello", contextId="c"), "unknown": 1}
        answer = await client.http.post("/a2a/v1/message:send", json=sent, headers=VERSION)
        assert answer.headers["content-type"] == "application/a2a+json"
        task = answer.json()["task"]
        assert await client.get(task) == task
        params = {"contextId": "c", "pageSize": "5", "includeArtifacts": "true", "historyLength": "1"}
        listed = (await client.http.get("/a2a/v1/tasks", params=params, headers=VERSION)).json()
        ParseDict(listed, a2a_pb2.ListTasksResponse())
        assert listed["tasks"][0]["artifacts"] == task["artifacts"]
        assert len(listed["tasks"][0]["history"]) == 1
        found = await client.http.get(f"/a2a/v1/tasks/{task['id']}", params={"historyLength": 0}, headers=VERSION)
        assert "history" not in found.json()
        for path in (f"/a2a/v1/tasks/{task['id']}:cancel", f"/a2a/v1/tasks/{task['id']}:subscribe"):
            refused = await client.http.post(path, headers=VERSION)
            assert refused.status_code == 400
            assert refused.headers["content-type"] == "application/json"
            assert refused.json()["error"]["code"] == 400


async def test_http_and_json_streams_and_cancels() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        body = {"message": message("pay")}
        answer = await client.http.post("/a2a/v1/message:stream", json=body, headers=VERSION)
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n\n") if line]
        for event in events:
            ParseDict(event, a2a_pb2.StreamResponse())
        assert states(events) == ["WORKING", "INPUT_REQUIRED"]
        task_id = events[0]["task"]["id"]
        for method in ("GET", "POST"):
            path = f"/a2a/v1/tasks/{task_id}:subscribe"
            async with client.http.stream(method, path, headers=VERSION) as stream:
                lines = stream.aiter_lines()
                first = json.loads((await anext(lines)).removeprefix("data: "))
                assert first["task"]["id"] == task_id
        canceled = await client.http.post(f"/a2a/v1/tasks/{task_id}:cancel", json={}, headers=VERSION)
        assert canceled.json()["status"]["state"] == "TASK_STATE_CANCELED"
        assert joined(events) == {}


async def test_errors_have_the_form_of_their_binding() -> None:
    async with calling(EchoAgent()) as client:
        rpc: list[tuple[Any, int, int]] = [
            (b"{", 400, -32700),
            (b"[]", 400, -32602),
            (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', 200, -32600),
            (b'{"jsonrpc":"2.0","id":1}', 200, -32600),
            (b'{"jsonrpc":"2.0","id":{},"method":"GetTask"}', 200, -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"Nope"}', 200, -32601),
            (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}', 200, -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":5}}', 200, -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"GetTask"}', 200, -32602),
        ]
        for body, _, code in rpc:
            headers = {**VERSION, "content-type": "application/json"}
            answer = await client.http.post("/a2a/", content=body, headers=headers)
            assert answer.json()["error"]["code"] == code, body
            assert isinstance(answer.json()["error"]["data"], list)
        for kind in ("text/plain", "application/xml"):
            for path in ("/a2a", "/a2a/v1/message:send"):
                headers = {**VERSION, "content-type": kind}
                answer = await client.http.post(path, content=b"{}", headers=headers)
                assert answer.status_code == 415
                error = answer.json()["error"]
                details = error["data"] if path == "/a2a" else error["details"]
                assert details[0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
        assert (await client.http.get("/a2a")).status_code == 405
        assert (await client.http.get("/a2a/v1/nope")).json()["error"]["status"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("message.messageId", {"messageId": ""}),
        ("message.messageId", {"messageId": "x" * 600}),
        ("message.role", {"role": "ROLE_AGENT"}),
        ("message.role", {"role": None}),
        ("message.parts", {"parts": []}),
        ("message.parts[0]", {"parts": [{}]}),
        ("message.parts[0]", {"parts": [{"text": "a", "url": "https://a.b"}]}),
        ("message.parts[0].raw", {"parts": [{"raw": "%%%"}]}),
        ("message.parts[0].url", {"parts": [{"url": "file:///etc/passwd"}]}),
        ("message.parts[0].mediaType", {"parts": [{"text": "a", "mediaType": "nonsense"}]}),
        ("message.contextId", {"contextId": "a b"}),
    ],
)
async def test_a_wrong_field_is_named(field: str, wrong: dict[str, Any]) -> None:
    agent = EchoAgent()
    async with calling(agent) as client:
        body = {"message": {**message("hi"), **wrong}}
        answer: httpx.Response = await client.http.post("/a2a/v1/message:send", json=body, headers=VERSION)
        assert answer.status_code == 400
        violations = answer.json()["error"]["details"][1]
        assert violations["@type"] == "type.googleapis.com/google.rpc.BadRequest"
        assert violations["fieldViolations"][0]["field"] == field
        assert agent.seen == []
