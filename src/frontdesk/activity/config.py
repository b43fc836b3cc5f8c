"""Settings of the channels of Azure Bot Service."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from frontdesk.activity.clouds import CLOUDS, CloudName, loopback_finding, service_host_findings
from frontdesk.activity.credentials import BotCredential
from frontdesk.auth.platform_auth import PlatformAuth
from frontdesk.chat.config import ChatConfig, ChatSettings
from frontdesk.chat.media import MediaLimits
from frontdesk.chat.messages import Invoke, InvokeAnswer
from frontdesk.interfaces.chat import LiveTerms
from frontdesk.models.identity import Caller

InvokeHook = Callable[[Invoke, Caller], Awaitable[InvokeAnswer | None]]
"""Answers an invoke that the channel does not handle. `None` is a 501."""
MAX_INLINE_BYTES = 24 * 1024
_GUID_LENGTH = 36


class BotServiceSettings(ChatSettings, total=False):
    """The keyword arguments of a channel of Bot Service besides its app id, credential, name and path."""

    cloud: CloudName
    tenants: Collection[str] | None
    service_hosts: Sequence[str]
    accept_emulator: bool
    accept_skills: bool
    skill_callers: Collection[str]
    invoke_hook: InvokeHook | None
    connector_url: str | None
    call_timeout: float


@dataclass(frozen=True, kw_only=True)
class BotServiceConfig(ChatConfig):
    positive: ClassVar[tuple[str, ...]] = (*ChatConfig.positive, "call_timeout")

    app_id: str
    """The Microsoft App ID of the bot."""
    credential: BotCredential
    """`ClientSecret`, `Certificate`, `ManagedIdentity` or `FederatedIdentity`."""
    platform_auth: PlatformAuth | None = None
    cloud: CloudName = "public"
    """The cloud of the bot: `public`, `usgov` or `china`."""
    tenants: Collection[str] | None = None
    """The ids of the tenants whose activities are accepted, in any platform; `None` accepts all."""
    service_hosts: Sequence[str] = ()
    """More hosts that may receive the token of the bot: `smba.example.com`, or `*.example.com` for those below it."""
    accept_emulator: bool = False
    """Whether activities of the Bot Framework Emulator on this machine are accepted."""
    accept_skills: bool = False
    """Whether the bots in `skill_callers` may call this bot as a skill."""
    skill_callers: Collection[str] = ()
    """The app ids of these bots."""
    invoke_hook: InvokeHook | None = None
    """Answers invokes that the channel does not handle, such as those of operator's cards."""
    connector_url: str | None = None
    """A connector, its token issuer and its login server on this machine, for tests."""
    call_timeout: float = 15.0
    """The seconds that a call may take; after that nobody knows whether it arrived."""
    media: MediaLimits = field(default_factory=lambda: MediaLimits(max_sent_bytes=MAX_INLINE_BYTES))
    """The limits of files. A sent file is part of the activity, of which Teams accepts about 100 KB."""
    live_terms: LiveTerms = field(
        default_factory=lambda: LiveTerms(interval=1.5, longest=110.0, group=False, silence=40.0)
    )

    def findings(self) -> list[str]:
        wrong = super().findings()
        if len(self.app_id) != _GUID_LENGTH or not self.app_id.replace("-", "").isalnum():
            wrong.append("app_id must be the Microsoft App ID of the bot, such as 00000000-0000-0000-0000-000000000000")
        credential: Any = self.credential
        if isinstance(credential, BotCredential):
            wrong += credential.findings()
        else:
            wrong.append("credential must be a ClientSecret, Certificate, ManagedIdentity or FederatedIdentity")
        if self.cloud not in CLOUDS:
            return [*wrong, f"cloud must be {' or '.join(map(repr, CLOUDS))}, not {self.cloud!r}"]
        return wrong + self._access_findings() + self._host_findings()

    def _access_findings(self) -> list[str]:
        wrong: list[str] = []
        if isinstance(self.tenants, str) or (self.tenants is not None and not self.tenants):
            wrong.append("tenants must be a list of tenant ids, or None for all tenants")
        if self.accept_skills and not self.skill_callers:
            wrong.append("accept_skills needs skill_callers: the app ids of the bots that may call this one")
        if self.skill_callers and not self.accept_skills:
            wrong.append("skill_callers has no effect without accept_skills=True")
        if isinstance(self.skill_callers, str):
            wrong.append("skill_callers must be a list of app ids")
        if self.platform_auth is not None and (self.accept_emulator or self.accept_skills):
            wrong.append("accept_emulator and accept_skills have no effect with auth: the platform verifies the tokens")
        if self.previous_secrets:
            wrong.append("previous_secrets has no effect: the platform signs by tokens, whose keys are fetched")
        return wrong

    def _host_findings(self) -> list[str]:
        if isinstance(self.service_hosts, str):
            return ["service_hosts must be a list of host names"]
        wrong = service_host_findings(self.service_hosts)
        if self.connector_url is not None:
            if finding := loopback_finding(self.connector_url):
                wrong.append(finding)
            if self.service_hosts:
                wrong.append("service_hosts has no effect with connector_url")
        elif not CLOUDS[self.cloud].service_hosts and not self.service_hosts:
            wrong.append(f"cloud={self.cloud!r} needs service_hosts: the hosts of its service URLs")
        return wrong
