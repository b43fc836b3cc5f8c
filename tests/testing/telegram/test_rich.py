"""Rich messages are checked, received and changed as the schema and the limits say."""

from typing import Any

import pytest

from frontdesk_testing.telegram import FakeTelegram
from frontdesk_testing.telegram.schema.values import check_value
from tests.testing.telegram.starting import telegram_and_bot


def paragraph(text: Any = "words") -> dict[str, Any]:
    return {"type": "paragraph", "text": text}


def cell(text: str = "a", **fields: Any) -> dict[str, Any]:
    return {"text": text, "align": "left", "valign": "top", **fields}


def nest(levels: int) -> Any:
    return paragraph() if levels == 1 else {"type": "blockquote", "blocks": [nest(levels - 1)]}


async def test_blocks_are_received_shown_and_changed() -> None:
    async with telegram_and_bot(FakeTelegram()) as (telegram, bot):
        ann = telegram.user("Ann")
        chat = telegram.private(ann)
        numbered = [{"blocks": [paragraph([{"type": "bold", "text": "one"}, "!"])], "value": 3, "type": "1"}]
        blocks = [{"type": "list", "items": numbered}, {"type": "table", "cells": [[cell("a"), cell("b")]]}]
        sent = await bot.call("sendRichMessage", chat_id=ann.id, rich_message={"blocks": blocks})
        check_value("RichMessage", sent["rich_message"])
        assert sent["rich_message"]["blocks"][0]["items"][0]["label"] == "3."
        assert telegram.shown(chat).answers == ["3. one!\na | b"]
        edit = {"chat_id": ann.id, "message_id": sent["message_id"]}
        same = await bot.read_refusal("editMessageText", **edit, rich_message={"blocks": blocks})
        assert "message is not modified" in same
        await bot.call("editMessageText", **edit, text="plain")
        assert telegram.shown(chat).answers == ["plain"]
        await bot.call("editMessageText", **edit, rich_message={"blocks": [paragraph()]})
        assert telegram.shown(chat).answers == ["words"]
        thinking = {"type": "thinking", "text": "Hm"}
        await bot.call("sendRichMessageDraft", chat_id=ann.id, draft_id=1, rich_message={"blocks": [thinking]})
        assert telegram.shown(chat).drafts == ("Hm",)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({}, "exactly one of the fields"),
        ({"blocks": [paragraph()], "html": "x"}, "exactly one of the fields"),
        ({"markdown": "x"}, "reads no HTML and no Markdown"),
        ({"blocks": []}, "must be non-empty"),
        ({"blocks": [{"type": "divider"}]}, "must be non-empty"),
        ({"blocks": [paragraph("x" * 32_769)]}, "too long"),
        ({"blocks": [paragraph()] * 501}, "too many blocks"),
        ({"blocks": [nest(17)]}, "nested too deeply"),
        ({"blocks": [{"type": "table", "cells": [[cell()] * 21]}]}, "too many columns"),
        ({"blocks": [{"type": "table", "cells": [[cell()], [cell()] * 2]}]}, "same number of cells"),
        ({"blocks": [{"type": "table", "cells": [[cell(valign="up")]]}]}, "wrong alignment"),
        ({"blocks": [{"type": "thinking", "text": "Hm"}]}, "blocks of type thinking"),
        ({"blocks": [{"type": "paragraph"}]}, "text"),
        ({"blocks": [{"type": "heading", "size": 7, "text": "x"}]}, "size"),
    ],
)
async def test_what_is_beyond_the_limits_is_refused(message: Any, reason: str) -> None:
    async with telegram_and_bot(FakeTelegram()) as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        assert reason in await bot.read_refusal("sendRichMessage", chat_id=ann.id, rich_message=message)
