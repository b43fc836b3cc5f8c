"""Changes messages that were sent."""

from contextlib import suppress

import msgspec

from frontdesk.errors import PushNotEditableError
from frontdesk.testing.messages.client import Part, PlatformClient
from frontdesk.testing.messages.live import read_handle
from frontdesk.testing.messages.places import spot_of
from frontdesk.testing.messages.wire import Delete, Edit, Send


async def change(client: PlatformClient, part: Part, replaces: str) -> str:
    """Change or remove a message as a part says; return its id."""
    message_id = read_handle(replaces).message_id
    chat_id, _, user_id = spot_of(part.identity, part.conversation_id)
    delete = Delete(chat_id=chat_id, user_id=user_id, message_id=message_id)
    if part.action == "retract":
        await client.delete(delete)
        return message_id
    content = Send() if part.content is None else msgspec.convert(part.content, Send)
    if content.media:
        # A text can't become a picture: it goes, and the picture is sent as a message of its own.
        with suppress(PushNotEditableError):
            await client.delete(delete)
        raise PushNotEditableError("A message can't get other media.")
    buttons = () if part.action == "settle" else content.buttons
    edit = Edit(chat_id=chat_id, user_id=user_id, message_id=message_id, text=content.text, buttons=buttons)
    return (await client.edit(edit)).message_id
