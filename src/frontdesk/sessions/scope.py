"""Computes the name of the session that a message belongs to. Pure."""

from frontdesk.models.request import ConversationScope
from frontdesk.models.session import SessionName

SHARED = ""
"""The owner of what belongs to a whole group; no person's isolation key is ever empty."""


def build_tracked_name(
    scope: ConversationScope, *, owner: str, channel: str, conversation_id: str | None, group: bool
) -> SessionName:
    """Return the session name that the host tracks for a message.

    A direct chat always belongs to the person, on any channel. Only a group can have its own session, and only there
    can several people share one.
    """
    if not group or conversation_id is None or scope == "per_user":
        return SessionName(owner=owner, kind="tracked")
    if scope == "per_conversation":
        return SessionName(owner=SHARED, kind="tracked", channel=channel, conversation_id=conversation_id)
    return SessionName(owner=owner, kind="tracked", channel=channel, conversation_id=conversation_id)
