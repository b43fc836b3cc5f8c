"""Settings of the Conversations channel."""

from dataclasses import dataclass

from frontdesk.http.channel import HttpConfig, HttpSettings


class ConversationsSettings(HttpSettings, total=False):
    callers_of: str


@dataclass(frozen=True, kw_only=True)
class ConversationsConfig(HttpConfig):
    callers_of: str = "responses"

    def own_findings(self) -> list[str]:
        return [] if self.callers_of else ["callers_of must be the name of a channel"]
