"""A person's view of a chat."""

from dataclasses import dataclass

from frontdesk_testing.telegram.files import MEDIA_KINDS
from frontdesk_testing.telegram.methods.rich import extract_text
from frontdesk_testing.telegram.privacy import is_service
from frontdesk_testing.telegram.records import Chat, Json, Message

_OTHER_KINDS = ("location", "contact", "poll", "venue", "dice")


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as a person sees it."""

    message_id: int
    sender: str
    """The name of the sender; the title of the group for an anonymous administrator."""
    sender_id: int
    by_bot: bool
    text: str
    """The text, or the caption."""
    entities: tuple[Json, ...]
    buttons: tuple[tuple[str, ...], ...]
    """The rows of labels under it."""
    media: str
    """The kind of its media, such as `photo`; empty if it has none."""
    reply_to: int | None
    thread_id: int | None
    """The topic that it is in."""
    edited: bool
    service: bool
    """Whether it says what happened in the chat."""
    album: str
    blocks: tuple[Json, ...] = ()
    """The blocks of a rich message, whose words are the text."""
    chat_id: int = 0


@dataclass(frozen=True, slots=True)
class Transcript:
    """A chat as a person sees it: with all edits, and without what was deleted."""

    messages: tuple[ShownMessage, ...]
    actions: tuple[str, ...]
    """The actions of bots at present, such as `typing`."""
    drafts: tuple[str, ...]
    """The partial messages that bots are streaming."""

    @property
    def texts(self) -> list[str]:
        """Return all texts, in order."""
        return [message.text for message in self.messages if not message.service]

    @property
    def answers(self) -> list[str]:
        """Return the texts of bots, in order."""
        return [message.text for message in self.messages if message.by_bot and not message.service]


def transcript(chat: Chat, now: float, thread_id: int | None = None) -> Transcript:
    """Return the visible messages of a chat, or of one of its topics."""
    shown = [message for message in chat.messages.values() if not message.deleted]
    topic = [message for message in shown if thread_id is None or message.thread_id == thread_id]
    actions = [
        action for (_, thread), (action, until) in chat.actions.items() if until > now and thread_id in (None, thread)
    ]
    drafts = [
        draft.text for (_, thread), draft in chat.drafts.items() if draft.until > now and thread_id in (None, thread)
    ]
    return Transcript(tuple(map(_render_message, topic)), tuple(actions), tuple(drafts))


def _render_message(message: Message) -> ShownMessage:
    content, markup = message.content, message.markup or {}
    kinds = [kind for kind in (*MEDIA_KINDS, *_OTHER_KINDS) if kind in content]
    reply = message.reply_to
    return ShownMessage(
        message_id=message.message_id,
        sender=message.chat.title if message.anonymous else message.sender.first_name,
        sender_id=message.sender.id,
        by_bot=message.sender.is_bot,
        text=content.get("text") or content.get("caption") or extract_text(content),
        entities=tuple(content.get("entities") or content.get("caption_entities") or ()),
        buttons=tuple(tuple(button["text"] for button in row) for row in markup.get("inline_keyboard", ())),
        media="animation" if "animation" in kinds else "".join(kinds[:1]),
        reply_to=None if reply is None or reply.deleted else reply.message_id,
        thread_id=message.thread_id if message.is_topic else None,
        edited=message.edit_date is not None,
        service=is_service(content),
        album=message.media_group_id,
        blocks=tuple(content.get("rich_message", {}).get("blocks", ())),
        chat_id=message.chat.id,
    )
