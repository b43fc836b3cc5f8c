"""The isolation keys of a run, for code that runs inside the target."""

from frontdesk.data.noun import Noun

ISOLATION_HEADER_USER = "x-agent-user-isolation-key"
ISOLATION_HEADER_CHAT = "x-agent-chat-isolation-key"


class IsolationKeys(Noun, frozen=True, kw_only=True):
    """The keys that separate the data of one person, and of one chat, from others."""

    user_key: str | None = None
    chat_key: str | None = None
    call_id: str | None = None
    """The platform's id of this request, to be sent with calls back to it."""
