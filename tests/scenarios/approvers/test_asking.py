"""Questions that other people answer: who is asked and shown what, whose answer counts, and where the run goes on."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from frontdesk import (
    AgentFrameworkHost,
    ApprovalOptions,
    ApproverRole,
    ApproverRule,
    ChannelConfigurationError,
)
from frontdesk.admin.service import AdminService
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.clock import SystemClock
from frontdesk.host.admin_socket import admin_parts
from frontdesk.models.identity import ChannelIdentity
from frontdesk_testing import FakeClock
from frontdesk_testing.internals import get_components, get_store
from frontdesk_testing.telegram import FakeTelegram
from tests.channels.web.visiting import open_visitor
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import until
from tests.scenarios.messages.test_buttons import Bank
from tests.scenarios.telegram.bot import TelegramHost, open_bot

PAY = [call("pay", amount=5, note="for the flowers")]


def on_telegram(user: Any) -> ChannelIdentity:
    return ChannelIdentity(channel="telegram", native_id=str(user.id), attributes={"name": user.first_name})


class Team:
    """Ada, who asks, and people who approve, on a fake Telegram."""

    def __init__(self) -> None:
        self.fake = FakeTelegram()
        self.ada, self.bob, self.eve, self.kim = (self.fake.user(name) for name in ("Ada", "Bob", "Eve", "Kim"))
        # A bot can't write first.
        for person in (self.ada, self.bob, self.eve, self.kim):
            self.fake.private(person)
        self.bank = Bank()

    def agent(self) -> Any:
        return self.bank.agent(PAY, ["done"])

    def rule(self, *people: Any, **terms: Any) -> ApproverRule:
        return ApproverRule(approvers=[on_telegram(person) for person in people], **terms)

    def chat(self, user: Any) -> Any:
        return self.fake.private(user)


async def press(bot: TelegramHost, user: Any, word: str, chat: Any = None) -> str:
    """What a person is shown who has pressed a button of the last message with one."""
    place = chat or bot.fake.private(user)
    asking = [message for message in place.messages.values() if message.markup]
    click = bot.fake.press(user, asking[-1], word)
    await bot.until(lambda: click.answered)
    return click.text


async def ask_all(bot: TelegramHost, team: Team, *people: Any) -> None:
    """Ada asks, and waits until others were asked."""
    team.fake.say(team.ada, "pay 5")
    for person in (team.ada, *people):
        await bot.answers(team.chat(person))


@pytest.mark.parametrize(("word", "paid"), [("Approve", [5]), ("Reject", [])])
async def test_an_approver_is_asked_and_the_run_goes_on_where_it_was_asked_for(word: str, paid: list[int]) -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob))
    async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
        await ask_all(bot, team, team.bob)
        (question,) = bot.fake.shown(team.chat(team.bob)).messages
        assert f"“Ada” (unverified, id {team.ada.id}) on telegram needs an approval: may I use pay?" in question.text
        assert '"for the flowers"' in question.text
        assert "Without an answer by" in question.text
        assert question.buttons == (("Approve", "Reject"),)
        waiting = bot.fake.shown(team.chat(team.ada)).messages[-1]
        assert waiting.text.startswith(
            f"pay waits for an approval by “Bob” (unverified, id {team.bob.id}) on telegram."
        )
        assert not waiting.buttons
        assert (await press(bot, team.bob, word)).startswith(f"pay: {word.lower().rstrip('e')}")
        assert (await bot.answers(team.chat(team.ada), 2))[1] == "done"
        await bot.until(lambda: " by “Bob” (" in bot.fake.shown(team.chat(team.bob)).messages[0].text)
        await bot.until(lambda: " by “Bob” (" in bot.fake.shown(team.chat(team.ada)).messages[1].text)
        assert bot.fake.shown(team.chat(team.bob)).messages[0].buttons == ()
    assert team.bank.paid == paid


async def test_the_requester_and_a_stranger_decide_nothing_and_are_told_privately() -> None:
    team = Team()
    options = ApprovalOptions(tools={"pay": team.rule(team.bob, exclude_requester=True)})
    async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
        await ask_all(bot, team, team.bob)
        (question,) = [m for m in team.chat(team.bob).messages.values() if m.markup]
        for person, said in ((team.ada, "You are not an approver"), (team.eve, "not yours")):
            click = bot.fake.press(person, question, "Approve")
            await bot.until(lambda click=click: click.answered)
            assert said in click.text
        assert team.bank.paid == []
        buttons = question.markup
        await press(bot, team.bob, "Approve")
        await bot.answers(team.chat(team.ada), 2)
        # An app that has not heard of the change yet.
        await bot.until(lambda: question.markup is None)
        question.markup = buttons
        late = bot.fake.press(team.bob, question, "Reject")
        await bot.until(lambda: late.answered)
        assert late.text.startswith("pay: approved")
    assert team.bank.paid == [5]


async def test_two_of_three_have_to_agree_and_each_counts_once() -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob, team.eve, team.kim, votes=2))
    async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
        await ask_all(bot, team, team.bob, team.eve, team.kim)
        assert "2 people have to approve." in bot.fake.shown(team.chat(team.bob)).messages[0].text
        for _ in range(2):
            assert await press(bot, team.bob, "Approve") == "Your vote was recorded. More approvers are required."
        assert team.bank.paid == []
        assert "approved by “Kim”" in await press(bot, team.kim, "Approve")
        assert (await bot.answers(team.chat(team.ada), 2))[1] == "done"
        for person in (team.bob, team.eve, team.kim):
            shown = bot.fake.shown(team.chat(person)).messages
            await bot.until(lambda person=person: not bot.fake.shown(team.chat(person)).messages[0].buttons)
            assert len(shown) == 1
        lines = [line.action for line in await get_store(bot.host).audit.lines()]
        assert lines == ["asked", "voted", "approved"]
    assert team.bank.paid == [5]


async def test_one_no_is_enough() -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob, team.eve, votes=2))
    async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
        await ask_all(bot, team, team.bob, team.eve)
        await press(bot, team.bob, "Approve")
        await press(bot, team.eve, "Reject")
        assert (await bot.answers(team.chat(team.ada), 2))[1] == "done"
    assert team.bank.paid == []


async def test_a_role_is_looked_up_and_the_function_chooses_the_rule() -> None:
    team = Team()
    asked: list[tuple[str, str]] = []

    async def people(question: Any) -> list[ChannelIdentity]:
        asked.append(("people", question.tool))
        return [on_telegram(team.eve)]

    def choose(question: Any, requester: Any) -> ApproverRule | None:
        asked.append(("rule", requester.identity.native_id))
        return ApproverRule(approvers=[ApproverRole(name="the treasurer", people=people)])

    options = ApprovalOptions(default=team.rule(team.bob), rule=choose)
    async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
        await ask_all(bot, team, team.eve)
        assert "by the treasurer" in bot.fake.shown(team.chat(team.ada)).messages[-1].text
        assert asked == [("rule", str(team.ada.id)), ("people", "pay")]
        await press(bot, team.eve, "Approve")
        await bot.answers(team.chat(team.ada), 2)
    assert team.bank.paid == [5]


@pytest.mark.parametrize("people", [lambda question: [], lambda question: 1 / 0, lambda question: ["bob"]])
async def test_nothing_runs_where_nobody_can_be_asked(people: Callable[[Any], Any]) -> None:
    team = Team()
    options = ApprovalOptions(default=ApproverRule(approvers=[ApproverRole(name="nobody", people=people)]))
    async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
        assert "no approver can be asked" in await bot.ask(team.ada, "pay 5")
        assert await get_store(bot.host).approvals.expired(9e12) == []
    assert team.bank.paid == []


async def test_a_group_does_not_see_the_arguments_unless_the_policy_says_so() -> None:
    for shows in (False, True):
        team = Team()
        options = ApprovalOptions(default=team.rule(team.bob), show_arguments_in_groups=shows)
        async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
            group = bot.fake.supergroup("Team", team.ada, team.bob)
            said = await bot.ask(team.ada, "@frontdesk_bot pay 5", group)
            assert ("for the flowers" in said) == shows
            await bot.answers(team.chat(team.bob))
            assert "in a group on telegram" in bot.fake.shown(team.chat(team.bob)).messages[0].text
            await press(bot, team.bob, "Approve")
            assert (await bot.answers(group, 2))[1] == "done"


async def test_a_requester_who_decides_alone_is_asked_in_the_direct_chat_about_a_group() -> None:
    team = Team()
    async with open_bot(team.agent(), fake=team.fake, approvals=ApprovalOptions()) as bot:
        group = bot.fake.supergroup("Team", team.ada, team.bob)
        team.chat(team.ada)
        assert "for the flowers" not in await bot.ask(team.ada, "@frontdesk_bot pay 5", group)
        await bot.answers(team.chat(team.ada))
        await press(bot, team.ada, "Approve")
        assert (await bot.answers(group, 2))[1] == "done"
    assert team.bank.paid == [5]


def _answer_heard(messages: list[Any]) -> Any:
    """What the model says to all that it has heard after the first message."""
    return ["I heard: " + "".join(message.text for message in messages[1:])] if len(messages) > 1 else PAY


@pytest.mark.parametrize("own", [False, True])
async def test_expiry_is_a_no_with_its_reason_which_the_run_goes_on_with_where_it_was_asked_for(own: bool) -> None:
    team, clock = Team(), FakeClock(SystemClock().now())
    options = ApprovalOptions(default=ApproverRule() if own else team.rule(team.bob), seconds=60)
    agent = build_scripted(_answer_heard, tools=[team.bank.tool()])
    async with open_bot(agent, fake=team.fake, approvals=options, clock=clock) as bot:
        await ask_all(bot, team, *(() if own else (team.bob,)))
        clock.advance(61)
        said = (await bot.answers(team.chat(team.ada), 2))[1]
        assert said == "I heard: Nobody approved this call in time, so that the answer is no."
        for person in (team.ada,) if own else (team.ada, team.bob):
            chat = team.chat(person)
            await bot.until(lambda chat=chat: any("pay: expired" in m.text for m in bot.fake.shown(chat).messages))
            assert not any(message.buttons for message in bot.fake.shown(chat).messages)
        lines = [(line.action, line.by) for line in await get_components(bot.host).store.audit.lines()]
        assert lines[-1] == ("expired", "")
    assert team.bank.paid == []


async def test_others_are_asked_after_a_time_and_may_answer_only_then() -> None:
    team, clock = Team(), FakeClock(SystemClock().now())
    rule = team.rule(team.bob, escalate_after=30, escalate_to=[on_telegram(team.eve)])
    async with open_bot(team.agent(), fake=team.fake, approvals=ApprovalOptions(default=rule), clock=clock) as bot:
        await ask_all(bot, team, team.bob)
        (question,) = [m for m in team.chat(team.bob).messages.values() if m.markup]
        early = bot.fake.press(team.eve, question, "Approve")
        await bot.until(lambda: early.answered)
        assert "not yours" in early.text
        clock.advance(31)
        await bot.answers(team.chat(team.eve))
        assert "approved by “Eve”" in await press(bot, team.eve, "Approve")
        await bot.answers(team.chat(team.ada), 2)
        await bot.until(lambda: question.markup is None)
        lines = [line.action for line in await get_store(bot.host).audit.lines()]
        assert lines == ["asked", "escalated", "approved"]
    assert team.bank.paid == [5]


@pytest.mark.parametrize("how", ["cancel", "delete"])
async def test_a_run_that_is_cancelled_or_deleted_closes_its_questions_everywhere(how: str) -> None:
    team = Team()
    options, door = ApprovalOptions(default=team.rule(team.bob, team.eve)), ResponsesChannel()
    async with open_bot(team.agent(), fake=team.fake, approvals=options, channels=[door]) as bot:
        asked = (await bot.http.post("/v1/responses", json={"model": "any", "input": "pay"})).json()
        for person in (team.bob, team.eve):
            await bot.answers(team.chat(person))
        path = f"/v1/responses/{asked['id']}"
        if how == "cancel":
            await bot.host._get_context("responses").runs.cancel(*await _owner(bot), asked["id"])
        else:
            assert (await bot.http.delete(path)).status_code == 200
        for person in (team.bob, team.eve):
            await bot.until(lambda person=person: not bot.fake.shown(team.chat(person)).messages[0].buttons)
            assert "The run was cancelled." in bot.fake.shown(team.chat(person)).messages[0].text
    assert team.bank.paid == []


async def _owner(bot: TelegramHost) -> tuple[Any]:
    (question,) = await get_store(bot.host).approvals.expired(9e12)
    return (question.requester,)


async def test_a_conversation_that_is_deleted_closes_its_questions_everywhere() -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob))
    doors = [ResponsesChannel(), ConversationsChannel()]
    async with open_bot(team.agent(), fake=team.fake, approvals=options, channels=doors) as bot:
        conversation = (await bot.http.post("/v1/conversations", json={})).json()["id"]
        body = {"model": "any", "input": "pay", "conversation": conversation}
        assert (await bot.http.post("/v1/responses", json=body)).status_code == 200
        await bot.answers(team.chat(team.bob))
        assert (await bot.http.delete(f"/v1/conversations/{conversation}")).status_code == 200
        await bot.until(lambda: "deleted" in bot.fake.shown(team.chat(team.bob)).messages[0].text)
    assert team.bank.paid == []


async def test_an_operator_answers_and_every_place_is_told() -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob, team.eve, votes=2))
    async with open_bot(team.agent(), fake=team.fake, approvals=options) as bot:
        await ask_all(bot, team, team.bob, team.eve)
        await bot.wait_for_ends(3)
        (question,) = await get_store(bot.host).approvals.expired(9e12)
        desk, name = AdminService(admin_parts(get_components(bot.host))), {"id": question.approval_id}
        shown = await desk.call("show", {"kind": "approvals", "name": name, "content": True, "by": "kim"})
        assert (len(shown["shown_to"]), shown["votes_needed"]) == (3, 2)
        act = {"kind": "approvals", "action": "approve", "name": name, "seen": shown["seen"], "by": "kim"}
        assert (await desk.call("act", act))["status"] == "approved"
        assert (await bot.answers(team.chat(team.ada), 2))[1] == "done"
        for person in (team.bob, team.eve):
            await bot.until(lambda person=person: not bot.fake.shown(team.chat(person)).messages[0].buttons)
        lines = [(line.action, line.by) for line in await get_store(bot.host).audit.lines()]
        assert lines[1:] == [("read", "operator:kim"), ("approved", "operator:kim")]
    assert team.bank.paid == [5]


async def test_a_requester_on_the_page_sees_whom_it_waits_for_and_can_not_answer() -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob))
    async with (
        open_bot(team.agent(), fake=team.fake, approvals=options, channels=[WebChatChannel()]) as bot,
        open_visitor(bot.base_url) as visitor,
        open_visitor(bot.base_url) as stranger,
    ):
        await visitor.say("pay 5")
        card = (await visitor.wait_for_messages(2))[1]["question"]
        path = f"approvals/{card['approval_id']}"
        question = await visitor.get(path)
        assert (question["may_answer"], question["waits_for"]) == (False, ["Bob"])
        refused = (await visitor.post(path, approved=True, digest=question["digest"])).json()
        assert (refused["outcome"], refused["question"]["status"]) == ("not_yours", "pending")
        assert (await stranger.http.get(f"/chat/api/{path}")).status_code == 404
        foreign = (await stranger.post(path, approved=True, digest=question["digest"])).json()
        assert foreign == {"outcome": "not_yours", "question": None}
        await bot.answers(team.chat(team.bob))
        await press(bot, team.bob, "Approve")
        messages = await visitor.wait_for_messages(3)
        assert messages[2]["text"] == "done"

        async def settled() -> Any:
            shown = (await visitor.messages())[1]["question"]
            return (shown.get("outcome"), shown.get("by")) == ("approved", "Bob")

        await visitor.until(settled)
    assert team.bank.paid == [5]


async def test_an_approver_answers_for_a_caller_on_a_wire() -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob))
    door = InvocationsChannel()
    async with open_bot(team.agent(), fake=team.fake, approvals=options, channels=[door]) as bot:
        asked = (await bot.http.post("/invocations", json={"message": "pay", "session_id": "s"})).json()
        answer = {"id": asked["approvals"][0]["id"], "approved": True}
        refused = await bot.http.post("/invocations", json={"approval": answer})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "approval_not_yours")
        await bot.answers(team.chat(team.bob))
        await press(bot, team.bob, "Approve")

        async def paid() -> bool:
            return team.bank.paid == [5]

        await until(paid)


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        (lambda bob: {"tools": {"pey": ApproverRule()}}, "the target has no tool called 'pey'"),
        (lambda bob: {"default": ApproverRule(approvers=[])}, "approvers is a list"),
        (lambda bob: {"default": ApproverRule(exclude_requester=True)}, "exclude_requester=True excludes them"),
        (lambda bob: {"default": ApproverRule(approvers=[bob], votes=2)}, "votes=2, and only 1 could vote"),
        (lambda bob: {"default": ApproverRule(approvers=[bob], votes=0)}, "votes is a number"),
        (
            lambda bob: {"default": ApproverRule(approvers=[bob.replace(channel="slack")])},
            "the host has no channel named 'slack'",
        ),
        (
            lambda bob: {"default": ApproverRule(approvers=[bob.replace(channel="invocations")])},
            "nobody can be asked on 'invocations'",
        ),
        (lambda bob: {"default": ApproverRule(approvers=[bob], escalate_after=5)}, "are given together"),
        (lambda bob: {"default": ApproverRule(approvers=cast("Any", ["ann"]))}, "'ann' is not a ChannelIdentity"),
        (lambda bob: {"default": ApproverRule(approvers=[ApproverRole(name="x")])}, "nobody would be asked"),
        (
            lambda bob: {"default": ApproverRule(approvers=[ApproverRole(name="x", people=[bob], claim="groups")])},
            "a claim but no list of values",
        ),
        (
            lambda bob: {"default": ApproverRule(approvers=[bob], escalate_after=90, escalate_to=[bob]), "seconds": 60},
            "escalate_after must be less than seconds",
        ),
        (lambda bob: {"seconds": 0}, "seconds must be more than 0"),
        (lambda bob: {"rule": "everybody"}, "rule is not a function"),
        (lambda bob: {"default": "bob"}, "is not an ApproverRule"),
    ],
)
def test_a_mistake_in_the_rules_is_found_at_build(options: Any, finding: str) -> None:
    from frontdesk_testing.messages import MessageChannel

    bob = ChannelIdentity(channel="messages", native_id="bob")
    channels = [
        InvocationsChannel(),
        MessageChannel(platform_url="http://127.0.0.1:1", token="t" * 32, secret="s" * 32),
    ]
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(Bank().agent(), channels=channels, approvals=ApprovalOptions(**options(bob)))
    assert any(finding in line for line in caught.value.findings), caught.value.findings
