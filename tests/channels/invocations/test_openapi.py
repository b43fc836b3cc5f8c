"""The OpenAPI document is valid, and describes this very host."""

from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from frontdesk import AgentFrameworkHost, ApiKeyAuth, HmacAuth, PlatformAuth, TrustedPeers
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ChannelConfigurationError
from tests.scenarios.cast import echo, parrot, two_voices
from tests.scenarios.desk import InvocationsHost, open_client


async def _document(desk: InvocationsHost, path: str = "/invocations") -> dict[str, Any]:
    response = await desk.client.get(f"{path}/docs/openapi.json")
    assert response.status_code == 200
    return response.json()


def _schema(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}", "components": document["components"]}


@pytest.mark.parametrize("path", ["/invocations", "/deep/down"])
@pytest.mark.parametrize("make", [parrot, two_voices, lambda: echo], ids=["agent", "workflow", "function"])
async def test_it_is_a_valid_document_of_openapi_3_1(path: str, make: Any) -> None:
    async with open_client(make(), InvocationsChannel(path=path)) as desk:
        document = await _document(desk, path)
        OpenAPIV31SpecValidator(document).validate()
        assert document["openapi"] == "3.1.0"
        assert document["info"]["title"] == desk.host.target.name
        below = ("", "/approvals/pending", "/{invocation_id}", "/{invocation_id}/cancel")
        assert set(document["paths"]) == {f"{path}{part}" for part in below}
        assert "security" not in document


class Own:
    """Credentials that say nothing about themselves."""

    name = "own"

    async def authenticate(self, headers: Any) -> Any:
        return None


KEY = "the-key-of-alice"
KEYS = ApiKeyAuth({"a": KEY})
OTHERS = [HmacAuth({"a": KEY}), PlatformAuth(trusted=TrustedPeers("10.0.0.0/8")), Own()]


@pytest.mark.parametrize(
    ("auth", "schemes"),
    [(KEYS, ["api_key", "bearer"]), ([KEYS, *OTHERS], ["api_key", "bearer", "hmac", "platform", "own"])],
)
async def test_it_says_which_credentials_are_needed(auth: Any, schemes: list[str]) -> None:
    async with open_client(echo, InvocationsChannel(auth=auth), headers={"x-api-key": KEY}) as desk:
        document = await _document(desk)
        OpenAPIV31SpecValidator(document).validate()
        assert document["security"] == [{name: []} for name in schemes]
        assert list(document["components"]["securitySchemes"]) == schemes


GOOD: dict[str, Any] = {
    "a text": {"message": "hi"},
    "parts": {
        "message": [{"type": "text", "text": "hi"}, {"type": "data", "data": "aGk=", "media_type": "text/plain"}]
    },
    "an input": {"input": {"anything": [1, None]}},
    "everything": {"message": "hi", "session_id": "s", "stream": True, "options": {"seed": 1}, "metadata": {"a": "b"}},
    "an approval": {"approval": {"id": "x", "approved": True, "reason": "why not"}},
}
BAD: dict[str, Any] = {
    "nothing": {},
    "a message and an input": {"message": "hi", "input": 1},
    "an approval and a message": {"approval": {"id": "x", "approved": True}, "message": "hi"},
    "an unknown field": {"message": "hi", "mesage": "hi"},
    "no parts": {"message": []},
    "an id with a slash": {"message": "hi", "session_id": "a/b"},
    "an empty id": {"message": "hi", "session_id": ""},
    "data that is not base64": {"message": [{"type": "data", "data": "?", "media_type": "text/plain"}]},
    "a uri of another kind": {"message": [{"type": "uri", "uri": "file:///x", "media_type": "text/plain"}]},
    "an option out of range": {"message": "hi", "options": {"top_p": 2}},
}


GOOD_FOR_WORKFLOWS: dict[str, Any] = {
    "a message": {"message": "hi"},
    "a message at a checkpoint": {"message": "hi", "session_id": "s", "checkpoint_id": "c"},
    "answers": {"responses": {"r": {"any": "thing"}, "s": None}, "session_id": "s", "stream": True},
    "answers at a checkpoint": {"responses": {"r": 1}, "session_id": "s", "checkpoint_id": "c"},
    "a checkpoint": {"checkpoint_id": "c", "session_id": "s", "background": True},
}
BAD_FOR_WORKFLOWS: dict[str, Any] = {
    "no answers": {"responses": {}, "session_id": "s"},
    "answers of no session": {"responses": {"r": 1}},
    "answers and a message": {"responses": {"r": 1}, "message": "hi", "session_id": "s"},
    "answers and an approval": {"responses": {"r": 1}, "approval": {"id": "x", "approved": True}, "session_id": "s"},
    "an approval at a checkpoint": {"approval": {"id": "x", "approved": True}, "checkpoint_id": "c"},
    "a checkpoint of no session": {"checkpoint_id": "c"},
    "no checkpoint": {"checkpoint_id": None, "session_id": "s"},
    "options": {"responses": {"r": 1}, "session_id": "s", "options": {"seed": 1}},
}


@pytest.mark.parametrize("body", GOOD_FOR_WORKFLOWS.values(), ids=GOOD_FOR_WORKFLOWS)
async def test_the_document_and_a_workflow_accept(body: Any) -> None:
    async with open_client(two_voices()) as desk:
        jsonschema.validate(body, _schema(await _document(desk), "InvocationBody"))
        answer = await desk.post(body)
        # Nothing waits, and there is no such checkpoint; but what was said was understood.
        told = answer.json().get("error") or {}
        assert answer.status_code in (200, 202, 404) or "No pending tool call" in told["message"]
    async with open_client(echo) as desk:
        if body == {"message": "hi"}:
            return
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, _schema(await _document(desk), "InvocationBody"))


@pytest.mark.parametrize("body", BAD_FOR_WORKFLOWS.values(), ids=BAD_FOR_WORKFLOWS)
async def test_the_document_and_a_workflow_refuse(body: Any) -> None:
    async with open_client(two_voices()) as desk:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, _schema(await _document(desk), "InvocationBody"))
        assert (await desk.post(body)).status_code == 400


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
async def test_the_document_and_the_server_accept(body: Any) -> None:
    async with open_client(echo) as desk:
        jsonschema.validate(body, _schema(await _document(desk), "InvocationBody"))
        error = (await desk.post(body)).json().get("error") or {}
        assert error.get("param") in (None, "input", "seed", "approval")
        assert "The body" not in error.get("message", "")


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
async def test_the_document_and_the_server_refuse(body: Any) -> None:
    async with open_client(echo) as desk:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, _schema(await _document(desk), "InvocationBody"))
        assert (await desk.post(body)).status_code == 400


async def test_answers_and_errors_are_as_described() -> None:
    async with open_client(two_voices()) as desk:
        document = await _document(desk)
        good = [await desk.ask("hi"), await desk.ask("hi", background=True)]
        good.append(await desk.get(good[0].json()["id"]))
        for response in good:
            jsonschema.validate(response.json(), _schema(document, "InvocationOut"))
        for event in await desk.events("hi"):
            if event.name == "completed":
                jsonschema.validate(event.data, _schema(document, "InvocationOut"))
        for response in (await desk.get("nope"), await desk.post({}), await desk.client.put("/invocations")):
            jsonschema.validate(response.json(), _schema(document, "ErrorEnvelope"))


async def test_every_status_of_a_read_is_described() -> None:
    async with open_client(echo) as desk:
        document = await _document(desk)
        for path, method in (("/{invocation_id}", "get"), ("/{invocation_id}/cancel", "post")):
            described = document["paths"][f"/invocations{path}"][method]["responses"]
            # A run that waits in the background is 202 wherever it is shown.
            assert {"200", "202", "400", "404"} <= set(described)


async def test_an_operator_can_describe_bodies_of_their_own() -> None:
    own = {"openapi": "3.1.0", "info": {"title": "Mine", "version": "2"}, "paths": {}}
    async with open_client(parrot(), InvocationsChannel(openapi_spec=own)) as desk:
        assert (await desk.client.get("/invocations/docs/openapi.json")).json() == own


@pytest.mark.parametrize(
    ("spec", "part"), [("a text", "must be Mapping or None, got str"), ({"a": object()}, "as JSON")]
)
def test_a_document_that_is_none_is_found(spec: Any, part: str) -> None:
    with pytest.raises(ChannelConfigurationError, match=part):
        AgentFrameworkHost(parrot(), channels=[InvocationsChannel(openapi_spec=spec)])
