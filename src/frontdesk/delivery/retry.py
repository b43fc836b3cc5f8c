"""Decides what follows a push that failed, or whose outcome is unknown. Pure."""

from hashlib import sha256
from typing import Literal

from frontdesk.abc.runner import RetryPolicy
from frontdesk.data.noun import Value
from frontdesk.errors import PushError

NEVER = float("inf")


class Retry(Value, frozen=True, kw_only=True):
    """Try again, after a number of seconds."""

    after: float
    counts: bool = True
    """Whether the try counts as an attempt; one that the platform has deferred does not."""


class Dead(Value, frozen=True, kw_only=True):
    """Do not try again."""

    reason: str


class Unknown(Value, frozen=True, kw_only=True):
    """The part may have arrived."""


Next = Retry | Dead | Unknown


def decide(error: PushError, *, attempts: int, policy: RetryPolicy, jitter: float, left: float = NEVER) -> Next:
    """Decide what follows from an error; `jitter` is between 0 and 1, and in `left` seconds all tries end.

    A delay that the platform asks for is obeyed, however long it is. It costs no attempt: a flood wait tells nothing
    about whether the part can be delivered.
    """
    if error.permanent:
        return Dead(reason=error.code)
    if error.unknown:
        return Unknown()
    if error.retry_after is not None:
        after = max(error.retry_after, 0.0) + jitter * policy.first_delay * 0.1
        return Retry(after=after, counts=False) if after <= left else Dead(reason=f"{error.code}: too old")
    if attempts >= policy.attempts:
        return Dead(reason=f"{error.code}: {attempts} attempts")
    after = delay(policy, attempts, jitter)
    return Retry(after=after) if after <= left else Dead(reason=f"{error.code}: too old")


def delay(policy: RetryPolicy, attempts: int, jitter: float) -> float:
    """Return the delay after so many attempts: between half of the policy's delay and all of it."""
    return policy.delay(attempts) * (0.5 + 0.5 * jitter)


def after_unknown(
    *, repeatable: bool, can_ask: bool, attempts: int, policy: RetryPolicy
) -> Literal["ask", "repeat", "leave"]:
    """Decide what to do about a part that may have arrived.

    The platform is asked if it can be. Else the part is sent again only if a second one does no harm. Otherwise it is
    left as it is, for people to see.
    """
    if attempts >= policy.attempts:
        return "leave"
    if can_ask:
        return "ask"
    return "repeat" if repeatable else "leave"


def spread(delivery_id: str, attempts: int) -> float:
    """Return a pseudo-random number between 0 and 1, the same for the same try of the same delivery."""
    digest = sha256(f"{delivery_id} {attempts}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56
