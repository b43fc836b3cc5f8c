"""Ids in the form of Foundry's response service.

An id is a prefix, an underscore, 18 characters that name a partition, and 32 that name the object. All that belongs to
one chain of responses has the same partition. Older ids have 48 characters behind the underscore, of which the last 16
are the partition.
"""

import hashlib
import re
import string
from typing import Final

from frontdesk.ids import new_alphanumerics, new_secret

_PARTITION_DIGITS: Final = 16
_SUFFIX: Final = "00"
_ENTROPY: Final = 32
_ALPHABET: Final = string.digits + string.ascii_letters
_BODY = re.compile(rf"[0-9A-Za-z]{{{_PARTITION_DIGITS + len(_SUFFIX)}}}[0-9A-Za-z]{{{_ENTROPY}}}")
_OLDER_BODY = re.compile(r"[0-9A-Za-z]{48}")
_RESPONSE_PREFIXES = ("caresp", "resp")

ITEM_PREFIXES: Final = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "file_search_call": "fs",
    "web_search_call": "ws",
    "image_generation_call": "ig",
    "code_interpreter_call": "ci",
    "shell_call": "lsh",
    "shell_call_output": "lsho",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
}
"""The prefixes of the ids of items, by the types of items that are written."""


def foundry_response_id(previous: str | None = None) -> str:
    """Make the id of a response, in the partition of the response that it continues, if it continues one."""
    return f"caresp_{partition_of(previous) or _new_partition()}{new_alphanumerics(_ENTROPY)}"


def item_id(kind: str, beside: str, of: str | None = None) -> str:
    """Make the id of an item in the partition of another id; `of` makes it the same each time."""
    entropy = new_alphanumerics(_ENTROPY) if of is None else _derived(of)
    return f"{ITEM_PREFIXES[kind]}_{partition_of(beside) or _new_partition()}{entropy}"


def is_response_id(value: str | None) -> bool:
    """Tell whether the service takes a text for the id of a response."""
    prefix, _, _ = (value or "").partition("_")
    return prefix in _RESPONSE_PREFIXES and partition_of(value) is not None


def partition_of(value: str | None) -> str | None:
    """Return the partition that an id names; `None` if it is not in the form of the service."""
    _, _, body = (value or "").partition("_")
    if _BODY.fullmatch(body):
        return body[:-_ENTROPY]
    return body[-_PARTITION_DIGITS:] + _SUFFIX if _OLDER_BODY.fullmatch(body) else None


def _new_partition() -> str:
    return new_secret()[:_PARTITION_DIGITS] + _SUFFIX


def _derived(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)
