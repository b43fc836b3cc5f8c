"""The A2A SDK on both bindings."""

import uuid

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import a2a_pb2
from checks import ANSWER, LATER, QUESTION, URL, check, same, tell

BASE = URL.removesuffix("/v1") + "/a2a"


def sent(text, **fields):
    part = a2a_pb2.Part(text=text)
    message = a2a_pb2.Message(message_id=uuid.uuid4().hex, role=a2a_pb2.ROLE_USER, parts=[part], **fields)
    return a2a_pb2.SendMessageRequest(message=message)


async def connect(binding, streaming=False):
    config = ClientConfig(
        streaming=streaming, httpx_client=httpx.AsyncClient(timeout=60), supported_protocol_bindings=[binding]
    )
    return await create_client(BASE, client_config=config)


async def ask(client, text, **fields):
    return [event async for event in client.send_message(sent(text, **fields))][-1].task


def text_of(task):
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


for door, binding in (("A2A JSON-RPC", "JSONRPC"), ("A2A HTTP+JSON", "HTTP+JSON")):

    @check(door, "answer")
    async def answer():
        same(text_of(await ask(await connect(binding), QUESTION)), ANSWER)

    @check(door, "stream")
    async def stream():
        client = await connect(binding, streaming=True)
        events = [event async for event in client.send_message(sent(QUESTION))]
        updates = [event.artifact_update for event in events if event.HasField("artifact_update")]
        same("".join(part.text for update in updates for part in update.artifact.parts), ANSWER)
        same(len(updates) > 1, True)

    @check(door, "history")
    async def history():
        client = await connect(binding)
        first = await ask(client, QUESTION)
        same(text_of(await ask(client, "and", context_id=first.context_id)), LATER)

    @check(door, "approval")
    async def approval():
        client = await connect(binding)
        task = await ask(client, "refund 5")
        same(task.status.state, a2a_pb2.TASK_STATE_INPUT_REQUIRED)
        done = await ask(client, "yes", task_id=task.id)
        same(done.status.state, a2a_pb2.TASK_STATE_COMPLETED)
        same(text_of(done).endswith("The tool said: refunded 5"), True)


tell()
