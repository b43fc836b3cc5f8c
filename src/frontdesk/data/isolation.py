"""Whose memory a run may touch, for code that runs inside the target."""

from frontdesk.data.noun import Noun

ISOLATION_HEADER_USER = "x-agent-user-isolation-key"
ISOLATION_HEADER_CHAT = "x-agent-chat-isolation-key"


class IsolationKeys(Noun, frozen=True, kw_only=True):
    """The keys that part one person's, and one chat's, data from another's."""

    user_key: str | None = None
    chat_key: str | None = None
    call_id: str | None = None
    """What a platform calls this request, to be sent along with calls back to it."""
