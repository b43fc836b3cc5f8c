"""Texts of decided questions, for tests."""

import re


def outcome_in(text: str) -> str:
    """Returns what was decided and by whom, without account and time: `pay: approved by “Ada”`."""
    return re.sub(r"(?<=”) \(.*| \(\d{4}-.*", "", text.partition("\n")[0])
