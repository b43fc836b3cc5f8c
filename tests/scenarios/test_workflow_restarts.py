"""Workflows that wait while their host is stopped, and another one takes over."""

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_framework import WorkflowBuilder, WorkflowExecutor, workflow

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from tests.scenarios.pausing import Choice, Clerk, Inn, Offer, Till

YES = {"accepted": True, "nights": 2}


@asynccontextmanager
async def _house(target: Any, root: Path, **options: Any) -> AsyncIterator[Any]:
    settings: dict[str, Any] = {"state_dir": root, **options}
    host = AgentFrameworkHost(target, channels=[InvocationsChannel()], **settings)
    async with serving(host) as client:
        yield client


async def _post(client: Any, **body: Any) -> dict[str, Any]:
    answer = await client.http.post("/invocations", json={"session_id": "s", **body})
    return {"status_code": answer.status_code, **answer.json()}


async def test_a_question_is_answered_after_a_restart(tmp_path: Path) -> None:
    inn = Inn()
    async with _house(inn, tmp_path) as client:
        asked = await _post(client, message="two guests")
    async with _house(inn, tmp_path) as client:
        assert (await _post(client, message="hello?"))["error"]["code"] == "answer_needed"
        first, second = asked["requests"]
        told = await _post(client, responses={first["id"]: YES})
        assert told["outputs"] == ["two guests takes the attic for 2", "bags for 2 nights"]
    async with _house(inn, tmp_path) as client:
        found = (await client.http.get(f"/invocations/{told['id']}")).json()
        assert found["requests"] == told["requests"] == [second]
        assert (await _post(client, responses={second["id"]: "eggs"}))["text"] == "breakfast: eggs"
    async with _house(inn, tmp_path) as client:
        assert (await _post(client, message="who?"))["text"] == "served two guests"
    assert inn.ledger == ["attic 2", "eggs"]


async def test_a_store_of_the_operators_own_keeps_the_pause_too(postgres: str, tmp_path: Path) -> None:
    inn = Inn()

    def own() -> dict[str, Any]:
        return {"state_dir": None, "store": PostgresStateStore(postgres)}

    async with _house(inn, tmp_path, **own()) as client:
        asked = await _post(client, message="two guests")
        first, second = asked["requests"]
        async with _house(inn, tmp_path, **own()) as neighbour:
            assert (await _post(neighbour, responses={first["id"]: YES}))["requests"] == [second]
        assert (await _post(client, responses={second["id"]: "eggs"}))["text"] == "breakfast: eggs"
    assert inn.ledger == ["attic 2", "eggs"]


async def test_an_approval_is_answered_after_a_restart(tmp_path: Path) -> None:
    till = Till()
    async with _house(till, tmp_path) as client:
        (question,) = (await _post(client, message="pay"))["approvals"]
    async with _house(till, tmp_path) as client:
        answer = {"approval": {"id": question["id"], "approved": True}}
        assert (await client.http.post("/invocations", json=answer)).json()["text"] == "done"
        assert (await client.http.post("/invocations", json=answer)).status_code == 409
    assert till.paid == [5]


async def test_one_checkpoint_is_kept_of_each_run(tmp_path: Path) -> None:
    inn = Inn()
    async with _house(inn, tmp_path, checkpoint_location=tmp_path / "points") as client:
        for turn in range(3):
            asked = await _post(client, message=f"guest {turn}")
            await _post(client, responses={asked["requests"][0]["id"]: YES})
    assert len(list((tmp_path / "points").glob("*/*.json"))) == 6
    assert not list((tmp_path / "points").glob("*/.*"))


async def test_a_checkpoint_of_another_version_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inn = Inn()
    async with _house(inn, tmp_path) as client:
        asked = await _post(client, message="anna")

    def rebuilt() -> Any:
        return WorkflowBuilder(name="inn", start_executor=Clerk(inn.ledger), output_from="all").build()

    async with _house(rebuilt, tmp_path) as client:
        lost = await _post(client, responses={asked["requests"][0]["id"]: YES})
        assert (lost["status_code"], lost["error"]["code"]) == (409, "checkpoint_lost")
        assert "another version" in lost["error"]["message"]
        assert (await _post(client, message="who?"))["text"] == "served nobody"
    assert "restored nothing" in caplog.text


@pytest.mark.parametrize("damage", ["deleted", "cut", "empty", "other"])
async def test_a_checkpoint_that_is_damaged_is_warned_of(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inn = Inn()
    async with _house(inn, tmp_path, checkpoint_location=tmp_path / "points") as client:
        await _post(client, message="who?")
        (kept,) = (tmp_path / "points").glob("*/*.json")
        match damage:
            case "deleted":
                kept.unlink()
            case "cut":
                kept.write_bytes(kept.read_bytes()[:50])
            case "empty":
                kept.write_bytes(b"")
            case _:
                kept.write_text('{"another": "file"}')
        assert (await _post(client, message="who?"))["text"] == "served nobody"
    assert "restored nothing" in caplog.text


async def test_a_checkpoint_that_cannot_be_read_now_is_not_taken_for_none(tmp_path: Path) -> None:
    inn = Inn()
    async with _house(inn, tmp_path, checkpoint_location=tmp_path / "points") as client:
        asked = await _post(client, message="anna")
        (kept,) = (tmp_path / "points").glob("*/*.json")
        aside = kept.rename(tmp_path / "aside.json")
        # Opening it fails as it would on a disk that does not answer.
        kept.mkdir()
        refused = await _post(client, responses={asked["requests"][0]["id"]: YES})
        assert (refused["status_code"], refused["error"]["code"]) == (503, "unavailable")
        kept.rmdir()
        aside.rename(kept)
        assert (await _post(client, responses={asked["requests"][0]["id"]: YES}))["status_code"] == 200


async def test_a_workflow_inside_a_workflow_waits_too(tmp_path: Path) -> None:
    inn = Inn()

    def nested() -> Any:
        inner = WorkflowExecutor(inn(), id="inner", propagate_request=True, allow_direct_output=True)
        return WorkflowBuilder(name="hotel", start_executor=inner, output_from="all").build()

    async with _house(nested, tmp_path) as client:
        (asked,) = (await _post(client, message="anna"))["requests"]
        assert asked["data"] == {"room": "attic", "price": 90}
    async with _house(nested, tmp_path) as client:
        told = await _post(client, responses={asked["id"]: YES})
        assert "bags for 2 nights" in told["text"]
        assert (await _post(client, message="who?"))["text"] == "served anna"
    assert inn.ledger == ["attic 2"]


async def test_a_function_waits_too(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @workflow(name="form")
        async def form(text: str, ctx: Any) -> str:
            choice = await ctx.request_info(Offer("attic", 90), Choice)
            agreed = await ctx.request_info("sure?", bool, request_id="sure" * 20)
            return f"{text}: {choice.nights} {agreed}"

        asked: list[Any] = [{"id": ""}]
        for answer, shown in ((None, "Choice"), (YES, "bool"), ("true", None)):
            async with _house(form, tmp_path) as client:
                body = {"message": "anna"} if answer is None else {"responses": {asked[0]["id"]: answer}}
                told = await _post(client, **body)
                asked = told["requests"]
                assert [one["response_type"] for one in asked] == ([] if shown is None else [shown])
        assert told["text"] == "anna: 2 True"
