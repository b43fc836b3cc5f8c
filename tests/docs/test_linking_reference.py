"""The reference of linking says what the code says."""

import re

from frontdesk.access.links import MAX_LINKED
from frontdesk.errors import LinkRefusedError
from frontdesk.host.links.names import WORDS
from frontdesk.interfaces import linker
from tests.docs.pages import ROOT, tables
from tests.docs.test_reference import spans

LINKING = ROOT / "docs/reference/linking.md"


def test_every_command_is_documented() -> None:
    assert [spans(name)[0] for name, _ in tables(LINKING)["Commands"]] == list(WORDS)


def test_every_ability_is_documented() -> None:
    abilities = {name for name in vars(linker) if name.startswith(("Supports", "Reads"))}
    assert {spans(name)[0] for name, _ in tables(LINKING)["A linker of your own"]} == abilities


def test_every_refusal_is_documented() -> None:
    named = set(spans(LINKING.read_text("utf-8").partition("\n## Refusals\n")[2]))
    source = "".join(
        path.read_text("utf-8")
        for place in ("access/links.py", "linkers/one_time_code.py")
        for path in [ROOT / "src/frontdesk" / place]
    )
    raised = set(re.findall(r"LinkRefusedError\([^)]*code=\"(\w+)\"", source))
    assert named - {"LinkRefusedError"} == raised | {LinkRefusedError.code}
    causes = {spans(code)[0]: cause for code, _, cause in tables(ROOT / "docs/reference/errors.md")["403 Forbidden"]}
    assert str(MAX_LINKED) in causes["too_many_links"]
