"""Branches of a conversation: an earlier message said in another way, with what came before it in common."""

from base64 import b64encode
from collections.abc import Sequence

from frontdesk.abc.channel import ChannelContext
from frontdesk.channels.web.client import Mailbox, Spot
from frontdesk.channels.web.head import Chat, Head
from frontdesk.channels.web.wire import SentFile, ShownFile
from frontdesk.data.identity import Caller
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError
from frontdesk.kit.aio.large import run_sized

_MOST_LOOKED_AT = 200
"""The number of messages among which the run is looked for behind which a branch begins."""
_GONE = "A file of that message is no longer there; leave it out, or attach it again."


def need_room(head: Head, most: int) -> None:
    """Refuse another conversation of a visitor who has as many as there may be."""
    if len(head.chats) >= most:
        raise ConflictError("There are too many conversations; delete one first.", code="too_many_chats")


async def begin_branch(mailbox: Mailbox, spot: Spot, chat_id: str, now: float, most: int) -> Chat:
    """Make the branch on which a message takes the place of an earlier one, once for each id; return it."""
    visitor, number = spot.visitor, spot.number
    head = await mailbox.head(visitor)
    known = head.chat(chat_id)
    if known is not None:
        return known
    said = await mailbox.peek(await mailbox.held(spot))
    if said is None or said.role != "user" or said.state == "removed":
        raise NotFoundError("There is no such message of yours.", param="instead_of")
    base = head.holder(spot.chat, number - 1) if number > 1 else head.root(spot.chat)
    branch = Chat(
        id=chat_id,
        at=now,
        born=now,
        base=base,
        shared=number - 1,
        last=number - 1,
        run=await _run_before(mailbox, head, spot),
    )

    def add(head: Head) -> Head | None:
        if head.chat(chat_id) is not None:
            return None
        if head.chat(base) is None:
            raise NotFoundError("There is no such conversation.", param="conversation")
        need_room(head, most)
        return head.with_chat(branch)

    await mailbox.change(visitor, add)
    return branch


async def kept_files(
    context: ChannelContext, mailbox: Mailbox, caller: Caller, spot: Spot, ids: Sequence[str]
) -> list[tuple[ShownFile, SentFile]]:
    """Return files of an earlier message, as they are shown and as they are sent again."""
    said = await mailbox.peek(await mailbox.held(spot)) if ids else None
    known = {file.id: file for file in (() if said is None else said.files)}
    kept: list[tuple[ShownFile, SentFile]] = []
    for file_id in dict.fromkeys(ids):
        if file_id not in known:
            raise InvalidRequestError(_GONE, param="keep", code="file_not_kept")
        try:
            stored, data = await context.get_file(caller, file_id)
        except NotFoundError:
            raise InvalidRequestError(_GONE, param="keep", code="file_not_kept") from None
        encoded = (await run_sized(len(data), b64encode, data)).decode()
        kept.append((known[file_id], SentFile(media_type=stored.media_type, data=encoded, name=stored.name)))
    return kept


async def drop_empty(mailbox: Mailbox, spot: Spot) -> None:
    """Remove a branch on which nothing was said, because its message was not taken."""
    chat = (await mailbox.head(spot.visitor)).chat(spot.chat)
    if chat is not None and chat.base and chat.last == chat.shared:
        await mailbox.drop(spot)


async def _run_before(mailbox: Mailbox, head: Head, spot: Spot) -> str:
    """Return the last run of the page that has answered before a message; empty if nothing was answered."""
    first = max(1, spot.number - _MOST_LOOKED_AT)
    for number in range(spot.number - 1, first - 1, -1):
        message = await mailbox.peek(Spot(spot.visitor, head.holder(spot.chat, number), number))
        if message is not None and message.run:
            return message.run
    if first > 1:
        raise ConflictError("Nothing was answered for too long before this message.", code="branch_not_possible")
    return ""
