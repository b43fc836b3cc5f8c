"""Push notification configs, and what their receivers get."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict

from frontdesk import ApiKeyAuth
from tests.channels.a2a.caller import VERSION, Client, RefusedError, calling, questions_of, state_of
from tests.runs.test_watchers import SEAL_KEY, Receiver, open_receiver
from tests.scenarios.cast import parrot
from tests.scenarios.desk import until
from tests.scenarios.test_decisions import Shop

ALICE, BOB = "the-key-of-alice", "the-key-of-bob-long"


async def refused(work: Any) -> RefusedError:
    with pytest.raises(RefusedError) as found:
        await work
    return found.value


@asynccontextmanager
async def pushing(target: Any, *statuses: str, **settings: Any) -> AsyncIterator[tuple[Client, Receiver]]:
    async with open_receiver(*statuses) as receiver:
        options = {"watchers": receiver.options(), "seal_key": SEAL_KEY}
        async with calling(target, push_notifications=True, options=options, **settings) as client:
            yield client, receiver


def config(receiver: Receiver, **fields: Any) -> dict[str, Any]:
    credentials = {"scheme": "Bearer", "credentials": "secret-credential"}
    return {"url": receiver.url, "token": "secret-token", "authentication": credentials, **fields}


async def test_a_config_is_created_read_listed_and_deleted_in_both_bindings() -> None:
    shop = Shop()
    async with pushing(shop.agent) as (client, receiver):
        task = await client.send("pay")
        named = {"taskId": task["id"], "id": "mine"}
        made = await client.call("CreateTaskPushNotificationConfig", {**config(receiver), **named})
        assert (made["id"], made["taskId"], made["url"]) == ("mine", task["id"], receiver.url)
        assert "secret" not in str(made)
        assert await client.call("GetTaskPushNotificationConfig", named) == made
        assert (await client.call("ListTaskPushNotificationConfigs", named))["configs"] == [made]
        # The same id replaces the config.
        other = {**config(receiver), **named, "url": f"{receiver.url}2"}
        await client.call("CreateTaskPushNotificationConfig", other)
        listed = (await client.call("ListTaskPushNotificationConfigs", named))["configs"]
        assert [one["url"] for one in listed] == [f"{receiver.url}2"]
        for _ in range(2):
            assert await client.call("DeleteTaskPushNotificationConfig", named) == {}
        assert (await refused(client.call("GetTaskPushNotificationConfig", named))).code == -32001
        base = f"/a2a/v1/tasks/{task['id']}/pushNotificationConfigs"
        rest = (await client.http.post(base, json=config(receiver), headers=VERSION)).json()
        ParseDict(rest, a2a_pb2.TaskPushNotificationConfig())
        assert rest["id"]
        assert (await client.http.get(f"{base}/{rest['id']}", headers=VERSION)).json() == rest
        assert (await client.http.get(base, headers=VERSION)).json()["configs"] == [rest]
        assert (await client.http.delete(f"{base}/{rest['id']}", headers=VERSION)).json() == {}
        assert (await client.http.get(f"{base}/{rest['id']}", headers=VERSION)).status_code == 404


async def test_a_receiver_gets_every_change_in_order_and_authenticated() -> None:
    shop = Shop()
    async with pushing(shop.agent, "503 Unavailable") as (client, receiver):
        task = await client.send("pay", configuration={"taskPushNotificationConfig": config(receiver)})
        assert state_of(task) == "INPUT_REQUIRED"

        async def has(count: int) -> bool:
            return len(receiver.received) >= count

        # The first attempt fails and is repeated.
        await until(lambda: has(2))
        await client.send("yes", taskId=task["id"])
        await until(lambda: has(3))
        headers, first = receiver.received[1]
        assert headers["Authorization"] == "Bearer secret-credential"
        assert headers["X-A2A-Notification-Token"] == "secret-token"
        assert headers["Content-Type"] == "application/a2a+json"
        for _, body in receiver.received:
            ParseDict(body, a2a_pb2.StreamResponse())
            assert body["statusUpdate"]["taskId"] == task["id"]
            assert body["statusUpdate"]["contextId"] == task["contextId"]
        assert questions_of(first["statusUpdate"])[0]["id"] == questions_of(task)[0]["id"]
        assert [state_of(body["statusUpdate"]) for _, body in receiver.received[1:]] == ["INPUT_REQUIRED", "COMPLETED"]
    assert shop.paid == [5]


async def test_a_config_comes_with_a_stream_too() -> None:
    async with pushing(parrot()) as (client, receiver):
        params = {
            "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
            "configuration": {"taskPushNotificationConfig": config(receiver)},
        }
        async with client.events("SendStreamingMessage", params) as events:
            found = [event async for event in events]
        listed = await client.call("ListTaskPushNotificationConfigs", {"taskId": found[0]["task"]["id"]})
        assert len(listed["configs"]) == 1


async def test_a_channel_without_push_notifications_says_so() -> None:
    async with calling(parrot()) as client:
        task = await client.send("hi")
        for method in ("Create", "Get", "Delete"):
            error = await refused(client.call(f"{method}TaskPushNotificationConfig", {"taskId": task["id"]}))
            assert (error.code, error.reason) == (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED")
        push = {"taskPushNotificationConfig": {"url": "https://example.com"}}
        assert (await refused(client.send("hi", configuration=push))).code == -32003


async def test_wrong_configs_are_refused_before_anything_runs() -> None:
    shop = Shop()
    async with pushing(shop.agent, max_push_configs=2) as (client, receiver):
        task = await client.send("pay")
        named = {"taskId": task["id"]}
        for wrong in (
            {"url": "http://10.0.0.1/hook"},
            {"url": "ftp://example.com"},
            {"url": "nonsense"},
            {},
            {"url": receiver.url, "id": "with blank"},
            {"url": receiver.url, "authentication": {}},
            {"url": receiver.url, "token": "line\nbreak"},
        ):
            error = await refused(client.call("CreateTaskPushNotificationConfig", {**named, **wrong}))
            assert error.code == -32602, wrong
        for _ in range(2):
            await client.call("CreateTaskPushNotificationConfig", {**named, **config(receiver)})
        error = await refused(client.call("CreateTaskPushNotificationConfig", {**named, **config(receiver)}))
        assert (error.code, "at most 2" in str(error)) == (-32602, True)
        error = await refused(
            client.call("CreateTaskPushNotificationConfig", {"taskId": "task_x", "url": "https://a.b"})
        )
        assert error.code == -32001


async def test_a_config_of_another_caller_does_not_exist() -> None:
    auth = ApiKeyAuth({"alice": ALICE, "bob": BOB})
    async with pushing(Shop().agent, auth=auth) as (client, receiver):
        alice, bob = client.as_caller(ALICE), client.as_caller(BOB)
        task = await alice.send("pay")
        named = {"taskId": task["id"], "id": "mine"}
        await alice.call("CreateTaskPushNotificationConfig", {**config(receiver), **named})
        for method in ("Get", "Delete", "Create"):
            params = {**named, "url": receiver.url}
            assert (await refused(bob.call(f"{method}TaskPushNotificationConfig", params))).code == -32001
        assert (await refused(bob.call("ListTaskPushNotificationConfigs", named))).code == -32001


async def test_credentials_need_a_seal_key() -> None:
    async with open_receiver() as receiver:
        options = {"watchers": receiver.options()}
        async with calling(Shop().agent, push_notifications=True, options=options) as client:
            task = await client.send("pay")
            params = {"taskId": task["id"], **config(receiver)}
            assert "seal_key" in str(await refused(client.call("CreateTaskPushNotificationConfig", params)))
            plain = {"taskId": task["id"], "url": receiver.url}
            assert (await client.call("CreateTaskPushNotificationConfig", plain))["url"] == receiver.url
