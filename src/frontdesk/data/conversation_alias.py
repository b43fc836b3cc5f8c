"""Names of a conversation that has moved, such as a group that became another kind of group. What decides is pure."""

from frontdesk.data.noun import Value


class ConversationAlias(Value, frozen=True, kw_only=True):
    """One of the names of a conversation."""

    name: str
    first_name: str
    """The name by which the host knows the conversation: its sessions, events and deliveries."""
    current_name: str
    """The name by which the platform knows it now."""
    next_name: str | None = None
    """The name that followed this one; none, if it is the current one."""


class AliasMerge(Value, frozen=True, kw_only=True):
    """The change that an alias makes: all names of two conversations become those of one."""

    old: str
    new: str
    first_name: str
    current_name: str
    merged_first_name: str
    """The first name of what the new name stood for."""


def merge_aliases(
    old: str, new: str, known_old: ConversationAlias | None, known_new: ConversationAlias | None
) -> AliasMerge | None:
    """Return what changes when a conversation is called by a new name; `None` if that is known.

    A conversation that would go back to one of its names, or on to two, is a `ValueError`.
    """
    if known_old is not None and known_old.next_name == new:
        return None
    if known_old is not None and known_old.next_name is not None:
        raise ValueError("the conversation has moved to another name already")
    first = old if known_old is None else known_old.first_name
    merged = new if known_new is None else known_new.first_name
    if first == merged:
        raise ValueError("the new name is one that the conversation had before")
    current = new if known_new is None else known_new.current_name
    return AliasMerge(old=old, new=new, first_name=first, current_name=current, merged_first_name=merged)
