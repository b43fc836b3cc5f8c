"""Codes that people read on one screen and type on another. Pure.

The letters are Crockford's: none looks like another, and those that were left out are read as what they look like.
Each has five bits.
"""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BITS = 5
_LOOKS_LIKE = str.maketrans("OIL", "011", " -–_.")
_MOST_TYPED = 100
_GROUP = 4


def spelled(number: int, length: int) -> str:
    """Return a code of so many letters, from the low bits of a number."""
    return "".join(ALPHABET[(number >> (BITS * place)) % len(ALPHABET)] for place in reversed(range(length)))


def shown(code: str) -> str:
    """Return a code as people read it, in groups of four."""
    return "-".join(code[start : start + _GROUP] for start in range(0, len(code), _GROUP))


def beginning(code: str) -> str:
    """Return the part of a code by which attempts are counted: people see it as its first group."""
    return code[:_GROUP]


def read(typed: str, length: int) -> str | None:
    """Return the code that was typed, in any case and with any dashes; `None` if it can't be one."""
    if len(typed) > _MOST_TYPED:
        return None
    code = typed.upper().translate(_LOOKS_LIKE)
    return code if len(code) == length and not set(code) - set(ALPHABET) else None
