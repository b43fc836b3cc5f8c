"""The example behind Azure Bot Service, on the strict fake."""

from pathlib import Path

import pytest

from frontdesk_testing import serving
from frontdesk_testing.activity import fake_activity
from tests.docs.pages import ROOT
from tests.docs.running import example


@pytest.mark.parametrize("channel", ["webchat", "directline", "slack", "msteams"])
async def test_the_example_answers_on_every_platform(
    channel: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    async with fake_activity() as fake:
        monkeypatch.setenv("BOT_CONNECTOR_URL", fake.url)
        async with serving(example(ROOT / "docs/examples/bot_service/host.py")) as client:
            fake.webhook = f"{client.base_url}/activity/messages"
            ada = fake.person("Ada", channel=channel)
            fake.say(ada, "good day")
            await fake.until(lambda: [message.text for message in ada.chat.shown()] == ["You said: good day."])
