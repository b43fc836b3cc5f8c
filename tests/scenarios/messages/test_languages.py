"""The host's own commands speak the language of the person."""

from frontdesk.testing import EchoAgent
from tests.scenarios.messages.chat import open_chat


async def test_a_person_hears_commands_in_their_language() -> None:
    texts = {"fr": {"sessions.anew": "On recommence."}}
    async with open_chat(EchoAgent(), texts=texts) as chat:
        eva, zoe = await chat.platform.user("Eva", locale="de-AT"), await chat.platform.user("Zoe", locale="fr")
        ada = await chat.platform.user("Ada")
        for who, said in ((eva, "Wir fangen neu an."), (zoe, "On recommence."), (ada, "We start anew.")):
            await chat.platform.say(who, "/new")
            assert await chat.heard(who.chat_id) == [said]
        asked = {
            "/nichts": "/nichts kenne ich nicht. /help sagt, was ich verstehe.",
            "/sessions": "Es gibt noch kein Gespräch.",
            "/cancel": "Es gibt nichts abzubrechen.",
        }
        for number, (text, said) in enumerate(asked.items(), 2):
            await chat.platform.say(eva, text)
            assert (await chat.heard(eva.chat_id, number))[-1] == said
        await chat.platform.say(eva, "/help")
        assert "/new - Ein neues Gespräch beginnen" in (await chat.heard(eva.chat_id, 5))[-1]

        async def published() -> bool:
            return (await chat.platform.menu("", "de")).get("new") == "Ein neues Gespräch beginnen"

        await chat.platform.until(published)
        # What has no French sentence is English.
        await chat.platform.say(zoe, "/cancel")
        assert (await chat.heard(zoe.chat_id, 2))[-1] == "There is nothing to stop."
