"""A bot: its account, its updates and its settings."""

from dataclasses import dataclass, field

from frontdesk_testing.telegram.records import Chat, Json, User
from frontdesk_testing.telegram.updates import UpdateQueue

CommandKey = tuple[str, int, int, str]
"""The scope of commands, with its chat and user, and the language."""


@dataclass(slots=True)
class Webhook:
    """The address that updates are sent to."""

    url: str = ""
    secret_token: str = ""
    max_connections: int = 40
    ip_address: str = ""
    last_error_date: int | None = None
    last_error_message: str = ""
    failures: int = 0
    """The number of attempts that were not acknowledged."""
    gone_since: float | None = None
    """The time since which it has answered nothing but 410."""


@dataclass(slots=True, eq=False)
class Callback:
    """A pressed button and the bot's answer."""

    id: str
    user: User
    data: str
    at: float
    answered: bool = False
    text: str = ""
    alert: bool = False
    url: str = ""


@dataclass(slots=True, eq=False)
class Bot:
    """A bot."""

    user: User
    token: str
    updates: UpdateQueue
    privacy: bool = True
    """Whether it sees only what is meant for it in groups."""
    has_topics: bool = False
    """Whether its private chats have topics."""
    webhook: Webhook = field(default_factory=Webhook)
    private: dict[int, Chat] = field(default_factory=dict[int, Chat])
    blocked_by: set[int] = field(default_factory=set[int])
    commands: dict[CommandKey, list[Json]] = field(default_factory=dict[CommandKey, list[Json]])
    callbacks: dict[str, Callback] = field(default_factory=dict[str, Callback])
    last_message_id: int = 0

    def as_json(self) -> Json:
        """Return the object `User` as `getMe` does."""
        return {
            **self.user.as_json(),
            "can_join_groups": True,
            "can_read_all_group_messages": not self.privacy,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.has_topics,
        }
