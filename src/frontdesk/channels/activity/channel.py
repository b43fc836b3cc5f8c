"""`ActivityChannel`: any platform behind Azure Bot Service."""

from typing import Unpack

from frontdesk.activity.channel import BotServiceChannel
from frontdesk.activity.credentials import BotCredential
from frontdesk.auth.platform_auth import PlatformAuth
from frontdesk.channels.activity.config import ActivityConfig, ActivitySettings
from frontdesk.interfaces.argument_types import takes_settings


class ActivityChannel(BotServiceChannel):
    """Answers people on the platforms of an Azure Bot resource, by the Activity Protocol."""

    @takes_settings(ActivityConfig)
    def __init__(
        self,
        *,
        app_id: str,
        credential: BotCredential,
        name: str = "activity",
        path: str = "/activity",
        auth: PlatformAuth | None = None,
        **settings: Unpack[ActivitySettings],
    ) -> None:
        """Create a channel for a bot. Other settings are those of `ActivityConfig`.

        `auth` is for a hosted agent of Foundry, where the platform has verified the token of each activity.
        """
        config = ActivityConfig(app_id=app_id, credential=credential, platform_auth=auth, **settings)
        super().__init__(config, name=name, path=path)
