"""People write, press, come and go, and a bot sees what it may see."""

import pytest

from frontdesk_testing.telegram import FakeTelegram, MovableClock, Upload
from tests.testing.telegram.starting import bot_at, telegram_and_bot

BUTTONS = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}, {"text": "Docs", "url": "https://a.b"}]]}


async def test_privacy_mode_hides_what_is_not_meant_for_the_bot() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        group = telegram.group("G", ann)
        await bot.updates()
        own = await bot.call("sendMessage", chat_id=group.id, text="hi")
        telegram.say(ann, "just talk", group)
        telegram.say(ann, "@frontdesk_bot you", group)
        telegram.say(ann, "@frontdesk_botany not you", group)
        telegram.say(ann, "/ask", group)
        telegram.say(ann, "/ask@other_bot", group)
        telegram.say(ann, "/ask@frontdesk_bot", group)
        telegram.say(ann, "a reply", group, reply_to=group.messages[own["message_id"]])
        mention = {"type": "text_mention", "offset": 0, "length": 3, "user": telegram.bot.user.as_json()}
        telegram.say(ann, "you there", group, entities=[mention])
        seen = [update["message"]["text"] for update in await bot.updates()]
        assert seen == ["@frontdesk_bot you", "/ask", "/ask@frontdesk_bot", "a reply", "you there"]


async def test_without_privacy_mode_or_as_an_administrator_a_bot_sees_all_but_other_bots() -> None:
    async with telegram_and_bot(FakeTelegram(privacy=False)) as (telegram, bot):
        ann = telegram.user("Ann")
        other = telegram.world.add_bot("Other", "other_bot")
        group = telegram.group("G", ann, bots=[telegram.bot, other])
        await bot.updates()
        async with bot_at(telegram, other.token) as second:
            await second.updates()
            telegram.say(ann, "talk", group)
            await second.call("sendMessage", chat_id=group.id, text="from a bot")
            assert [update["message"]["text"] for update in await bot.updates()] == ["talk"]
            assert await second.updates() == []
            telegram.promote(group, other.user, by=ann)
            telegram.say(ann, "more", group)
            assert [list(update)[-1] for update in await second.updates()] == ["my_chat_member", "message"]
            telegram.say(ann, "/general", group)
            assert [list(update)[-1] for update in await second.updates()] == ["message"]


async def test_a_command_without_a_name_is_for_the_bot_that_wrote_last() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        other = telegram.world.add_bot("Other", "other_bot")
        group = telegram.group("G", ann, bots=[telegram.bot, other])
        async with bot_at(telegram, other.token) as second:
            await second.call("sendMessage", chat_id=group.id, text="x")
            await bot.updates()
            await second.updates()
            telegram.say(ann, "/ask", group)
            assert await bot.updates() == []
            assert len(await second.updates()) == 1


async def test_an_anonymous_administrator_writes_in_the_name_of_the_group() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.user("Ann"), telegram.user("Bob")
        group = telegram.supergroup("G", ann, bob)
        telegram.promote(group, bob, by=ann, anonymous=True)
        await bot.updates()
        telegram.say(bob, "/ask", group)
        (update,) = await bot.updates()
        assert update["message"]["from"]["username"] == "GroupAnonymousBot"
        assert update["message"]["sender_chat"]["id"] == group.id
        assert telegram.shown(group).messages[-1].sender == "G"


async def test_members_come_and_go() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.user("Ann"), telegram.user("Bob")
        group = telegram.group("G", ann, bot_is_admin=True)
        await bot.call("getUpdates", allowed_updates=["message", "my_chat_member", "chat_member"])
        await bot.updates()
        telegram.join(group, bob)
        telegram.leave(group, bob)
        kinds = [list(update)[-1] for update in await bot.updates()]
        assert kinds == ["chat_member", "message", "message", "chat_member"]
        with pytest.raises(ValueError, match="not in this chat"):
            telegram.say(bob, "x", group)
        assert (await bot.call("getChatMember", chat_id=group.id, user_id=bob.id))["status"] == "left"
        assert await bot.call("getChatMemberCount", chat_id=group.id) == 2
        statuses = [member["status"] for member in await bot.call("getChatAdministrators", chat_id=group.id)]
        assert statuses == ["creator", "administrator"]
        assert await bot.read_refusal("getChatMember", chat_id=group.id, user_id=1) == "Bad Request: user not found"
        telegram.private(ann)
        told = await bot.read_refusal("getChatAdministrators", chat_id=ann.id)
        assert told == "Bad Request: there are no administrators in the private chat"
        assert (await bot.call("getChat", chat_id=group.id))["title"] == "G"
        assert "private chats" in await bot.read_refusal("leaveChat", chat_id=ann.id)


async def test_a_bot_hears_that_it_was_added_removed_blocked_and_unblocked() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        group = telegram.group("G", ann)
        telegram.kick(group, telegram.bot.user, by=ann)
        telegram.block(ann)
        with pytest.raises(ValueError, match="blocked"):
            telegram.say(ann, "x")
        telegram.unblock(ann)
        changes = [update["my_chat_member"] for update in await bot.updates() if "my_chat_member" in update]
        assert [change["new_chat_member"]["status"] for change in changes] == ["member", "kicked", "kicked", "member"]
        assert [change["chat"]["type"] for change in changes] == ["group", "group", "private", "private"]


async def test_a_group_becomes_a_supergroup_with_another_id() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        group = telegram.group("G", ann)
        await bot.updates()
        new = telegram.migrate(group, by=ann)
        first, second = await bot.updates()
        assert (first["message"]["chat"]["id"], first["message"]["migrate_to_chat_id"]) == (group.id, new.id)
        assert (second["message"]["chat"]["id"], second["message"]["migrate_from_chat_id"]) == (new.id, group.id)
        with pytest.raises(ValueError, match="become a supergroup"):
            telegram.say(ann, "x", group)
        telegram.say(ann, "/here", new)
        assert (await bot.updates())[0]["message"]["chat"]["type"] == "supergroup"


async def test_topics_of_a_forum() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        forum = telegram.supergroup("F", ann, forum=True)
        topic = telegram.topic(forum, "Plans", by=ann)
        await bot.updates()
        telegram.say(ann, "/in", forum, thread=topic.thread_id)
        telegram.say(ann, "/general", forum)
        inside, general = (update["message"] for update in await bot.updates())
        assert (inside["message_thread_id"], inside["is_topic_message"]) == (topic.thread_id, True)
        assert "message_thread_id" not in general
        place = {"chat_id": forum.id, "message_thread_id": topic.thread_id}
        await bot.call("sendChatAction", **place, action="typing")
        assert telegram.shown(forum, thread=topic.thread_id).actions == ("typing",)
        sent = await bot.call("sendMessage", **place, text="there")
        assert sent["is_topic_message"] is True
        assert telegram.shown(forum, thread=topic.thread_id).answers == ["there"]
        told = await bot.read_refusal("sendMessage", chat_id=forum.id, message_thread_id=999, text="x")
        assert told == "Bad Request: message thread not found"
        assert await bot.read_refusal("createForumTopic", chat_id=forum.id, name="x") == (
            "Bad Request: not enough rights to manage topics"
        )
        with pytest.raises(ValueError, match="no topic"):
            telegram.say(ann, "x", forum, thread=999)


async def test_a_bot_manages_topics_as_an_administrator() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        forum = telegram.supergroup("F", ann, forum=True, bot_is_admin=True)
        topic = await bot.call("createForumTopic", chat_id=forum.id, name="New")
        place = {"chat_id": forum.id, "message_thread_id": topic["message_thread_id"]}
        await bot.call("editForumTopic", **place, name="Newer")
        assert await bot.read_refusal("editForumTopic", **place, name="Newer") == "Bad Request: TOPIC_NOT_MODIFIED"
        await bot.call("closeForumTopic", **place)
        assert await bot.read_refusal("closeForumTopic", **place) == "Bad Request: TOPIC_NOT_MODIFIED"
        telegram.world.set_status(forum, ann, telegram.bot.user, "member")
        assert await bot.read_refusal("sendMessage", **place, text="x") == "Bad Request: TOPIC_CLOSED"
        telegram.promote(forum, telegram.bot.user, by=ann)
        await bot.call("reopenForumTopic", **place)
        await bot.call("sendMessage", **place, text="x")
        await bot.call("deleteForumTopic", **place)
        assert await bot.read_refusal("sendMessage", **place, text="x") == "Bad Request: message thread not found"
        plain = telegram.supergroup("S", ann)
        assert (
            await bot.read_refusal("createForumTopic", chat_id=plain.id, name="x")
            == "Bad Request: the chat is not a forum"
        )


async def test_replies_in_a_plain_supergroup_have_a_thread_that_is_no_topic() -> None:
    async with telegram_and_bot(FakeTelegram(privacy=False)) as (telegram, bot):
        ann = telegram.user("Ann")
        chat = telegram.supergroup("S", ann)
        await bot.updates()
        first = telegram.say(ann, "root", chat)
        telegram.say(ann, "reply", chat, reply_to=first)
        message = (await bot.updates())[-1]["message"]
        assert message["message_thread_id"] == first.message_id
        assert "is_topic_message" not in message
        told = await bot.read_refusal("sendMessage", chat_id=chat.id, message_thread_id=first.message_id, text="x")
        assert told == "Bad Request: message thread not found"


async def test_a_private_chat_can_have_topics() -> None:
    async with telegram_and_bot(FakeTelegram(topics=True)) as (telegram, bot):
        ann = telegram.user("Ann")
        chat = telegram.private(ann)
        assert (await bot.call("getMe"))["has_topics_enabled"] is True
        topic = await bot.call("createForumTopic", chat_id=ann.id, name="New")
        telegram.say(ann, "here", thread=topic["message_thread_id"])
        (update,) = await bot.updates()
        assert update["message"]["is_topic_message"] is True
        assert "is_forum" not in chat.as_json()


async def test_a_button_is_pressed_and_answered_in_time() -> None:
    async with telegram_and_bot(FakeTelegram(clock=MovableClock(running=False))) as (telegram, bot):
        ann = telegram.user("Ann")
        chat = telegram.private(ann)
        sent = await bot.call("sendMessage", chat_id=ann.id, text="?", reply_markup=BUTTONS)
        message = chat.messages[sent["message_id"]]
        pressed = telegram.press(ann, message, "Yes")
        (update,) = await bot.updates()
        query = update["callback_query"]
        assert (query["data"], query["message"]["text"], query["from"]["id"]) == ("y", "?", ann.id)
        await bot.call("answerCallbackQuery", callback_query_id=query["id"], text="Done", show_alert=True)
        assert (pressed.answered, pressed.text, pressed.alert) == (True, "Done", True)
        with pytest.raises(ValueError, match="there is no button 'Docs'"):
            telegram.press(ann, message, "Docs")
        late = telegram.press(ann, message, "y")
        telegram.clock.advance(150)
        told = await bot.read_refusal("answerCallbackQuery", callback_query_id=late.id)
        assert told == ("Bad Request: query is too old and response timeout expired or query ID is invalid")
        telegram.delete(message)
        telegram.press(ann, message, "y")
        (update,) = await bot.updates()
        assert update["callback_query"]["message"]["date"] == 0


async def test_albums_forwards_edits_and_deletes() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.user("Ann"), telegram.user("Bob")
        album = telegram.send_album(ann, [("photo", Upload(b"1")), ("photo", Upload(b"2"))], caption="both")
        said = telegram.say(bob, "secret")
        telegram.forward(ann, said)
        telegram.edit(said, "changed")
        telegram.edit(album[0], "new caption")
        telegram.delete(said)
        updates = await bot.updates()
        assert [list(update)[-1] for update in updates] == ["message"] * 4 + ["edited_message"] * 2
        groups = {update["message"].get("media_group_id") for update in updates[:2]}
        assert groups == {album[0].media_group_id}
        assert updates[3]["message"]["forward_origin"]["sender_user"]["id"] == bob.id
        assert updates[5]["edited_message"]["caption"] == "new caption"
        assert telegram.shown(telegram.private(bob)).texts == []


async def test_a_link_starts_a_chat_with_its_payload() -> None:
    async with telegram_and_bot() as (telegram, bot):
        telegram.start(telegram.user("Ann", language_code="de"), "join_42")
        (update,) = await bot.updates()
        assert update["message"]["text"] == "/start join_42"
        assert update["message"]["from"]["language_code"] == "de"
        with pytest.raises(ValueError, match="64"):
            telegram.start(telegram.user("Bob"), "a b")


async def test_commands_are_offered_by_scope_and_language() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann, bob = telegram.user("Ann", language_code="de-AT"), telegram.user("Bob", language_code="en")
        group = telegram.group("G", ann, bob)

        def named(*names: str) -> list[dict[str, str]]:
            return [{"command": name, "description": name.title()} for name in names]

        await bot.call("setMyCommands", commands=named("help"))
        await bot.call("setMyCommands", commands=named("hilfe"), language_code="de")
        assert telegram.menu(ann) == {"hilfe": "Hilfe"}
        assert telegram.menu(bob) == {"help": "Help"}
        admins = {"type": "all_chat_administrators"}
        await bot.call("setMyCommands", commands=named("ban"), scope=admins)
        await bot.call(
            "setMyCommands",
            commands=named("rules"),
            scope={"type": "chat_member", "chat_id": group.id, "user_id": bob.id},
        )
        assert telegram.menu(ann, group) == {"ban": "Ban"}
        assert telegram.menu(bob, group) == {"rules": "Rules"}
        assert await bot.call("getMyCommands", scope=admins) == named("ban")
        await bot.call("deleteMyCommands", scope=admins)
        assert await bot.call("getMyCommands", scope=admins) == []
        assert telegram.menu(ann, group) == {"hilfe": "Hilfe"}
        assert await bot.read_refusal("setMyCommands", commands=named("Help")) == "Bad Request: BOT_COMMAND_INVALID"
        assert (
            await bot.read_refusal("setMyCommands", commands=named("a") * 101) == "Bad Request: BOT_COMMANDS_TOO_MUCH"
        )
        assert await bot.read_refusal("setMyCommands", commands=[], language_code="deu") == (
            "Bad Request: invalid language code specified"
        )
        unknown = {"type": "chat", "chat_id": 5}
        assert await bot.read_refusal("setMyCommands", commands=[], scope=unknown) == "Bad Request: chat not found"
