"""Tells what follows from a platform's response that is no success. Pure."""

import math
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.kit.outbound.platform import PlatformResponse

LONGEST_WAIT = 86_400.0


def push_error_from(
    response: PlatformResponse, *, code: str | None = None, everywhere: bool | None = None
) -> PushError:
    """Make the error for a response; `code` is the platform's own, `everywhere` whether a wait is for the whole bot.

    429 is a wait, 408 and 504 leave open whether the request arrived, other 4xx and redirects are refused for good, and
    the rest of 5xx may be tried again. Nothing of the body is in the text.
    """
    status = response.status
    named = code or f"status_{status}"
    text = f"The platform answered {status}, {named}."
    if status == 429:
        whole = _is_global(response) if everywhere is None else everywhere
        return PushLimitedError(text, code=named, retry_after=retry_after_of(response), everywhere=whole)
    if status in (408, 504):
        return PushUnknownError(text, code=named)
    if status < 500:
        return PushRefusedError(text, code=named)
    return PushError(text, code=named, retry_after=retry_after_of(response), everywhere=bool(everywhere))


def retry_after_of(response: PlatformResponse) -> float | None:
    """Return how many seconds a response asks us to wait; `None` if it does not say.

    The header counts in seconds or as a date; in JSON it is `retry_after`, at the top, under `parameters` or under
    `error`.
    """
    named = _seconds(response.headers.get("retry-after"), response.headers.get("date"))
    if named is not None:
        return named
    body = _object(response.body)
    for place in (body, body.get("parameters"), body.get("error")):
        if isinstance(place, dict) and (wait := _bounded(place.get("retry_after"))) is not None:  # pyright: ignore[reportUnknownMemberType]
            return wait
    return None


def _seconds(given: str | None, date: str | None) -> float | None:
    if given is None:
        return None
    try:
        return _bounded(float(given))
    except ValueError:
        pass
    try:
        # By the platform's own clock, which ours need not agree with.
        until, now = parsedate_to_datetime(given), parsedate_to_datetime(date or "")
        return _bounded(max((until - now).total_seconds(), 0.0))
    except (ValueError, TypeError):
        return None


def _bounded(wait: Any) -> float | None:
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not math.isfinite(wait) or wait < 0:
        return None
    return min(float(wait), LONGEST_WAIT)


def _is_global(response: PlatformResponse) -> bool:
    header = response.headers.get("x-ratelimit-global", "").lower() == "true"
    return header or _object(response.body).get("global") is True


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
