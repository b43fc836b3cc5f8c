"""The page about models says what `frontdesk init` writes; `make providers` runs that with the framework's clients."""

import re

from frontdesk.cli.init import CHANNEL_TEMPLATES, MODELS, list_files
from tests.docs.pages import ROOT, blocks, tables

PAGE = ROOT / "docs/guides/models.md"


def test_the_page_names_each_model_with_its_package_and_variables() -> None:
    rows = tables(PAGE)["A project in a minute"]
    models = [row for row in rows if len(row) == 4]
    assert [name.strip("`") for name, *_ in models] == list(MODELS)
    for (_, title, package, variables), model in zip(models, MODELS.values(), strict=True):
        assert title == model.title
        assert model.requirement.startswith(package.strip("`"))
        assert re.findall(r"`(\w+)`", variables) == [name for name, _, _ in model.settings]


def test_the_page_names_each_door() -> None:
    rows = tables(PAGE)["A project in a minute"]
    assert [row[0].strip("`") for row in rows if len(row) == 2][2:] == list(CHANNEL_TEMPLATES)


def test_each_snippet_is_what_is_written() -> None:
    snippets = [block.text for block in blocks("py") if block.page == PAGE and "def chat_client" in block.text]
    written = [list_files(model, ["web"])["host.py"] for model in MODELS]
    assert len(snippets) == len(written)
    for snippet, host in zip(snippets, written, strict=True):
        lines = [line.strip() for line in snippet.splitlines() if line.strip()]
        assert all(line in host for line in lines)
