"""The choice of the session that a message belongs to. Pure."""

from frontdesk.data.request import ConversationScope
from frontdesk.data.session import SessionName

SHARED = ""
"""The owner of what belongs to a whole group; no person's isolation key is ever empty."""


def tracked_name(
    scope: ConversationScope, *, owner: str, channel: str, conversation_id: str | None, group: bool
) -> SessionName:
    """Return the name of the session that the host tracks for a message.

    A direct chat always belongs to the person, on whichever channel it is. Only a group can have a session of its own,
    and only there can several people share one.
    """
    if not group or conversation_id is None or scope == "per_user":
        return SessionName(owner=owner, kind="tracked")
    if scope == "per_conversation":
        return SessionName(owner=SHARED, kind="tracked", channel=channel, conversation_id=conversation_id)
    return SessionName(owner=owner, kind="tracked", channel=channel, conversation_id=conversation_id)
