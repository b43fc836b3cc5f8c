"""A caller of the channel. Every body that it receives is parsed into the protobuf types of the SDK."""

import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict

from frontdesk import AgentFrameworkHost
from frontdesk.channels.a2a import A2AChannel
from frontdesk_testing import serving
from tests.scenarios.stores import new_store

VERSION = {"A2A-Version": "1.0"}
EXTENSION = "urn:frontdesk:a2a:questions:v1"
RESULTS: dict[str, Any] = {
    "SendMessage": a2a_pb2.SendMessageResponse,
    "GetTask": a2a_pb2.Task,
    "CancelTask": a2a_pb2.Task,
    "ListTasks": a2a_pb2.ListTasksResponse,
    "CreateTaskPushNotificationConfig": a2a_pb2.TaskPushNotificationConfig,
    "GetTaskPushNotificationConfig": a2a_pb2.TaskPushNotificationConfig,
    "ListTaskPushNotificationConfigs": a2a_pb2.ListTaskPushNotificationConfigsResponse,
    "GetExtendedAgentCard": a2a_pb2.AgentCard,
}
_numbers = itertools.count()


class RefusedError(Exception):
    """An error of the protocol."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        info = error["data"][0]
        assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
        assert info["domain"] in ("a2a-protocol.org", "frontdesk")
        self.reason: str = info["reason"]
        self.metadata: dict[str, str] = info["metadata"]


def message(*parts: Any, **fields: Any) -> dict[str, Any]:
    """A message of a user. Strings are texts."""
    shown = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"messageId": f"m-{next(_numbers)}", "role": "ROLE_USER", "parts": shown, **fields}


def data(**fields: Any) -> dict[str, Any]:
    return {"data": fields}


def text_of(task: dict[str, Any]) -> str:
    """The text of all artifacts."""
    return "".join(part.get("text", "") for one in task.get("artifacts", ()) for part in one["parts"])


def state_of(task: dict[str, Any]) -> str:
    return task["status"]["state"].removeprefix("TASK_STATE_")


def questions_of(task: dict[str, Any]) -> list[dict[str, Any]]:
    """The data parts of the open questions."""
    shown = task["status"]["message"]
    assert shown["extensions"] == [EXTENSION]
    assert shown["parts"][0]["text"]
    return [part["data"] for part in shown["parts"][1:]]


class Client:
    def __init__(self, http: httpx.AsyncClient, path: str = "/a2a", **headers: str) -> None:
        self.http, self.path = http, path
        self.headers = {**VERSION, **headers}

    def as_caller(self, key: str) -> "Client":
        return Client(self.http, self.path, **{"x-api-key": key})

    async def call(self, method: str, params: Any = None, **headers: str) -> Any:
        """Call a method over JSON-RPC and return its result."""
        body = {"jsonrpc": "2.0", "id": "c", "method": method, "params": params or {}}
        response = await self.http.post(self.path, json=body, headers={**self.headers, **headers})
        answer = response.json()
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == "c"
        if "error" in answer:
            raise RefusedError(answer["error"])
        assert response.headers["content-type"] == "application/json"
        if method in RESULTS:
            ParseDict(answer["result"], RESULTS[method]())
        return answer["result"]

    async def send(self, *parts: Any, configuration: Any = None, **fields: Any) -> dict[str, Any]:
        """Send a message and return its task."""
        params = {"message": message(*parts, **fields), "configuration": configuration or {}}
        return (await self.call("SendMessage", params))["task"]

    async def get(self, task: Any, **more: Any) -> dict[str, Any]:
        return await self.call("GetTask", {"id": task if isinstance(task, str) else task["id"], **more})

    @asynccontextmanager
    async def events(self, method: str, params: Any) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        """Open a stream over JSON-RPC."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        async with self.http.stream("POST", self.path, json=body, headers=self.headers) as response:
            if response.headers["content-type"] == "application/json":
                await response.aread()
                raise RefusedError(response.json()["error"])
            assert response.headers["content-type"].startswith("text/event-stream")
            yield self._read(response)

    async def _read(self, response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                answer = json.loads(line.removeprefix("data: "))
                assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
                ParseDict(answer["result"], a2a_pb2.StreamResponse())
                yield answer["result"]

    async def stream(self, *parts: Any, **fields: Any) -> list[dict[str, Any]]:
        async with self.events("SendStreamingMessage", {"message": message(*parts, **fields)}) as events:
            return [event async for event in events]


@asynccontextmanager
async def calling(target: Any, *, channels: Any = (), options: Any = None, **settings: Any) -> AsyncGenerator[Client]:
    """Serve a host with the channel. `settings` are those of the channel, and `options` those of the host."""
    channel = A2AChannel(**settings)
    host = AgentFrameworkHost(target, channels=[channel, *channels], **{"store": new_store(), **(options or {})})
    async with serving(host) as client:
        yield Client(client.http)


def joined(events: list[dict[str, Any]]) -> dict[str, str]:
    """The texts of the artifacts of a stream, put together as a client does."""
    texts: dict[str, str] = {}
    for event in events:
        update = event.get("artifactUpdate")
        for artifact in event.get("task", {}).get("artifacts", ()):
            texts[artifact["artifactId"]] = "".join(part.get("text", "") for part in artifact["parts"])
        if update is not None:
            name = update["artifact"]["artifactId"]
            said = "".join(part.get("text", "") for part in update["artifact"]["parts"])
            texts[name] = texts.get(name, "") + said if update.get("append") else said
    return texts


def states(events: list[dict[str, Any]]) -> list[str]:
    return [state_of(event["statusUpdate"]) for event in events if "statusUpdate" in event]
