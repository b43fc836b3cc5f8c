"""What the page about testing says of the platform is what the platform does."""

import re
from pathlib import Path
from typing import get_args

from frontdesk_testing.messages.platform.faults import Fault, FaultKind

PAGE = Path(__file__).parents[3] / "docs/write-your-own/test-your-channel.md"


def test_every_way_to_fail_is_told() -> None:
    section = PAGE.read_text("utf-8").partition("## A message channel")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert rows == list(get_args(FaultKind))
    for name in set(Fault.__struct_fields__) - {"kind", "retry_after", "scope"}:
        assert f"`{name}`" in section
