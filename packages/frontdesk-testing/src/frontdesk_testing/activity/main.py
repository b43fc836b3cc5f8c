"""A stand-in for Bot Service in the terminal: each line of the input is a message to the bot."""

import argparse
import asyncio
import sys

from frontdesk_testing.activity.server import APP_ID, APP_SECRET, FakeActivity, fake_activity
from frontdesk_testing.activity.world import Person

PORT = 3980
WEBHOOK = "http://127.0.0.1:8000/activity/messages"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m frontdesk_testing.activity", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT, help=f"{PORT} if not given; 0 takes a free one")
    parser.add_argument("--webhook", default=WEBHOOK, help=f"the bot's messaging endpoint, {WEBHOOK} if not given")
    parser.add_argument("--channel", default="webchat", help="the platform: webchat, directline, slack or msteams")
    given = parser.parse_args()
    asyncio.run(_talk(given.port, given.webhook, given.channel))


async def _talk(port: int, webhook: str, channel: str) -> None:
    async with fake_activity(port=port) as fake:
        fake.webhook = webhook
        sys.stdout.write(f"export BOT_APP_ID={APP_ID} BOT_SECRET={APP_SECRET} BOT_CONNECTOR_URL={fake.url}\n")
        sys.stdout.flush()
        person = fake.person("You", channel=channel)
        shown = asyncio.ensure_future(_show(fake, person))
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip():
                fake.say(person, line.strip())
        shown.cancel()


async def _show(fake: FakeActivity, person: Person) -> None:
    """Write the messages of the bot as they come and change."""
    seen: dict[str, str] = {}
    while True:
        for message in person.chat.shown():
            text = message.text
            if not message.is_stream and seen.get(message.id) != text:
                seen[message.id] = text
                sys.stdout.write(f"< {text}\n")
                sys.stdout.flush()
        changes = fake.changes
        await fake.until(lambda before=changes: fake.changes != before, within=1e9)
