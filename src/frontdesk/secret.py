"""`Secret`, which is never printed, and the redaction of secrets in texts."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NoReturn, cast
from weakref import WeakValueDictionary

REDACTED: Final = "[redacted]"
MIN_DISPLAYED_LENGTH: Final = 8
"""The length from which on a secret is looked for in texts: a shorter one would be found in ordinary words."""

# By identity, because two secrets may have the same value, and each is removed when it is freed.
_known: WeakValueDictionary[int, "Secret"] = WeakValueDictionary()


class Secret:
    """A text that only `reveal` returns: not `repr`, `str`, a format, JSON or a pickle.

    While the object exists, its value is removed from all log output (see `frontdesk.telemetry.redaction`).
    """

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: "str | Secret") -> None:
        if isinstance(value, Secret):
            value = value.reveal()
        if not value:
            raise ValueError("a secret must not be empty")
        self._value = value
        _known[id(self)] = self

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({REDACTED})"

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, form: str) -> str:
        return REDACTED

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, _: Any) -> "Secret":
        return self

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError("a Secret can't be pickled")


def reveal(value: str | Secret) -> str:
    """Return the text of a `Secret`, or a plain text unchanged."""
    return value.reveal() if isinstance(value, Secret) else value


_WORDS = r"api[_-]?key|access[_-]?token|refresh[_-]?token|id[_-]?token|client[_-]?secret|password|passwd|secret"
# Callers write some of what is logged, so every pattern takes linear time: either it fails within a few characters,
# or it consumes all that it has looked at.
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    # user:password@host
    (re.compile(r"(://)[^\s/@\"'<>]++@"), rf"\1{REDACTED}@"),
    # ?code=..., &token=...
    (
        re.compile(
            rf"([?&](?:code|token|state|key|sig|signature|ticket|nonce|assertion|{_WORDS})=)[^&\s\"'#<>]++",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    # Authorization: ..., in headers, dictionaries and lists of pairs
    (
        re.compile(
            rf"\b((?:proxy-)?authorization|x-api-key|{_WORDS})\b"
            r"([\"']?\s*+[:=]\s*+(?:b?[\"'])?|[\"']\s*+,\s*+b?[\"'])"
            r"((?:bearer|basic|digest|bot)\s++)?[^\s\"',;&)}\]]{4,}+",
            re.IGNORECASE,
        ),
        rf"\1\2\3{REDACTED}",
    ),
    (re.compile(r"\b(bearer\s++)[A-Za-z0-9._~+/=-]{16,}+", re.IGNORECASE), rf"\1{REDACTED}"),
    # Tokens with a known form: JWTs (and the beginning of one), bots of Telegram, our own keys, and those of some
    # services.
    (re.compile(r"\beyJ[\w-]{10,}+(?:\.[\w-]*+){0,4}+"), REDACTED),
    (re.compile(r"\b(bot)?\d{5,20}:[A-Za-z0-9_-]{30,}+"), rf"\1{REDACTED}"),
    (re.compile(r"\b(?:fdk_|sk-|xox[abeprs]-|xapp-|gh[oprsu]_|github_pat_|AKIA)[A-Za-z0-9_-]{16,}+"), REDACTED),
)
# A name and a password whose end lies behind the place where a text was cut.
_OPEN = re.compile(r"://[^\s/@\"'<>]*+\Z")
_LOOKAHEAD_LENGTH = 1024
"""The number of characters to read behind a cut: more than any pattern needs to match."""
# Most texts hold none of these, and searching for them is cheaper than the patterns.
_SIGNS = (
    *("@", "?", "&", "authori", "key", "token", "secret", "passw", "bearer", "eyj", "sk-", "xox", "xapp", "akia"),
    *("fdk_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_"),
)
_BOT = re.compile(r":[\w-]{30}")


def redact(text: str) -> str:
    """Remove secret-like strings, and the values of all existing `Secret` objects, from a text."""
    for value in _values():
        text = text.replace(value, REDACTED)
    low = text.lower()
    if any(sign in low for sign in _SIGNS) or _BOT.search(text):
        for shape, instead in _SHAPES:
            text = shape.sub(instead, text)
    return text


def list_secrets(given: object, where: str) -> list[Any]:
    """Return one or several secrets as a list. Mappings are rejected because their keys would count as secrets."""
    if isinstance(given, (str, Secret)):
        return [given]
    if not isinstance(given, Collection) or isinstance(given, (bytes, Mapping)):
        raise TypeError(f"{where} must be a string or a list of strings, got {type(cast(object, given)).__name__}")
    return list(cast("Collection[Any]", given))


def looks_secret(text: str) -> bool:
    """Return True if a text looks like a secret, such as a token, or is the value of a `Secret`."""
    return text.startswith("sha256:") or redact(text) != text


def shorten(text: str, most: int) -> str:
    """Truncate a text before any secret that crosses the limit, and append how much was omitted."""
    if len(text) <= most:
        return text
    end = _before_secrets(text, most)
    return f"{text[:end]}... [{len(text) - end} more characters]"


def _before_secrets(text: str, most: int) -> int:
    values = _values()
    window = text[: most + max([_LOOKAHEAD_LENGTH, *map(len, values)])]
    spans = [match.span() for shape, _ in _SHAPES for match in shape.finditer(window)]
    spans += [match.span() for match in _OPEN.finditer(window)]
    for value in values:
        at = window.find(value)
        while at >= 0:
            spans.append((at, at + len(value)))
            at = window.find(value, at + len(value))
    end = most
    # From the last one back: what ends behind the cut moves it, and so may the next.
    for start, stop in sorted(spans, key=lambda span: span[1], reverse=True):
        if start < end < stop:
            end = start
    return end


def _values() -> list[str]:
    # The references at once, because another thread may make a secret meanwhile.
    secrets = [secret.reveal() for reference in _known.valuerefs() if (secret := reference()) is not None]
    # The longest first: one may be the beginning of another.
    return sorted((value for value in secrets if len(value) >= MIN_DISPLAYED_LENGTH), key=len, reverse=True)
