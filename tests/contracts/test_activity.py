"""The contract of chat channels, asked of the channel of Bot Service on Teams and on Web Chat."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec

from frontdesk.channels.activity import ActivityChannel, ClientSecret
from frontdesk.chat import Invoke, InvokeAnswer
from frontdesk.models.identity import Caller
from frontdesk_testing import ChatContract, ChatPerson, FakePlatform
from frontdesk_testing.activity import APP_ID, APP_SECRET
from frontdesk_testing.activity.world import object_id
from tests.contracts.activity_platform import DrivenActivity, driven_activity

INVOKE = "composeExtension/query"


async def _answer(invoke: Invoke, caller: Caller) -> InvokeAnswer | None:
    """Answer the invokes of one name."""
    return InvokeAnswer(body=msgspec.json.encode(invoke.value)) if invoke.name == INVOKE else None


def _channel(platform: FakePlatform, **settings: Any) -> ActivityChannel:
    fake = cast(DrivenActivity, platform).fake
    given = {"connector_url": fake.url, "invoke_hook": _answer, **settings}
    return ActivityChannel(app_id=APP_ID, credential=ClientSecret(APP_SECRET), **given)


class TestActivityOnTeams(ChatContract):
    # A token is for the service URL, and not for one body.
    signs_bodies = False
    has_albums = False
    tells_membership = True
    has_stop_button = True
    invoke_name = INVOKE

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return driven_activity()

    def channel(self, platform: FakePlatform, **settings: Any) -> ActivityChannel:
        return _channel(platform, **settings)

    def list_verified_claims(self, who: ChatPerson) -> Mapping[str, str]:
        return {"oid": object_id(who.id)}


class TestActivityOnWebChat(ChatContract):
    signs_bodies = False
    has_albums = False
    has_groups = False
    has_threads = False
    has_notices = False
    shows_live = False

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return driven_activity("webchat")

    def channel(self, platform: FakePlatform, **settings: Any) -> ActivityChannel:
        channel = _channel(platform, **settings)
        # The channel tries, and the platform refuses: a card that was decided keeps its buttons there.
        channel.push_edits = False
        return channel
