"""Settings of the Activity channel."""

from dataclasses import dataclass

from frontdesk.activity.config import BotServiceConfig, BotServiceSettings


class ActivitySettings(BotServiceSettings, total=False):
    """The keyword arguments of `ActivityChannel` besides its app id, credential, name and path."""


@dataclass(frozen=True, kw_only=True)
class ActivityConfig(BotServiceConfig):
    """The settings that all channels of Bot Service have."""
