"""What the design says of the host and of runs later, tried on our code."""

import importlib.util
import inspect
import subprocess
import sys
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import frontdesk
from frontdesk import (
    AgentFrameworkHost,
    ChannelCommand,
    ChannelConfigurationError,
    ChannelContribution,
    ChannelIdentity,
    ChannelRequest,
    ContinuationToken,
    InMemoryStateStore,
    InProcessTaskRunner,
    NotFoundError,
    OneTimeCodeIdentityLinker,
    RetryPolicy,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.internals import get_store
from tests.scenarios.cast import two_voices
from tests.scenarios.design.test_workflow import builds
from tests.scenarios.telegram.bot import open_bot
from tests.state_dir.test_audit_checkpoints import OWN

ANN = ChannelIdentity("invocations", "ann")


def host_with(**settings: Any) -> AgentFrameworkHost:
    given: dict[str, Any] = {"target": EchoAgent(), "channels": [InvocationsChannel()], **settings}
    return AgentFrameworkHost(**given)


def check_refused(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def check_missing(name: str) -> None:
    assert not hasattr(frontdesk, name)
    assert name not in frontdesk.__all__


def longer_names() -> None:
    for names in (("identity_linker", "durable_task_runner"), ("linker", "runner")):
        store = InMemoryStateStore()
        linker = OneTimeCodeIdentityLinker()
        assert host_with(**dict(zip(names, (linker, InProcessTaskRunner(store)), strict=True)), store=store)
    check_refused(
        lambda: host_with(identity_linker=linker, linker=linker), ChannelConfigurationError, "it is the same as linker="
    )


def a_runner_has_a_store() -> None:
    make: Any = InProcessTaskRunner
    check_refused(make, TypeError, "store")
    assert make(InMemoryStateStore())


def no_lifespan() -> None:
    contribution: Any = ChannelContribution
    for make in (contribution, host_with):
        check_refused(lambda make=make: make(lifespan=None), TypeError, "lifespan")
    assert {"on_startup", "on_serving", "on_shutdown"} <= set(ChannelContribution.__struct_fields__)


def places() -> None:
    request: Any = ChannelRequest
    check_refused(lambda: request("invocations"), TypeError, "positional")
    assert ChannelIdentity("telegram", "42").native_id == "42"
    assert ChannelCommand("start", "Begin", lambda _: None).name == "start"
    assert ContinuationToken("run_1").run_id == "run_1"


def no_debug() -> None:
    check_refused(lambda: host_with(debug=True), ChannelConfigurationError, "debug: the host shows no traceback")
    assert host_with(debug=False)


def no_workflow_object() -> None:
    check_refused(lambda: host_with(target=two_voices().build()), ChannelConfigurationError, "function that builds it")
    assert host_with(target=lambda: two_voices().build())


async def as_somebody() -> None:
    host: Any = host_with()
    async with serving(host):
        request = ChannelRequest(channel="invocations", input="hi")
        with pytest.raises(TypeError, match="identity"):
            host.run_in_background(request)
        with pytest.raises(TypeError, match="identity"):
            host.get_continuation(ContinuationToken("run_1"))
        with pytest.raises(NotFoundError):
            await host.get_continuation(ContinuationToken("run_1"), identity=ANN)
        token = await host.run_in_background(request, identity=ANN)
        assert (await host.get_continuation(token, identity=ANN)).run_id == token.run_id


def a_token_is_an_id() -> None:
    token = ContinuationToken("run_1")
    assert not hasattr(token, "status")
    assert not hasattr(token, "result")


def ephemeral_is_in_memory() -> None:
    host = host_with(runtime_mode="ephemeral", allow_in_process_runner=True)
    assert isinstance(get_store(host), InMemoryStateStore)
    assert any("the state is in memory" in warning for warning in host.warnings)


def two_storages(tmp_path: Any) -> None:
    assert OWN in host_with(target=builds(tmp_path / "own"), state_dir=tmp_path / "state").warnings
    check_refused(
        lambda: host_with(target=builds(tmp_path / "own"), checkpoint_location=tmp_path / "c"),
        ChannelConfigurationError,
        "the host was given one too",
    )


async def check_mounted() -> None:
    host = host_with()
    app = Starlette(routes=[Mount("/desk", host.app)])
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.post("/desk/invocations", json={"message": "hi"})).status_code == 503
        async with host.lifespan():
            assert (await client.post("/desk/invocations", json={"message": "hi"})).status_code == 200


def one_distribution() -> None:
    for name in ("frontdesk_responses", "frontdesk_telegram", "agent_framework_hosting_responses"):
        assert importlib.util.find_spec(name) is None
    assert importlib.util.find_spec("frontdesk.channels.telegram") is not None
    program = "import sys, frontdesk; print([name for name in sys.modules if name.startswith('frontdesk.channels')])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


HOST: dict[str, Any] = {
    "`identity_linker=`, `durable_task_runner=`": longer_names,
    "`InProcessTaskRunner()`": a_runner_has_a_store,
    "`lifespan=`": no_lifespan,
    "records take positional arguments": places,
    "`debug=True`": no_debug,
    "a `Workflow` object as target": no_workflow_object,
    "`run_in_background(request)`, `get_continuation(token)`": as_somebody,
    "`ContinuationToken` with status and result": a_token_is_an_id,
    "`FileHostStateStore`": lambda: check_missing("FileHostStateStore"),
    "a workflow's own checkpoint storage beside a `state_dir` is an error": two_storages,
    "an ephemeral place keeps its state on disk": ephemeral_is_in_memory,
    "several hosts in one app": check_mounted,
    "one package for each channel": one_distribution,
}


def retries() -> None:
    make: Any = RetryPolicy
    check_refused(lambda: make(max_attempts=3), TypeError, "max_attempts")
    check_refused(lambda: make(initial_backoff_seconds=3), TypeError, "initial_backoff_seconds")
    assert make(attempts=3, first_delay=1.0, longest_delay=9.0).delay(9) == 9.0


def tasks_have_names() -> None:
    parameters = inspect.signature(InProcessTaskRunner.schedule).parameters
    assert {"task_id", "at"} <= set(parameters)
    assert "retry" not in "".join(parameters)
    assert any("retry" in name for name in inspect.signature(InProcessTaskRunner.register).parameters)
    assert {"get", "cancel"} <= set(dir(InProcessTaskRunner))


def no_serverless_runners() -> None:
    kinds = {name for name in frontdesk.__all__ if name.endswith("TaskRunner")}
    assert kinds == {"DurableTaskRunner", "InProcessTaskRunner", "ProcrastinateTaskRunner"}


async def no_route_for_runs_of_chats() -> None:
    def later(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(background=True)

    async with open_bot(EchoAgent(), run_hook=later) as bot:
        ann = bot.fake.user("Ann")
        await bot.ask(ann, "hello")
        (run_id,) = {row.run_id for row in await get_store(bot.host).outbox.find() if row.run_id}
        assert (await bot.http.get(f"/telegram/{run_id}")).status_code == 404
        assert [route.path for route in bot.host.app.routes if route.path.startswith("/telegram")] == [  # pyright: ignore[reportAttributeAccessIssue]
            "/telegram/webhook",
            "/telegram/events",
        ]
        identity = ChannelIdentity("telegram", str(ann.id))
        assert (await bot.host.get_continuation(run_id, identity=identity)).run_id == run_id


LATER: dict[str, Any] = {
    "`RetryPolicy(max_attempts, initial_backoff_seconds, ...)`": retries,
    "`schedule`, `get`, `cancel` of a runner, with a `TaskHandle`": tasks_have_names,
    "runners for serverless places": no_serverless_runners,
    "a route to poll for a run that was begun in a chat": no_route_for_runs_of_chats,
}
