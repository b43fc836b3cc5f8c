"""Which runner a host has, and what it does with it."""

from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, InMemoryStateStore, InProcessTaskRunner
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.internals import get_components
from frontdesk_testing.runner_contract import Notes, wait_for_status


async def echo(text: str) -> str:
    return text


def host_with(**settings: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(echo, channels=[InvocationsChannel()], **settings)


def findings(**settings: Any) -> list[str]:
    with pytest.raises(ChannelConfigurationError) as caught:
        host_with(**settings)
    return list(caught.value.findings)


def test_without_one_a_host_does_its_work_itself(tmp_path: Path) -> None:
    for settings, durable in (({}, False), ({"state_dir": tmp_path}, True)):
        runner = get_components(host_with(**settings)).runner
        assert isinstance(runner, InProcessTaskRunner)
        assert runner.durable is durable


def test_an_ephemeral_host_does_not_count_on_itself(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    for settings in ({}, {"store": store}, {"store": store, "runner": InProcessTaskRunner(store)}):
        (finding,) = findings(runtime_mode="ephemeral", **settings)
        assert "no durable runner" in finding
        host = host_with(runtime_mode="ephemeral", allow_in_process_runner=True, store=settings.get("store"))
        assert any("allow_in_process_runner" in warning for warning in host.warnings)


class Elsewhere(InProcessTaskRunner):
    """One for which other processes work."""

    in_process = False


def test_an_ephemeral_host_starts_with_a_runner_that_others_work_for(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    assert host_with(runtime_mode="ephemeral", store=store, runner=Elsewhere(store)).warnings == []
    memory = InMemoryStateStore()
    assert findings(runtime_mode="ephemeral", store=memory, runner=Elsewhere(memory))


def test_a_runner_on_another_store_is_a_finding(tmp_path: Path) -> None:
    runner = InProcessTaskRunner(InMemoryStateStore())
    for settings in ({}, {"store": InMemoryStateStore()}, {"state_dir": tmp_path}):
        (finding,) = findings(runner=runner, **settings)
        assert finding.startswith("runner: it works on another store")


async def test_tasks_of_one_s_own_run_with_the_host() -> None:
    store, notes = InMemoryStateStore(), Notes()
    runner = InProcessTaskRunner(store)
    runner.register("note", notes)
    await runner.schedule("note", {"n": 1}, task_id="before")
    host = host_with(store=store, runner=runner)
    async with host.app.router.lifespan_context(host.app):
        await runner.schedule("note", {"n": 2}, task_id="after")
        for task_id in ("before", "after"):
            await wait_for_status(runner, task_id, "succeeded")
    assert sorted(one["n"] for one in notes.calls) == [1, 2]


async def test_what_serves_only_begins_where_the_host_is_served(postgres: str) -> None:
    from frontdesk import ChannelContribution, PostgresStateStore

    begun: list[str] = []

    class Listening(InvocationsChannel):
        def contribute(self, context: Any) -> ChannelContribution:
            async def note(what: str) -> None:
                begun.append(what)

            return (
                super()
                .contribute(context)
                .replace(on_startup=[lambda: note("opened")], on_serving=[lambda: note("listens")])
            )

    host = AgentFrameworkHost(echo, channels=[Listening()], store=PostgresStateStore(postgres))
    async with host.working():
        assert begun == ["opened"]
    async with host.app.router.lifespan_context(host.app):
        assert begun == ["opened", "opened", "listens"]
    with pytest.raises(ChannelConfigurationError, match="many processes"):
        async with host_with().working():
            pass
