"""Chats, their members and their topics."""

from frontdesk_testing.telegram.errors import bad_request
from frontdesk_testing.telegram.methods.call import Call, Method
from frontdesk_testing.telegram.records import Chat, Json, Member, Topic

_COLORS = (7322096, 16766590, 13338331, 9367192, 16749490, 16478047)
_GIFTS = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")


def get_chat(call: Call) -> Json:
    """Return the full information about a chat."""
    chat = call.chat()
    more: Json = {"accent_color_id": 0, "max_reaction_count": 11}
    return {**chat.as_json(), **more, "accepted_gift_types": dict.fromkeys(_GIFTS, False)}


def get_member(call: Call) -> Json:
    """Return the status of a user in a chat."""
    chat = call.chat()
    user = call.world.users.get(call.given["user_id"])
    if user is None:
        raise bad_request("user not found")
    return (chat.members.get(user.id) or Member(user, "left")).as_json()


def get_administrators(call: Call) -> list[Json]:
    """Return the administrators of a group, without other bots."""
    chat = call.chat()
    if chat.kind == "private":
        raise bad_request("there are no administrators in the private chat")
    own = call.bot.user
    return [
        member.as_json()
        for member in chat.members.values()
        if member.is_admin and (not member.user.is_bot or member.user is own)
    ]


def get_member_count(call: Call) -> int:
    """Return the number of members of a chat."""
    return sum(member.is_present for member in call.chat().members.values())


def leave_chat(call: Call) -> bool:
    """Leave a group."""
    chat = call.chat(writing=True)
    if chat.kind == "private":
        raise bad_request("chat member status can't be changed in private chats")
    own = call.bot.user
    call.world.set_status(chat, own, own, "left")
    call.world.post(chat, own, {"left_chat_member": own.as_json()})
    return True


def _forum(call: Call) -> Chat:
    chat = call.chat(writing=True)
    if not chat.is_forum:
        raise bad_request("the chat is not a forum")
    if chat.kind != "private" and not chat.is_admin(call.bot.user.id):
        raise bad_request("not enough rights to manage topics")
    return chat


def _topic(call: Call) -> tuple[Chat, Topic]:
    chat = _forum(call)
    topic = chat.topics.get(call.given["message_thread_id"])
    if topic is None:
        raise bad_request("message thread not found")
    return chat, topic


def create_topic(call: Call) -> Json:
    """Begin a topic."""
    chat = _forum(call)
    color = call.get("icon_color", _COLORS[0])
    if color not in _COLORS:
        raise bad_request("wrong topic icon color specified")
    created = {"name": call.given["name"], "icon_color": color}
    topic = Topic(call.world.next_message_id(chat), call.given["name"], color)
    chat.topics[topic.thread_id] = topic
    _tell(call, chat, topic, {"forum_topic_created": created})
    return topic.as_json()


def edit_topic(call: Call) -> bool:
    """Rename a topic."""
    chat, topic = _topic(call)
    if (name := call.get("name")) == topic.name:
        raise bad_request("TOPIC_NOT_MODIFIED")
    if name:
        topic.name = name
        _tell(call, chat, topic, {"forum_topic_edited": {"name": name}})
    return True


def close_topic(call: Call) -> bool:
    """Close a topic: only administrators can write in it."""
    return _set_closed(call, True)


def reopen_topic(call: Call) -> bool:
    """Open a topic again."""
    return _set_closed(call, False)


def _set_closed(call: Call, closed: bool) -> bool:
    chat, topic = _topic(call)
    if topic.closed is closed:
        raise bad_request("TOPIC_NOT_MODIFIED")
    topic.closed = closed
    _tell(call, chat, topic, {"forum_topic_closed" if closed else "forum_topic_reopened": {}})
    return True


def _tell(call: Call, chat: Chat, topic: Topic, content: Json) -> None:
    call.world.post(chat, call.bot.user, content, thread_id=topic.thread_id, is_topic=True)


def delete_topic(call: Call) -> bool:
    """Delete a topic with all of its messages."""
    chat, topic = _topic(call)
    del chat.topics[topic.thread_id]
    for message in chat.messages.values():
        if message.is_topic and message.thread_id == topic.thread_id:
            message.deleted = True
    call.world.change()
    return True


METHODS: dict[str, Method] = {
    "getChat": get_chat,
    "getChatMember": get_member,
    "getChatAdministrators": get_administrators,
    "getChatMemberCount": get_member_count,
    "leaveChat": leave_chat,
    "createForumTopic": create_topic,
    "editForumTopic": edit_topic,
    "closeForumTopic": close_topic,
    "reopenForumTopic": reopen_topic,
    "deleteForumTopic": delete_topic,
}
