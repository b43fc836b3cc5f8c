"""The keys under which stores find who may answer a question: of accounts, and of verified claims. Pure."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, cast

from frontdesk.data.identity import ChannelIdentity

MOST_CLAIMS = 200
"""The number of claims of a person that are looked up; of more, the first count."""
_KINDS: Mapping[type[Any], str] = {bool: "bool", int: "int", str: "str"}
# True equals 1, and a claim that is true is not one that is 1.


def person_key(identity: ChannelIdentity) -> str:
    """Return the key of an account."""
    return f"person:{len(identity.channel)}:{identity.channel}:{identity.native_id}"


def claim_key(claim: str, value: Any) -> str | None:
    """Return the key of a claim with one value; `None` if no rule can name such a value."""
    kind = _KINDS.get(cast("type[Any]", type(value)))
    return None if kind is None else f"claim:{len(claim)}:{claim}:{kind}:{value}"


def claim_keys(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of all claims of a person, each value of a list by itself."""
    return tuple(islice(dict.fromkeys(_keys(claims)), MOST_CLAIMS))


def _keys(claims: Mapping[str, Any]) -> Iterator[str]:
    for claim, given in claims.items():
        for value in held_values(given):
            if (key := claim_key(claim, value)) is not None:
                yield key


def held_values(given: Any) -> Collection[Any]:
    """Return the values of a claim, which may have several."""
    return cast("Collection[Any]", given) if isinstance(given, (list, tuple, set, frozenset)) else (given,)
