"""Events and results to try things with."""

from typing import Any

from hypothesis import strategies as st

from frontdesk.chat import inbound
from frontdesk.chat.messages import BotIdentity, InboundMessage, OutboundMessage
from frontdesk.chat.rendering import Renderer
from frontdesk.models.delivery import InboxItem
from frontdesk_testing.messages.parse import parse_inbound, slim
from frontdesk_testing.messages.wire import Chat, Click, Event, Me, Media, Mention, MessageIn, ReplyTo, User

ME = Me(user_id="bot-1", handle="desk", text_limit=4096)
IDS = st.text(min_size=1, max_size=12)


def to_item(event: Event, *, me: Me, now: float, **rules: Any) -> InboxItem | None:
    """Make the inbox item of an event as the channel does."""
    bot = BotIdentity(id=me.user_id, name=me.handle)
    message = parse_inbound(event, bot)
    if not isinstance(message, InboundMessage):
        return None
    return inbound.to_item(message, inbound.InboundRules(**rules), bot, now=now, payload=lambda: slim(event))


def get_components(result: Any, limit: int) -> list[OutboundMessage]:
    """Return the messages of a result as the channel does."""
    return Renderer(dialect=None, limit=limit).answer(result)


def event(text: str = "hello", *, kind: Any = "direct", type: str = "message", **fields: Any) -> Event:
    """Somebody has said something."""
    at = text.find("@desk")
    mentions = (Mention(user_id=ME.user_id, offset=at, length=5),) if at >= 0 else ()
    message = MessageIn(message_id="m-1", text=text, mentions=mentions, **fields)
    sender = User(user_id="u-ada", name="Ada")
    return Event(
        event_id="e-1", number=1, type=type, at=1.0, chat=Chat(chat_id="c-1", kind=kind), sender=sender, message=message
    )


MEDIA = st.builds(
    Media,
    media_type=st.one_of(st.text(max_size=12), st.just("image/png")),
    data=st.one_of(st.text(max_size=12), st.just("aGk=")),
)
MESSAGES = st.builds(
    MessageIn,
    message_id=IDS,
    media=st.lists(MEDIA, max_size=2).map(tuple),
    text=st.one_of(st.text(), st.from_regex(r"/\w{1,8}(@\w{1,8})?( \w+)?", fullmatch=True)),
    mentions=st.lists(
        st.builds(
            Mention, user_id=st.sampled_from(["bot-1", "u"]), offset=st.integers(-5, 50), length=st.integers(-5, 50)
        ),
        max_size=3,
    ).map(tuple),
    reply_to=st.none() | st.builds(ReplyTo, message_id=IDS, user_id=st.sampled_from(["bot-1", "u"])),
    album_id=st.text(max_size=5),
)
EVENTS = st.builds(
    Event,
    event_id=IDS,
    number=st.integers(1, 9),
    type=st.sampled_from(["message", "edit", "click", "joined"]),
    at=st.floats(0, 2e9),
    chat=st.builds(Chat, chat_id=IDS, kind=st.sampled_from(["direct", "group"]), title=st.text(max_size=5)),
    sender=st.builds(User, user_id=IDS, name=st.text(max_size=9), bot=st.booleans()),
    message=st.none() | MESSAGES,
    click=st.none() | st.builds(Click, callback_id=IDS, message_id=IDS, data=st.text(max_size=9)),
)
