"""Faults that others had with approvals, with approvers, over two hosts that share a database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from frontdesk import ApprovalOptions, AuthPolicy
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ConflictError
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing.internals import get_components, get_store
from frontdesk_testing.telegram import fake_telegram
from tests.scenarios.approvers.test_asking import Team, on_telegram, press
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import until
from tests.scenarios.telegram.bot import TelegramHost, open_bot

TWO = [call("pay", "c1", amount=5), call("pay", "c2", amount=7)]


def script(messages: list[Any]) -> Any:
    """Pays twice when it hears so, and says what it knows of it otherwise."""
    said = [content for message in messages for content in message.contents]
    results = [content for content in said if content.type == "function_result"]
    if messages[-1].role == "user" and "pay" in messages[-1].text and not results:
        return TWO
    return [f"{len(results)} results"]


@asynccontextmanager
async def replicas(
    team: Team, dsn: str, *, allowlist: Any = "inherit", **rule: Any
) -> AsyncIterator[tuple[TelegramHost, TelegramHost]]:
    """Two hosts; the platform sends its events to the second one."""
    options = ApprovalOptions(default=team.rule(team.bob, team.kim, exclude_requester=True, **rule))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(fake_telegram(team.fake))
        hosts: list[TelegramHost] = []
        for _ in range(2):
            agent = build_scripted(script, tools=[team.bank.tool()])
            given = {"store": PostgresStateStore(dsn), "channels": [InvocationsChannel()], "approvals": options}
            hosts.append(await stack.enter_async_context(open_bot(agent, fake=team.fake, allowlist=allowlist, **given)))
        yield hosts[0], hosts[1]


async def ask(host: TelegramHost) -> list[Any]:
    run = (await host.http.post("/invocations", json={"message": "pay", "session_id": "s"})).json()
    return run["approvals"]


async def wait_for_payments(team: Team, *amounts: int) -> None:
    async def is_paid() -> bool:
        return sorted(team.bank.paid) == sorted(amounts)

    await until(is_paid)


async def test_made_up_and_foreign_answers_run_nothing_on_either_host(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres) as (first, second):
        questions = await ask(first)
        for host in (first, second):
            for approval_id, code in ((questions[0]["id"], 403), ("apr_made_up", 404), (questions[0]["tool"], 404)):
                answer = {"id": approval_id, "approved": True}
                assert (await host.http.post("/invocations", json={"approval": answer})).status_code == code
            context = host.host._get_context("telegram")
            for stranger in (team.eve, team.ada):
                caller = Caller(identity=on_telegram(stranger))
                assert (await context.approvals.decide(caller, questions[0]["id"], True)).outcome == "not_yours"
        # A name is no id: the same person on another channel is somebody else.
        namesake = Caller(identity=ChannelIdentity(channel="invocations", native_id=str(team.bob.id)))
        assert (
            await second.host._get_context("invocations").approvals.decide(namesake, questions[0]["id"], True)
        ).approval is None
        # Through the webhook, and without its secret.
        body = {"update_id": 1, "callback_query": {"id": "1", "from": team.bob.as_json(), "data": "ok:x"}}
        assert (await second.http.post("/telegram/events", json=body)).status_code in (401, 403)
    assert team.bank.paid == []


async def test_a_click_in_another_chat_by_another_person_runs_nothing(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres) as (first, second):
        await ask(first)
        await second.answers(team.chat(team.bob), 2)
        (question, *_) = [m for m in team.chat(team.bob).messages.values() if m.markup]
        group = second.fake.supergroup("Team", team.bob, team.eve)
        forwarded = second.fake.say(team.bob, "look", group)
        forwarded.markup, forwarded.sender = question.markup, second.fake.bot.user
        click = second.fake.press(team.eve, forwarded, "Approve")
        await second.until(lambda: click.answered)
        assert "not yours" in click.text
    assert team.bank.paid == []


async def test_two_questions_of_one_turn_are_both_asked_and_both_count_after_each_other(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres) as (first, second):
        one, other = await ask(first)
        await second.answers(team.chat(team.bob), 2)
        contexts = [host.host._get_context("telegram") for host in (first, second)]
        bob, kim = (Caller(identity=on_telegram(person)) for person in (team.bob, team.kim))
        # On both hosts at once, one decides; the id is the same on both.
        outcomes = await asyncio.gather(
            *(context.approvals.decide(person, one["id"], True) for context in contexts for person in (bob, kim))
        )
        assert sorted(decision.outcome for decision in outcomes) == ["late", "late", "late", "recorded"]
        # A yes to one call is none to the other, with the same tool; the framework begins them together.
        assert team.bank.paid == []
        assert (await contexts[1].approvals.get(bob, other["id"])).status == "pending"
        digest = (await contexts[0].approvals.get(bob, one["id"])).digest
        assert (await contexts[0].approvals.decide(bob, other["id"], True, digest=digest)).outcome == "changed"
        assert (await contexts[0].approvals.decide(kim, other["id"], True)).outcome == "recorded"
        await wait_for_payments(team, 5, 7)
        # The session goes on, on either host.
        for host in (first, second):
            said = (await host.http.post("/invocations", json={"message": "and?", "session_id": "s"})).json()
            assert said["status"] == "completed", said
    assert sorted(team.bank.paid) == [5, 7]


async def test_of_votes_at_the_same_moment_none_is_lost(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres, votes=2) as (first, second):
        questions = await ask(first)
        contexts = [host.host._get_context("telegram") for host in (first, second)]
        people = [Caller(identity=on_telegram(person)) for person in (team.bob, team.kim)]
        for question in questions:
            decisions = await asyncio.gather(
                *(
                    context.approvals.decide(person, question["id"], True)
                    for context, person in zip(contexts, people, strict=True)
                )
            )
            assert sorted(decision.outcome for decision in decisions) == ["needs_more", "recorded"]
        await wait_for_payments(team, 5, 7)


async def test_a_path_without_anybody_who_may_come_in_asks_and_approves_nothing_on_either_host(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres, allowlist=AuthPolicy.native_allowlist([str(team.ada.id)])) as hosts:
        for host in hosts:
            run = await host.http.post("/invocations", json={"message": "pay", "session_id": "s"})
            assert (run.json()["status"], run.json()["error"]["code"]) == ("failed", "nobody_to_ask")
        assert not hosts[0].fake.shown(team.chat(team.bob)).messages
    assert team.bank.paid == []


async def test_of_answers_on_the_wires_of_both_hosts_one_counts(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres) as hosts:
        questions = await ask(hosts[0])
        for question in questions:
            answer = ApprovalAnswer(approval_id=question["id"], approved=True)
            outcomes = await asyncio.gather(
                *(
                    _answer(host, Caller(identity=on_telegram(person)), answer)
                    for host, person in zip(hosts, (team.bob, team.kim), strict=True)
                )
            )
            assert sorted(outcomes) == ["approval_answered", "recorded"]
        await wait_for_payments(team, 5, 7)


async def _answer(host: TelegramHost, caller: Caller, answer: ApprovalAnswer) -> str:
    context = host.host._get_context("telegram")
    try:
        hosted = await context.run(await context.approvals.build_request(caller, [answer]), caller)
    except ConflictError as error:
        return error.code
    return hosted.run.details["decisions"][0]["outcome"]


async def test_a_question_that_both_hosts_let_expire_goes_on_once(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres) as hosts:
        store = get_store(hosts[0].host)
        ids = [question["id"] for question in await ask(hosts[0])]
        for name in ids:
            question = await store.approvals.find(name)
            assert question is not None
            await asyncio.gather(*(get_components(host.host)._expire(question) for host in hosts))

        async def has_gone_on() -> bool:
            last = await store.approvals.find(ids[-1])
            run = None if last is None or last.resumed_by is None else await store.runs.get(last.owner, last.resumed_by)
            return run is not None and run.status == "completed"

        await until(has_gone_on)
        actions = [line.action for line in await store.audit.lines()]
        assert actions.count("expired") == 2
    assert team.bank.paid == []


async def test_a_click_after_a_restart_of_both_hosts_counts(postgres: str) -> None:
    team = Team()
    async with replicas(team, postgres) as (first, second):
        await ask(first)
        await second.answers(team.chat(team.bob), 2)
        await second.wait_for_ends(4)
    team.fake.url = ""
    async with replicas(team, postgres) as (_, second):
        for left in (1, 0):
            assert "approved by “Bob”" in await press(second, team.bob, "Approve")
            await second.until(lambda left=left: _count_asking(team) == left)
        await wait_for_payments(team, 5, 7)


def _count_asking(team: Team) -> int:
    return len([message for message in team.chat(team.bob).messages.values() if message.markup])
