"""Names a person to another."""

from frontdesk.data.identity import ChannelIdentity
from frontdesk.errors import Phrase
from frontdesk.kit.chat.text import one_line
from frontdesk.kit.chat.wording import ENGLISH_WORDING

_LONGEST = 40
_MARKS = str.maketrans("“”„»«", "     ")
"""The quotation marks of the languages that come with the host."""


def person_phrase(identity: ChannelIdentity) -> Phrase:
    """Describe an identity, such as `"Ann" (id 42) on telegram`.

    People choose their names themselves. So a name is short and stands between quotation marks that it can't hold, and
    the id, which they can't choose, stands beside it.
    """
    name, native_id = _plain(identity.attributes.get("name")), _plain(identity.native_id)
    if not name:
        return Phrase("person.unnamed", {"id": native_id, "channel": identity.channel})
    return Phrase("person.named", {"name": name, "id": native_id, "channel": identity.channel})


def told_as(identity: ChannelIdentity) -> str:
    """Describe an identity in English."""
    return ENGLISH_WORDING.say_phrase(person_phrase(identity))


def _plain(text: object) -> str:
    if not isinstance(text, str):
        return ""
    words = one_line(text.translate(_MARKS))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
