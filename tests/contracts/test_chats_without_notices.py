"""The contract, asked of a channel with buttons that shows nothing to the person who pressed one."""

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from frontdesk.chat.abilities import AnswersClicks
from frontdesk_testing import ChatContract, FakePlatform
from tests.chat.postbox import channel as copied
from tests.chat.postbox.platform import SECRET, TOKEN, Postbox


def _without_notices() -> ModuleType:
    """The channel of the documents without its ability to answer clicks."""
    text = Path(str(copied.__file__)).read_text("utf-8")
    begin = text.index("    async def answer_click")
    end = text.index("    async def publish")
    text = (text[:begin] + text[end:]).replace("chat.AnswersClicks, ", "")
    module = ModuleType("postbox_without_notices")
    sys.modules[module.__name__] = module
    exec(compile(text, module.__name__, "exec"), module.__dict__)  # noqa: S102
    return module


SilentChannel: Any = _without_notices().PostboxChannel


class TestWithoutNotices(ChatContract):
    has_notices = False

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return Postbox()

    def channel(self, platform: FakePlatform, **settings: Any) -> Any:
        url = cast(Postbox, platform).url
        return SilentChannel(url=url, token=TOKEN, secret=SECRET, allow_private=True, **settings)


def test_it_answers_no_clicks() -> None:
    assert not issubclass(SilentChannel, AnswersClicks)
