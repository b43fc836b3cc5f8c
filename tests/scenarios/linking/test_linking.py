"""A person links two chats by a code: over real platforms, from the first word to the last."""

from frontdesk_testing import EchoAgent
from tests.scenarios.linking.pair import code_in, open_pair


def list_asked(agent: EchoAgent) -> list[str]:
    """What the user has said, as the last turn saw it."""
    return [one.text for one in agent.seen[-1] if one.role == "user"]


async def test_one_conversation_on_two_platforms_and_two_again() -> None:
    agent = EchoAgent()
    async with open_pair(agent) as pair:
        red, blue = pair.red, pair.blue
        await red.says("I am on red")
        await blue.says("I am on blue")
        await pair.link()
        await blue.says("and now on blue again")
        # The side that issued the code goes on.
        assert list_asked(agent) == ["I am on red", "and now on blue again"]
        await red.says("together")
        assert list_asked(agent)[-2:] == ["and now on blue again", "together"]
        assert (await red.says("/whoami")).endswith("on red. Linked with blue.")
        said = len(await red.all())
        assert (await blue.says("/unlink")).startswith("This account is no longer linked.")
        assert (await red.next(said + 1)).endswith("on blue is no longer linked with this account.")
        await blue.says("alone")
        # What was before the link is there again.
        assert list_asked(agent) == ["I am on blue", "alone"]
        await red.says("alone too")
        assert list_asked(agent)[-2:] == ["together", "alone too"]


async def test_a_stranger_with_the_code_is_named_and_rejected() -> None:
    async with open_pair(EchoAgent()) as pair:
        red, blue = pair.red, pair.blue
        mallory = await blue.platform.user("Mallory")
        code = code_in(await red.says("/link"))
        await blue.says(f"/link {code}", by=mallory)
        await blue.says("/link confirm", by=mallory)
        asked = await red.next(2)
        assert asked.startswith("“Mallory” (id ")
        assert "on blue has entered your code" in asked
        assert await red.says("/link reject") == "Nothing was linked."
        refused = await blue.platform.wait_for_answers(mallory.chat_id, 3)
        assert refused[-1].text.endswith("has refused to be linked with this account.")
        assert (await red.says("/whoami")).endswith("Not linked.")


async def test_who_entered_a_strangers_code_was_linked_by_doing_nothing() -> None:
    async with open_pair(EchoAgent()) as pair:
        red, blue = pair.red, pair.blue
        mallory = await red.platform.user("Mallory")
        code = code_in(await red.says("/link", by=mallory))
        shown = await blue.says(f"/link {code}")
        assert shown.startswith(f"This code is from “Mallory” (id {mallory.user_id}) on red.")
        # Ann does nothing.
        assert await red.says("/link confirm", by=mallory) == "There is nothing to confirm."
        assert (await blue.says("/whoami")).endswith("Not linked.")
        assert (await red.says("/whoami", by=mallory)).endswith("Not linked.")


async def test_who_entered_a_strangers_code_refuses_and_the_stranger_can_do_nothing() -> None:
    async with open_pair(EchoAgent()) as pair:
        red, blue = pair.red, pair.blue
        mallory = await red.platform.user("Mallory")
        code = code_in(await red.says("/link", by=mallory))
        await blue.says(f"/link {code}")
        assert await blue.says("/link reject") == "Nothing was linked."
        told = (await red.platform.wait_for_answers(mallory.chat_id, 2))[1].text
        assert told.startswith("Somebody has entered your code and refused")
        assert "Ann" not in told
        assert await red.says("/link confirm", by=mallory) == "There is nothing to confirm."
        assert await blue.says(f"/link {code}") == "This code is invalid. Ask for a new one."
        assert (await blue.says("/whoami")).endswith("Not linked.")


async def test_who_agreed_changes_their_mind_before_the_other_confirms() -> None:
    async with open_pair(EchoAgent()) as pair:
        red, blue = pair.red, pair.blue
        code = code_in(await red.says("/link"))
        await blue.says(f"/link {code}")
        await blue.says("/link confirm")
        assert "has entered your code" in await red.next(2)
        assert await blue.says("/link no") == "Nothing was linked."
        assert (await red.next(3)).endswith("on blue has refused to be linked with this account.")
        assert await red.says("/link confirm") == "There is nothing to confirm."
        assert (await blue.says("/whoami")).endswith("Not linked.")


async def test_two_of_the_same_name_are_told_apart() -> None:
    async with open_pair(EchoAgent()) as pair:
        red, blue = pair.red, pair.blue
        twin = await blue.platform.user("Ann")
        code = code_in(await red.says("/link"))
        await blue.says(f"/link {code}", by=twin)
        await blue.says("/link confirm", by=twin)
        asked = await red.next(2)
        assert f"(id {twin.user_id})" in asked
        assert blue.person.user_id not in asked


async def test_in_a_group_no_code_is_shown() -> None:
    async with open_pair(EchoAgent()) as pair:
        red = pair.red
        group = await red.platform.group("Friends", red.person)
        here = await red.says("/link@desk", chat_id=group.chat_id)
        assert here == "I have answered you in our direct chat."
        assert code_in(await red.next(1))
        assert "code" not in " ".join(await red.all(group.chat_id))


async def test_the_commands_are_in_the_menu() -> None:
    async with open_pair(EchoAgent()) as pair:
        platform = pair.red.platform

        async def published() -> bool:
            return bool((await platform.state()).commands)

        await platform.until(published)
        shown = {one["name"] for one in (await platform.state()).commands}
        assert {"link", "unlink", "whoami"} <= shown
        assert "connect" not in shown
