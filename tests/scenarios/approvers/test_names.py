"""The names of people in approvals: shown with account and channel, marked unless verified, and never decided by."""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import ApprovalOptions, ApproverRole, ApproverRule, NativeIdAllowlist, OneTimeCodeIdentityLinker
from frontdesk.admin.service import AdminService
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.host.admin_socket import admin_parts
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkProof
from frontdesk_testing.internals import get_components, get_store
from frontdesk_testing.telegram.records import User
from tests.cards import outcome_in
from tests.channels.web.visiting import open_visitor
from tests.invisible import invisible_in
from tests.scenarios.approvers.test_asking import PAY, Team, ask_all, on_telegram, press
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.messages.chat import open_chat
from tests.scenarios.messages.test_buttons import Bank
from tests.scenarios.telegram.bot import TelegramHost, open_bot

AT = r" \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)"
ARGUMENTS = '{"amount": 5, "note": "for the flowers"}'


def by_id(user: User) -> ChannelIdentity:
    """A person as an operator lists them, who knows the id alone."""
    return ChannelIdentity("telegram", str(user.id))


def rule(*people: User, **terms: Any) -> ApprovalOptions:
    return ApprovalOptions(default=ApproverRule(approvers=[by_id(person) for person in people], **terms))


async def join(bot: TelegramHost, identity: ChannelIdentity, **claims: Any) -> None:
    """Let a provider verify the claims of a person."""
    links = get_components(bot.host).links
    assert links is not None
    subject = f"issuer|{identity.native_id}"
    await links.join(LinkProof(linker="code", identity=identity, subject=subject, claims=claims))


@asynccontextmanager
async def open_named_bot(team: Team, options: ApprovalOptions, **more: Any) -> AsyncIterator[TelegramHost]:
    given = {"fake": team.fake, "approvals": options, "linker": OneTimeCodeIdentityLinker(), **more}
    async with open_bot(build_scripted(answer, tools=[team.bank.tool()]), **given) as bot:
        yield bot


def answer(messages: list[Any]) -> Any:
    """Pay, if somebody wants that, and say something to everybody else."""
    said = [message.text for message in messages if message.role == "user"]
    if "hello" in said[-1]:
        return "hi"
    return ["done"] if messages[-1].role == "tool" else PAY


async def introduce(bot: TelegramHost, user: User) -> None:
    """Let the host store the identity of a person."""
    assert await bot.ask(user, "hello") == "hi"


def get_last_text(bot: TelegramHost, team: Team, user: User) -> str:
    return bot.fake.shown(team.chat(user)).messages[-1].text


async def test_a_requester_read_the_id_of_an_approver_whose_name_was_known() -> None:
    team = Team()
    async with open_named_bot(team, rule(team.bob)) as bot:
        await introduce(bot, team.bob)
        await ask_all(bot, team)
        expected = f"pay waits for an approval by “Bob” (unverified, id {team.bob.id}) on telegram."
        assert get_last_text(bot, team, team.ada).startswith(expected)


async def test_an_approver_read_the_id_of_a_visitor_whose_name_a_link_had_verified() -> None:
    team = Team()
    async with (
        open_named_bot(team, rule(team.bob), channels=[WebChatChannel()]) as bot,
        open_visitor(bot.base_url) as visitor,
    ):
        await visitor.say("hello")
        await visitor.wait_for_messages(2)
        (account,) = [one for one in await _people(bot) if one["channel"] == "web"]
        await join(bot, ChannelIdentity("web", account["id"]), name="Ada Lovelace", email="ada@example.com")
        await visitor.say("pay 5")
        (question,) = await bot.answers(team.chat(team.bob))
        short = rf"{account['id'][:8]}….{{4}}"
        assert re.match(rf"“Ada Lovelace” \(id {short}\) on web needs an approval: may I use pay\?", question)
        assert "ada@example.com" not in question
        await press(bot, team.bob, "Approve")
        await bot.until(lambda: not bot.fake.shown(team.chat(team.bob)).messages[0].buttons)
        assert re.search(rf"Asked for by “Ada Lovelace” \(id {short}\) on web\.", get_last_text(bot, team, team.bob))
    assert team.bank.paid == [5]


async def _people(bot: TelegramHost) -> list[dict[str, Any]]:
    return await _rows(bot, "people")


async def _rows(bot: TelegramHost, kind: str) -> list[dict[str, Any]]:
    desk = AdminService(admin_parts(get_components(bot.host)))
    return (await desk.call("page", {"kind": kind}))["items"]


async def test_a_name_that_a_link_has_verified_comes_before_the_one_of_the_platform(
    caplog: pytest.LogCaptureFixture,
) -> None:
    team = Team()
    caplog.set_level(logging.DEBUG)
    async with open_named_bot(team, rule(team.bob)) as bot:
        for user, name in ((team.ada, "Ada Lovelace"), (team.bob, "Robert Boyle")):
            await introduce(bot, user)
            await join(bot, on_telegram(user), name=name)
        await ask_all(bot, team)
        await bot.answers(team.chat(team.bob), 2)
        assert "by “Robert Boyle” (id " in get_last_text(bot, team, team.ada)
        assert get_last_text(bot, team, team.bob).startswith(f"“Ada Lovelace” (id {team.ada.id}) on telegram needs")
        told = await press(bot, team.bob, "Approve")
        assert told.startswith(f"pay: approved by “Robert Boyle” (id {team.bob.id}) on telegram")
        (row,) = await _rows(bot, "approvals")
        found = (row["requester"], row["requester_name"], row["requester_name_verified"])
        assert found == (str(team.ada.id), "Ada Lovelace", True)
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("frontdesk")]
    assert not [line for line in logged if "Lovelace" in line or "Boyle" in line]


async def test_an_email_address_is_not_the_name_that_others_are_shown() -> None:
    team = Team()
    async with open_named_bot(team, rule(team.bob)) as bot:
        await introduce(bot, team.ada)
        await join(bot, on_telegram(team.ada), preferred_username="ada@example.com", email="ada@example.com")
        await ask_all(bot, team, team.bob)
        assert get_last_text(bot, team, team.bob).startswith(f"“Ada” (unverified, id {team.ada.id}) on telegram needs")


async def test_the_account_of_another_channel_names_a_person_who_has_no_name_here() -> None:
    team = Team()
    async with (
        open_named_bot(team, rule(team.bob), channels=[WebChatChannel()]) as bot,
        open_visitor(bot.base_url) as visitor,
    ):
        await introduce(bot, team.ada)
        await visitor.say("hello")
        await visitor.wait_for_messages(2)
        (account,) = [one for one in await _people(bot) if one["channel"] == "web"]
        links = get_components(bot.host).links
        assert links is not None
        page = ChannelIdentity("web", account["id"])
        await links.join(LinkProof(linker="code", identity=page, survivor=on_telegram(team.ada)))
        await visitor.say("pay 5")
        (question,) = await bot.answers(team.chat(team.bob))
        assert question.startswith("“Ada” (unverified, id vis_")


HOSTILE = "Bob”\u202e (id 1)\u200b\n" + "x" * 500


async def test_a_name_was_as_long_and_as_invisible_as_its_owner_wanted() -> None:
    team = Team()
    team.ada.first_name = HOSTILE
    team.bob.first_name = "\u202e" * 200
    async with open_named_bot(team, rule(team.bob)) as bot:
        await introduce(bot, team.bob)
        await ask_all(bot, team, team.bob)
        question, waits = get_last_text(bot, team, team.bob), get_last_text(bot, team, team.ada)
        assert invisible_in(question) == invisible_in(waits) == []
        # The name ends where its quotation mark does.
        (name,) = re.findall(rf"^“([^”]*)” \(unverified, id {team.ada.id}\) on telegram needs", question)
        assert len(name) <= 80
        assert name.startswith("Bob \\u202e (id 1)\\u200b x")
        (name,) = re.findall(rf"by “([^”]*)” \(unverified, id {team.bob.id}\)", waits)
        assert len(name) <= 80


@pytest.mark.parametrize("name", ["Bob", "{id}", "telegram {id}", "operator:kim", "the treasurer"])
async def test_a_misleading_name_decides_nothing(name: str) -> None:
    """Eve has the name, or as a name the id, of an approver, and of somebody who may come in."""
    team = Team()
    team.eve.first_name = team.ada.first_name = name.format(id=team.bob.id)
    role = ApproverRole(name="the treasurer", people=[by_id(team.bob)])
    options = ApprovalOptions(default=ApproverRule(approvers=[role], exclude_requester=True))
    may_come_in = NativeIdAllowlist([str(user.id) for user in (team.ada, team.bob, team.kim)])
    async with open_named_bot(team, options, allowlist=may_come_in) as bot:
        await ask_all(bot, team, team.bob)
        (question,) = [message for message in team.chat(team.bob).messages.values() if message.markup]
        for user in (team.eve, team.ada):
            click = bot.fake.press(user, question, "Approve")
            await bot.until(lambda click=click: click.answered)
            assert "approved" not in click.text
        (asked,) = await get_store(bot.host).approvals.expired(9e12)
        assert (asked.status, await get_store(bot.host).approvals.votes(asked.owner, asked.approval_id)) == (
            "pending",
            [],
        )
        team.bob.first_name = "Somebody else"
        assert (await press(bot, team.bob, "Approve")).startswith("pay: approved by ")
        await bot.answers(team.chat(team.ada), 2)
    assert team.bank.paid == [5]


async def test_a_decided_card_lost_its_arguments_on_telegram() -> None:
    team = Team()
    async with open_named_bot(team, rule(team.bob)) as bot:
        await ask_all(bot, team, team.bob)
        await press(bot, team.bob, "Reject")
        for user, number in ((team.bob, 0), (team.ada, 1)):
            chat = team.chat(user)
            await bot.until(lambda chat=chat, n=number: "rejected" in bot.fake.shown(chat).messages[n].text)
            card = bot.fake.shown(chat).messages[number].text
            who = rf"“Bob” \(unverified, id {team.bob.id}\) on telegram"
            asker = rf"“Ada” \(unverified, id {team.ada.id}\) on telegram"
            expected = rf"pay: rejected by {who}{AT}\nAsked for by {asker}\.\n{re.escape(ARGUMENTS)}"
            assert re.fullmatch(expected, card), card


async def test_a_decided_card_lost_its_arguments_on_a_message_channel() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        question = await chat.last(ada.chat_id, 1)
        await chat.platform.click(ada, question, "Approve")
        assert (await chat.wait_for_answers(ada.chat_id, 2))[1] == "done"
        card = (await chat.platform.answers(ada.chat_id))[0].text
        assert re.fullmatch(rf'pay: approved by “Ada” \(unverified, id .*\) on messages{AT}\n{{"amount": 5}}', card), (
            card
        )
    assert bank.paid == [5]


async def test_a_decided_card_lost_its_arguments_on_the_page() -> None:
    team = Team()
    async with (
        open_named_bot(team, rule(team.bob), channels=[WebChatChannel()]) as bot,
        open_visitor(bot.base_url) as visitor,
    ):
        await introduce(bot, team.bob)
        await visitor.say("pay 5")
        name = (await visitor.wait_for_messages(2))[1]["question"]["approval_id"]
        asked = await visitor.get(f"approvals/{name}")
        bob = {"name": "Bob", "id": str(team.bob.id), "channel": "telegram"}
        assert (asked["waits_for"], asked["people"]) == (["Bob"], [bob])
        assert asked["asked_for"]["channel"] == "web"
        await bot.answers(team.chat(team.bob), 2)
        await press(bot, team.bob, "Approve")
        await bot.answers(team.chat(team.bob), 2)
        decided = await visitor.get(f"approvals/{name}")
        assert (decided["status"], decided["decider"], decided["at"] > 0) == ("approved", bob, True)

        async def settled() -> Any:
            cards = [message["question"] for message in await visitor.messages() if message.get("question")]
            return cards[0] if cards[0].get("outcome") else None

        card = await visitor.until(settled)
        assert (card["outcome"], card["by"], card["decider"], card["at"]) == ("approved", "Bob", bob, decided["at"])
        assert card["fields"] == [["amount", "5", False], ["note", "for the flowers", False]]
    assert team.bank.paid == [5]


@pytest.mark.parametrize("shows", [False, True])
async def test_a_decided_card_shows_the_arguments_in_no_group_that_must_not_see_them(shows: bool) -> None:
    team = Team()
    options = ApprovalOptions(default=ApproverRule(approvers=[by_id(team.bob)]), show_arguments_in_groups=shows)
    async with open_named_bot(team, options) as bot:
        group = bot.fake.supergroup("Team", team.ada, team.bob)
        await bot.ask(team.ada, "@frontdesk_bot pay 5", group)
        await bot.answers(team.chat(team.bob))
        await press(bot, team.bob, "Approve")
        for chat, sees in ((group, shows), (team.chat(team.bob), True)):
            await bot.until(
                lambda chat=chat: any("approved by" in message.text for message in bot.fake.shown(chat).messages)
            )
            (card,) = [m.text for m in bot.fake.shown(chat).messages if "approved by" in m.text]
            assert (ARGUMENTS in card) == sees


async def test_a_card_of_a_cancelled_run_keeps_no_arguments() -> None:
    team = Team()
    async with open_named_bot(team, rule(team.bob), channels=[InvocationsChannel()]) as bot:
        asked = (await bot.http.post("/invocations", json={"message": "pay"})).json()
        await bot.answers(team.chat(team.bob))
        await bot.host._get_context("invocations").runs.cancel(await _requester(bot), asked["id"])
        await bot.until(lambda: not bot.fake.shown(team.chat(team.bob)).messages[0].buttons)
        assert ARGUMENTS not in get_last_text(bot, team, team.bob)


async def _requester(bot: TelegramHost) -> Any:
    (question,) = await get_store(bot.host).approvals.expired(9e12)
    return question.requester


async def test_an_operator_who_has_decided_is_not_named() -> None:
    team = Team()
    async with open_named_bot(team, rule(team.bob)) as bot:
        await ask_all(bot, team, team.bob)
        await bot.wait_for_ends(2)
        desk = AdminService(admin_parts(get_components(bot.host)))
        (row,) = await _rows(bot, "approvals")
        name = {"id": row["approval_id"]}
        act = {"kind": "approvals", "action": "approve", "name": name, "seen": row["seen"], "by": "kim"}
        await desk.call("act", act)
        await bot.until(lambda: not bot.fake.shown(team.chat(team.bob)).messages[0].buttons)
        assert re.match(rf"pay: approved by an operator{AT}", get_last_text(bot, team, team.bob))


async def test_callers_over_http_get_the_people_beside_the_names() -> None:
    team = Team()
    async with open_named_bot(team, rule(team.bob), channels=[InvocationsChannel()]) as bot:
        await introduce(bot, team.bob)
        response = (await bot.http.post("/invocations", json={"message": "pay"})).json()
        (waiting,) = response["approvals"]
        bob = {"name": "Bob", "id": str(team.bob.id), "channel": "telegram", "verified": False}
        assert (waiting["waits_for"], waiting["waits_for_people"]) == (["Bob"], [bob])


async def test_an_operator_sees_the_names_of_those_who_asked_and_decided() -> None:
    team = Team()
    async with open_named_bot(team, rule(team.bob)) as bot:
        await introduce(bot, team.bob)
        await join(bot, on_telegram(team.bob), name="Robert Boyle")
        await ask_all(bot, team)
        await bot.answers(team.chat(team.bob), 2)
        await press(bot, team.bob, "Approve")
        await bot.answers(team.chat(team.ada), 2)
        people = {row["id"]: (row["name"], row["shown_name"], row["name_verified"]) for row in await _people(bot)}
        assert people[str(team.bob.id)] == ("Bob", "Robert Boyle", True)
        assert people[str(team.ada.id)] == ("Ada", "Ada", False)
        lines = {line["action"]: line for line in await _rows(bot, "audit")}
        assert set(lines) == {"linked", "asked", "approved"}
        decided = lines["approved"]
        assert (decided["by_name"], decided["by_name_verified"]) == ("Robert Boyle", True)
        assert (decided["by_id"], decided["by_channel"]) == (str(team.bob.id), "telegram")
        assert (decided["person_name"], decided["person_name_verified"]) == ("Ada", False)


def test_the_outcome_of_a_card_is_found() -> None:
    text = "pay: approved by “Ada” (unverified, id 7) on web (2026-01-01 00:00 UTC)\n{}"
    assert outcome_in(text) == "pay: approved by “Ada”"
    assert outcome_in("pay: expired (2026-01-01 00:00 UTC)") == "pay: expired"
