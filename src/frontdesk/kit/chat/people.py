"""Names a person to another."""

from frontdesk.data.identity import ChannelIdentity
from frontdesk.kit.chat.text import one_line

_LONGEST = 40


def told_as(identity: ChannelIdentity) -> str:
    """Describe an identity, such as `"Ann" (id 42) on telegram`.

    People choose their names themselves. So a name is short and stands between quotation marks that it can't hold, and
    the id, which they can't choose, stands beside it.
    """
    name, native_id = _plain(identity.attributes.get("name")), _plain(identity.native_id)
    return f"“{name}” (id {native_id}) on {identity.channel}" if name else f"{native_id} on {identity.channel}"


def _plain(text: object) -> str:
    if not isinstance(text, str):
        return ""
    words = one_line(text.replace("“", " ").replace("”", " "))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
