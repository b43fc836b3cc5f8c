"""The client of the Python SDK, over both bindings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.types import a2a_pb2
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.struct_pb2 import Value

from tests.channels.a2a.caller import calling
from tests.runs.test_watchers import SEAL_KEY, open_receiver
from tests.scenarios.cast import parrot
from tests.scenarios.desk import until
from tests.scenarios.test_decisions import Shop

BINDINGS = ("JSONRPC", "HTTP+JSON")


@asynccontextmanager
async def connected(target: Any, binding: str, *, streaming: bool = True, **settings: Any) -> AsyncIterator[Any]:
    async with calling(target, **settings) as served, httpx.AsyncClient(trust_env=False) as http:
        config = ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding])
        client = await create_client(f"{str(served.http.base_url).rstrip('/')}/a2a", client_config=config)
        yield client


def sent(*parts: Any, **fields: Any) -> Any:
    shown = [a2a_pb2.Part(text=part) if isinstance(part, str) else part for part in parts]
    message = a2a_pb2.Message(message_id=fields.pop("message_id", "m-1"), role=a2a_pb2.ROLE_USER, parts=shown, **fields)
    return a2a_pb2.SendMessageRequest(message=message)


async def events_of(stream: Any) -> list[Any]:
    return [event async for event in stream]


def answer_of(events: list[Any]) -> str:
    if events[-1].HasField("task"):
        return "".join(part.text for artifact in events[-1].task.artifacts for part in artifact.parts)
    updates = [event.artifact_update for event in events if event.HasField("artifact_update")]
    return "".join(part.text for update in updates for part in update.artifact.parts)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_client_of_the_sdk_is_answered(binding: str, streaming: bool) -> None:
    async with connected(parrot(), binding, streaming=streaming) as client:
        events = await events_of(client.send_message(sent("hello")))
        assert answer_of(events) == "you said hello"
        task_id = events[0].task.id
        task = await client.get_task(a2a_pb2.GetTaskRequest(id=task_id, history_length=1))
        assert (task.status.state, len(task.history)) == (a2a_pb2.TASK_STATE_COMPLETED, 1)
        listed = await client.list_tasks(a2a_pb2.ListTasksRequest(context_id=task.context_id, include_artifacts=True))
        assert ([one.id for one in listed.tasks], listed.total_size) == ([task_id], 1)
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(a2a_pb2.CancelTaskRequest(id=task_id))
        with pytest.raises(TaskNotFoundError):
            await client.get_task(a2a_pb2.GetTaskRequest(id="task_nope"))
        if streaming:
            with pytest.raises(UnsupportedOperationError):
                await events_of(client.subscribe(a2a_pb2.SubscribeToTaskRequest(id=task_id)))


@pytest.mark.parametrize("binding", BINDINGS)
async def test_the_client_of_the_sdk_answers_a_question(binding: str) -> None:
    shop = Shop()
    async with connected(shop.agent, binding) as client:
        events = await events_of(client.send_message(sent("pay")))
        status = events[-1].status_update.status
        assert status.state == a2a_pb2.TASK_STATE_INPUT_REQUIRED
        question = status.message.parts[1].data.struct_value
        value = Value()
        value.struct_value.update({"id": question["id"], "approved": True, "digest": question["digest"]})
        answer = sent(a2a_pb2.Part(data=value), task_id=events[0].task.id, message_id="m-2")
        events = await events_of(client.send_message(answer))
        assert events[-1].status_update.status.state == a2a_pb2.TASK_STATE_COMPLETED
    assert shop.paid == [5]


@pytest.mark.parametrize("binding", BINDINGS)
async def test_the_client_of_the_sdk_registers_push_notifications(binding: str) -> None:
    async with open_receiver() as receiver:
        options = {"watchers": receiver.options(), "seal_key": SEAL_KEY}
        settings = {"push_notifications": True, "options": options}
        async with connected(Shop().agent, binding, streaming=False, **settings) as client:
            (event,) = await events_of(client.send_message(sent("pay")))
            task_id = event.task.id
            made = await client.create_task_push_notification_config(
                a2a_pb2.TaskPushNotificationConfig(task_id=task_id, url=receiver.url, token="secret")
            )
            named = {"task_id": task_id, "id": made.id}
            found = await client.get_task_push_notification_config(
                a2a_pb2.GetTaskPushNotificationConfigRequest(**named)
            )
            assert found == made
            listed = await client.list_task_push_notification_configs(
                a2a_pb2.ListTaskPushNotificationConfigsRequest(task_id=task_id)
            )
            assert list(listed.configs) == [made]
            await events_of(client.send_message(sent("no", task_id=task_id, message_id="m-2")))

            async def is_notified() -> bool:
                return bool(receiver.received)

            await until(is_notified)
            await client.delete_task_push_notification_config(a2a_pb2.DeleteTaskPushNotificationConfigRequest(**named))
