"""The host's own commands speak the language of the person."""

from frontdesk import NativeIdAllowlist, OneTimeCodeIdentityLinker
from frontdesk.chat.i18n.en import ENGLISH
from frontdesk.chat.i18n.texts import placeholders
from frontdesk_testing import EchoAgent
from tests.scenarios.cast import call
from tests.scenarios.messages.chat import IN_GROUPS, open_chat
from tests.scenarios.messages.test_buttons import Bank, toast
from tests.scenarios.messages.test_questions import Talk, flow


async def test_a_person_hears_commands_in_their_language() -> None:
    texts = {"fr": {"sessions.anew": "On recommence."}}
    async with open_chat(EchoAgent(), texts=texts) as chat:
        eva, zoe = await chat.platform.user("Eva", locale="de-AT"), await chat.platform.user("Zoe", locale="fr")
        ada = await chat.platform.user("Ada")
        for who, said in ((eva, "Wir fangen neu an."), (zoe, "On recommence."), (ada, "We start anew.")):
            await chat.platform.say(who, "/new")
            assert await chat.wait_for_answers(who.chat_id) == [said]
        asked = {
            "/nichts": "/nichts kenne ich nicht. /help sagt, was ich verstehe.",
            "/sessions": "Es gibt noch kein Gespräch.",
            "/cancel": "Es gibt nichts abzubrechen.",
        }
        for number, (text, said) in enumerate(asked.items(), 2):
            await chat.platform.say(eva, text)
            assert (await chat.wait_for_answers(eva.chat_id, number))[-1] == said
        await chat.platform.say(eva, "/help")
        assert "/new - Ein neues Gespräch beginnen" in (await chat.wait_for_answers(eva.chat_id, 5))[-1]

        async def published() -> bool:
            return (await chat.platform.menu("", "de")).get("new") == "Ein neues Gespräch beginnen"

        await chat.platform.until(published)
        # What has no French sentence is English.
        await chat.platform.say(zoe, "/cancel")
        assert (await chat.wait_for_answers(zoe.chat_id, 2))[-1] == "There is nothing to stop."


def foreign(key: str, sentence: str) -> str:
    """Return a sentence of a made-up language: its key and its values."""
    return " ".join([f"<{key}>", *(f"{{{name}}}" for name in sorted(placeholders(sentence)))])


STRANGE = {"qq": {key: foreign(key, sentence) for key, sentence in ENGLISH.items()}}
"""A language in which every sentence of the host is known by its key."""


async def test_a_question_and_what_is_decided_are_in_the_language_of_the_person() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), texts=STRANGE, approvals=IN_GROUPS) as chat:
        zoe = await chat.platform.user("Zoe", locale="qq")
        bob = await chat.platform.user("Bob", locale="qq")
        group = await chat.platform.group("Friends", zoe, bob)
        await chat.platform.say(zoe, "@desk pay 5", chat_id=group.chat_id)
        question = await chat.last(group.chat_id, 1)
        assert question.text == '<approval.ask> pay\n{"amount": 5}'
        assert [button.text for button in question.buttons] == ["<approval.approve>", "<approval.reject>"]
        stranger = await chat.platform.click(bob, question, "<approval.approve>", chat_id=group.chat_id)
        assert await toast(chat, stranger) == "<approval.not_yours>"
        click = await chat.platform.click(zoe, question, "<approval.approve>", chat_id=group.chat_id)
        assert (await toast(chat, click)).startswith("<approval.approved_by> <person.unverified> messages ")
        assert (await chat.wait_for_answers(group.chat_id, 2))[-1] == "done"
        card = (await chat.wait_for_answers(group.chat_id, 2))[0]
        assert card.startswith("<approval.at> <approval.approved_by> <person.unverified> messages ")
        assert card.endswith('\n{"amount": 5}')


async def test_refusals_are_in_the_language_of_the_person() -> None:
    async with open_chat(EchoAgent(), texts=STRANGE, allowlist=NativeIdAllowlist(["u-ada"])) as chat:
        zoe = await chat.platform.user("Zoe", locale="qq")
        group = await chat.platform.group("Friends", zoe)
        await chat.platform.say(zoe, "hello")
        assert await chat.wait_for_answers(zoe.chat_id) == ["<error.denied>"]
        await chat.platform.say(zoe, "@desk hello", chat_id=group.chat_id)
        assert await chat.wait_for_answers(group.chat_id) == ["<error.denied_group>"]
        assert await chat.wait_for_answers(zoe.chat_id, 2) == ["<error.denied>"] * 2


async def test_linking_is_in_the_language_of_each_person() -> None:
    linker = OneTimeCodeIdentityLinker()
    async with open_chat(EchoAgent(), texts=STRANGE, linker=linker, require_link=True) as chat:
        zoe, eva = [await chat.platform.user(name, locale="qq") for name in ("Zoe", "Eva")]
        ada = await chat.platform.user("Ada")
        await chat.platform.say(zoe, "hello")
        challenge = (await chat.wait_for_answers(zoe.chat_id))[-1]
        key, code, command, minutes = challenge.split(" ")
        assert (key, command, minutes) == ("<link.code>", "/link", "15")
        await chat.platform.say(ada, "/link 0000-0000")
        assert await chat.wait_for_answers(ada.chat_id) == ["This code is invalid. Ask for a new one."]
        await chat.platform.say(eva, "/link 0000-0000")
        assert await chat.wait_for_answers(eva.chat_id) == ["<error.code_refused>"]
        await chat.platform.say(eva, f"/link {code}")
        assert (await chat.wait_for_answers(eva.chat_id, 2))[-1].startswith(
            "<link.confirm_entered> /link confirm <person.named> "
        )
        await chat.platform.say(eva, "/link confirm")
        assert (await chat.wait_for_answers(eva.chat_id, 3))[-1].startswith(
            "<link.go_back> /link confirm <person.named> "
        )
        assert (await chat.wait_for_answers(zoe.chat_id, 2))[-1].startswith(
            "<link.confirm_issued> /link confirm <person.named> "
        )
        await chat.platform.say(zoe, "/link confirm")
        assert (await chat.wait_for_answers(zoe.chat_id, 3))[-1] == "<link.linked>"
        assert (await chat.wait_for_answers(eva.chat_id, 4))[-1].startswith("<link.now_with> <person.named> ")


async def test_a_failure_is_told_in_the_language_of_the_person() -> None:
    async def fail(_: str) -> str:
        raise RuntimeError("broken")

    async with open_chat(fail, texts=STRANGE) as chat:
        zoe = await chat.platform.user("Zoe", locale="qq")
        await chat.platform.say(zoe, "hello")
        assert await chat.wait_for_answers(zoe.chat_id) == ["<error.target_failed>"]


async def test_the_question_of_a_workflow_is_in_the_language_of_the_person() -> None:
    async with open_chat(flow, texts=STRANGE) as chat:
        zoe = Talk(chat, await chat.platform.user("Zoe", locale="qq"))
        assert await zoe("age") == "Your age?\n\n<question.please> <question.number>"
        assert await zoe("old") == "<question.first> <question.number>"
        assert await zoe("7") == "age 7.0"
        assert await zoe("yes") == "Your yes?"
        assert [button.text for button in (await zoe.next(0)).buttons] == ["<question.yes>", "<question.no>"]
        assert await zoe.press(await zoe.next(0), "<question.no>") == "bool False"
