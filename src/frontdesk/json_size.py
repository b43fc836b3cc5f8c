"""Estimates the memory that a JSON text takes after parsing, without parsing it.

Values take far more memory than their bytes. A message part such as `{"type":"input_text","text":"a"}` has 32 bytes and
three values, and takes 2.4 KB as a framework object.
"""

VALUE_BYTES = 1024
"""The memory that a value of a request takes beside its text, measured by `tests/faults/test_memory_of_others.py`."""

_ROW_BYTES = 4 * 1024
_FREE_VALUES = 64
"""The values that a row of a history has without large parts. `_ROW_BYTES` covers them."""
_CHUNK = 64 * 1024
_MAX_EXACT_VALUES = 64
"""The number of values up to which an upper bound is exact enough."""
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


def estimate_memory(raw: bytes) -> int:
    """Estimate the memory of a parsed JSON text: its own bytes plus `VALUE_BYTES` for each value."""
    # Each value but the first follows a bracket or a comma. Those inside of strings count here too.
    values = 1 + raw.count(b",") + raw.count(b"[") + raw.count(b"{")
    return len(raw) + VALUE_BYTES * (values if values <= _MAX_EXACT_VALUES else count_values(raw))


def estimate_row(raw: bytes | str) -> int:
    """Estimate the memory of the parsed messages of a history row."""
    if isinstance(raw, str):
        # SQLite returns a string where another program has written one. Whoever decodes it sets it aside.
        raw = raw.encode()
    values = 1 + raw.count(b",") + raw.count(b"[") + raw.count(b"{")
    more = 0 if values <= _FREE_VALUES else count_values(raw) - _FREE_VALUES
    return len(raw) + _ROW_BYTES + VALUE_BYTES * max(0, more)


def estimate_parts(texts: int, values: int) -> int:
    """Estimate the memory of parsed messages from their number of characters and number of parts."""
    return texts + _ROW_BYTES + VALUE_BYTES * max(0, values - _FREE_VALUES)


def count_values(raw: bytes) -> int:
    """Return an upper estimate of the number of values in a JSON text."""
    return JsonShape(raw, len(raw)).values


class JsonShape:
    """The brackets and commas outside of strings in a JSON text. Counting stops above `most` values."""

    def __init__(self, raw: bytes, most: int) -> None:
        self.values = 1
        self._brackets: list[bytes] = []
        start, inside = 0, 0
        while start < len(raw) and self.values <= most:
            end = start + _CHUNK
            chunk = raw[start:end]
            # A backslash stays with the character that it escapes.
            if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:
                end += 1
                chunk = raw[start:end]
            parts = chunk.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
            self._add(b"".join(parts[inside::2]))
            inside ^= (len(parts) - 1) % 2
            start = end

    def _add(self, outside: bytes) -> None:
        brackets = outside.translate(_BRACKETS, _NOT_BRACKETS)
        self._brackets.append(brackets)
        self.values += outside.count(b",") + brackets.count(b"[")

    def is_deeper(self, levels: int) -> bool:
        """Return True if values are nested more than `levels` levels deep. False for a text that is not JSON."""
        left = b"".join(self._brackets)
        if left.count(b"]") != left.count(b"["):
            # The decoder reports the error.
            return False
        for _ in range(levels):
            if not left:
                return False
            # Each time the innermost pairs go, and with them one level.
            left = left.replace(b"[]", b"")
        return bool(left)
