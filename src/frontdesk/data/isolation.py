"""Whose memory a run may touch, for code that runs inside the target."""

from frontdesk.data.noun import Noun


class IsolationKeys(Noun, frozen=True, kw_only=True):
    """The keys that part one person's, and one chat's, data from another's."""

    user_key: str | None = None
    chat_key: str | None = None
