"""Approvers without a chat: they answer over Responses and Invocations, and look up what waits for them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from frontdesk import ApprovalOptions, ApproverRole, ApproverRule, ChannelIdentity
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.auth import Principal
from frontdesk_testing import FakeClock
from frontdesk_testing.internals import get_store
from tests.scenarios.approvers.test_asking import PAY, Team, on_telegram, press
from tests.scenarios.telegram.bot import TelegramHost, open_bot


class Badges:
    """Credentials that prove a name and the groups of a person: `ann`, or `bob.finance`."""

    name = "badges"

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        given = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        name, *groups = given.split(".")
        return Principal(id=name, claims={"groups": groups}) if name else None


class Office(TelegramHost):
    """A host whose treasurers are the members of a group, of whom Bob alone has a chat."""

    def client(self, badge: str) -> AsyncOpenAI:
        http = httpx2.AsyncClient(trust_env=False)
        return AsyncOpenAI(api_key=badge, base_url=f"{self.base_url}/v1", max_retries=0, http_client=http)

    async def invoke(self, badge: str, path: str = "", **body: Any) -> Any:
        headers = {"authorization": f"Bearer {badge}"}
        method = "POST" if body else "GET"
        response = await self.http.request(method, f"/invocations{path}", json=body or None, headers=headers)
        return response.status_code, response.json()


@asynccontextmanager
async def office(team: Team, clock: Any = None, **rule: Any) -> AsyncIterator[Office]:
    role = ApproverRole(name="finance", people=[on_telegram(team.bob)], claim="groups", values=["finance"])
    options = ApprovalOptions(default=ApproverRule(approvers=[role], exclude_requester=True, **rule), seconds=60)
    doors = [ResponsesChannel(auth=Badges()), InvocationsChannel(auth=Badges())]
    agent = team.bank.agent(PAY, ["done"])
    more = {} if clock is None else {"clock": clock}
    async with open_bot(agent, fake=team.fake, approvals=options, channels=doors, **more) as bot:
        yield Office(**vars(bot))


async def ask(desk: Office, team: Team) -> str:
    """Ada asks in her chat; return the id of her question."""
    team.fake.say(team.ada, "pay 5")
    await desk.answers(team.chat(team.ada))
    (question,) = await get_store(desk.host).approvals.expired(9e12)
    return question.approval_id


def answer(approval_id: str, approve: bool = True) -> Any:
    return [{"type": "mcp_approval_response", "approval_request_id": approval_id, "approve": approve}]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_approver_answers_with_the_openai_client_and_the_requester_hears_the_result(stream: bool) -> None:
    team = Team()
    async with office(team) as desk:
        name = await ask(desk, team)
        client = desk.client("kim.finance")
        if stream:
            async with client.responses.stream(model="any", input=answer(name)) as events:
                said = await events.get_final_response()
        else:
            said = await client.responses.create(model="any", input=answer(name))
        assert (said.status, said.output_text) == ("completed", "pay: approved")
        expected = [{"approval_request_id": name, "outcome": "recorded", "status": "approved"}]
        assert (said.model_extra or {})["decisions"] == expected
        # The run goes on for Ada, where she asked; Kim is shown nothing of it.
        assert (await desk.answers(team.chat(team.ada), 2))[1] == "done"
        again = await client.responses.retrieve(said.id)
        assert (again.output_text, (again.model_extra or {})["decisions"]) == ("pay: approved", expected)
        await desk.until(lambda: not team.fake.shown(team.chat(team.bob)).messages[0].buttons)
    assert team.bank.paid == [5]


async def test_an_approver_answers_over_invocations_and_a_repeated_request_is_told_the_same() -> None:
    team = Team()
    async with office(team) as desk:
        name = await ask(desk, team)
        for _ in range(2):
            status, said = await desk.invoke("kim.finance", approval={"id": name, "approved": False, "reason": "no"})
            assert (status, said["text"]) == (200, "pay: rejected")
            assert said["decisions"] == [{"id": name, "outcome": "recorded", "status": "rejected"}]
        late = await desk.invoke("lea.finance", approval={"id": name, "approved": True})
        assert (late[0], late[1]["error"]["code"]) == (409, "approval_answered")
        assert (await desk.answers(team.chat(team.ada), 2))[1] == "done"
    assert team.bank.paid == []


async def test_a_vote_that_is_not_enough_is_told_so_and_counts_once() -> None:
    team = Team()
    async with office(team, votes=2) as desk:
        name = await ask(desk, team)
        client = desk.client("kim.finance")
        for _ in range(2):
            said = await client.responses.create(model="any", input=answer(name))
            assert "More approvers are required" in said.output_text
            assert (said.model_extra or {})["decisions"][0]["outcome"] == "needs_more"
        await press(desk, team.bob, "Approve")
        assert (await desk.answers(team.chat(team.ada), 2))[1] == "done"
    assert team.bank.paid == [5]


async def test_an_answer_that_comes_too_late_is_refused() -> None:
    team, clock = Team(), FakeClock(1_800_000_000.0)
    async with office(team, clock) as desk:
        name = await ask(desk, team)
        clock.advance(61)
        with pytest.raises(openai.ConflictError) as refused:
            await desk.client("kim.finance").responses.create(model="any", input=answer(name))
        assert refused.value.code == "approval_expired"
    assert team.bank.paid == []


@pytest.mark.parametrize("badge", ["eve", "eve.sales", "ada"])
async def test_the_question_of_another_looks_to_a_stranger_like_one_that_is_not_there(badge: str) -> None:
    team = Team()
    async with office(team) as desk:
        name = await ask(desk, team)
        seen: list[Any] = []
        for approval_id in (name, "apr_0192f0c1a2b3c4d5"):
            with pytest.raises(openai.NotFoundError) as refused:
                await desk.client(badge).responses.create(model="any", input=answer(approval_id))
            status, body = await desk.invoke(badge, approval={"id": approval_id, "approved": True})
            body["error"].pop("id", None)
            seen.append((refused.value.body, status, body))
        assert seen[0] == seen[1]
        assert seen[0][1] == 404
    assert team.bank.paid == []


async def test_an_answer_to_the_question_of_another_comes_with_nothing_else() -> None:
    team = Team()
    async with office(team) as desk:
        name = await ask(desk, team)
        client = desk.client("kim.finance")
        words: Any = [*answer(name), {"role": "user", "content": "and tell me what she said"}]
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model="any", input=words)
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(model="any", input=answer(name) + answer("apr_0192f0c1a2b3c4d5"))
        assert team.bank.paid == []
        (question,) = await get_store(desk.host).approvals.expired(9e12)
        assert question.status == "pending"


async def test_an_approver_without_a_chat_sees_what_waits_for_them_and_nobody_else_does() -> None:
    team = Team()
    async with office(team) as desk:
        name = await ask(desk, team)
        status, listed = await desk.invoke("kim.finance", "/approvals/pending")
        (waiting,) = listed.pop("data")
        assert (status, listed) == (200, {"object": "list", "after": None})
        assert (waiting["id"], waiting["tool"], waiting["asker"]) == (name, "pay", "Ada")
        assert waiting["arguments"] == {"amount": 5, "note": "for the flowers"}
        assert waiting["expires_at"] > waiting["created_at"]
        nothing = (200, {"object": "list", "data": [], "after": None})
        for badge in ("eve", "eve.sales", "ada"):
            assert await desk.invoke(badge, "/approvals/pending") == nothing
        page = await desk.invoke("kim.finance", "/approvals/pending?limit=1")
        assert page[1]["after"] == name
        assert await desk.invoke("kim.finance", f"/approvals/pending?limit=1&after={name}") == nothing
        assert (await desk.invoke("kim.finance", "/approvals/pending?limit=0"))[0] == 400
        await desk.invoke("kim.finance", approval={"id": name, "approved": False})
        assert await desk.invoke("kim.finance", "/approvals/pending") == nothing


async def test_audit_287_requesters_find_their_own_questions_of_another_channel() -> None:
    team = Team()
    ada = str(team.ada.id)

    def resolve(identity: ChannelIdentity) -> str:
        return "ada" if identity.native_id in ("ada", ada) else identity.native_id

    agent = team.bank.agent(PAY, ["done"])
    doors = [InvocationsChannel(auth=Badges())]
    async with open_bot(agent, fake=team.fake, channels=doors, identity_resolver=resolve) as bot:
        desk = Office(**vars(bot))
        approval_id = await ask(desk, team)
        _, page = await desk.invoke("ada", "/approvals/pending")
        (waiting,) = page["data"]
        assert (waiting["id"], waiting["own"], waiting["channel"]) == (approval_id, True, "telegram")
        assert "waits_for" not in waiting
        # Nobody else finds it, and it can be answered where it was found.
        assert (await desk.invoke("eve", "/approvals/pending"))[1]["data"] == []
        status, said = await desk.invoke("ada", approval={"id": approval_id, "approved": True})
        assert (status, said["text"], team.bank.paid) == (200, "done", [5])
        assert (await desk.invoke("ada", "/approvals/pending"))[1]["data"] == []


async def test_audit_287_requesters_see_whom_their_own_questions_wait_for() -> None:
    team = Team()
    async with office(team) as desk:
        status, run = await desk.invoke("zoe", message="pay", session_id="s")
        (approval,) = run["approvals"]
        assert status == 200
        (waiting,) = (await desk.invoke("zoe", "/approvals/pending"))[1]["data"]
        assert (waiting["id"], waiting["own"], waiting["waits_for"]) == (approval["id"], True, approval["waits_for"])
        # An approver sees it as somebody else's.
        (waiting,) = (await desk.invoke("ann.finance", "/approvals/pending"))[1]["data"]
        assert (waiting["id"], waiting["own"], "waits_for" in waiting) == (approval["id"], False, False)
