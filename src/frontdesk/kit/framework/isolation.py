"""The keys of a trusted platform, for code that runs inside the target.

They come and go with the turn that the present task works on, so there is nothing to reset when a run ends, whichever
way it ends: `current_turn` is taken away, in streams and in the background too.
"""

from contextvars import ContextVar, Token

from frontdesk.data.isolation import IsolationKeys
from frontdesk.kit.aio.current import current_turn

_set_by_hand: ContextVar[IsolationKeys | None] = ContextVar("frontdesk_isolation_keys", default=None)


def get_current_isolation_keys() -> IsolationKeys | None:
    """Return the keys of the present run; `None` outside of one, and where no trusted platform has sent any."""
    own = _set_by_hand.get()
    if own is not None:
        return own
    turn = current_turn.get()
    return None if turn is None else turn.admitted.isolation


def set_current_isolation_keys(keys: IsolationKeys) -> Token[IsolationKeys | None]:
    """Set keys for the present context, for code of the operator's own; to be reset with the token."""
    return _set_by_hand.set(keys)


def reset_current_isolation_keys(token: Token[IsolationKeys | None]) -> None:
    """Undo what `set_current_isolation_keys` has set."""
    _set_by_hand.reset(token)
