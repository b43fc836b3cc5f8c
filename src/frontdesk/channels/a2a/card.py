"""The agent card: who the agent is, what it can do, and how it is called."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, Protocol

import msgspec
from starlette.types import Receive, Scope, Send

from frontdesk.asgi.messages import JSON, collect_headers
from frontdesk.channels.a2a.modes import INPUT_MODES, OUTPUT_MODES
from frontdesk.channels.a2a.parse import VERSION
from frontdesk.channels.a2a.questions import EXTENSION, EXTENSION_DESCRIPTION
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.base import FrozenStruct

MAX_AGE_SECONDS = 300
MAX_HOSTS = 32
"""The number of addresses for which a card is kept, if the host has no public URL."""
_HOST = re.compile(r"(?:[A-Za-z0-9.-]{1,255}+|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
Schemes = Mapping[str, Mapping[str, str]]


class AgentSkill(FrozenStruct, frozen=True, kw_only=True):
    """A skill on the agent card."""

    id: str
    name: str
    description: str
    tags: Sequence[str] = ()
    examples: Sequence[str] = ()
    input_modes: Sequence[str] = ()
    """The media types that it accepts besides those of the channel."""
    output_modes: Sequence[str] = ()


class AgentExtension(FrozenStruct, frozen=True, kw_only=True):
    """A protocol extension on the agent card."""

    uri: str
    description: str = ""
    required: bool = False
    """Whether requests that do not name it in `A2A-Extensions` are rejected."""
    params: Mapping[str, Any] = {}


class CardSettings(Protocol):
    """The settings of a channel that are on its cards."""

    @property
    def title(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...
    @property
    def version(self) -> str: ...
    @property
    def skills(self) -> Sequence[AgentSkill]: ...
    @property
    def show_tools_as_skills(self) -> bool: ...
    @property
    def extended_skills(self) -> Sequence[AgentSkill]: ...
    @property
    def extensions(self) -> Sequence[AgentExtension]: ...
    @property
    def push_notifications(self) -> bool: ...
    @property
    def tenants(self) -> Sequence[str]: ...


class AgentCards:
    """The cards of one channel, each written once for each address."""

    def __init__(
        self,
        config: CardSettings,
        target: TargetInfo,
        schemes: Schemes,
        *,
        path: str,
        public_url: str | None,
        now: float,
    ) -> None:
        self._config, self._target, self._schemes, self._path = config, target, schemes, path
        self._public_url = public_url
        self._cards: dict[tuple[str, bool], bytes] = {}
        self.last_modified = datetime.fromtimestamp(int(now), UTC)
        self.has_extended = bool(schemes)

    def get(self, scope: Scope, *, extended: bool = False) -> bytes:
        """Return the card for the address at which a request has come in."""
        base = self._public_url or _address(scope)
        card = self._cards.get((base, extended))
        if card is None:
            card = msgspec.json.encode(self._build(base, extended=extended))
            if len(self._cards) < MAX_HOSTS:
                self._cards[base, extended] = card
        return card

    def _build(self, base: str, *, extended: bool) -> dict[str, Any]:
        config, target = self._config, self._target
        name = config.title or target.name or "Agent"
        description = config.description or target.description or name
        card: dict[str, Any] = {
            "name": name,
            "description": description,
            "supportedInterfaces": self._interfaces(base + self._path),
            "version": config.version,
            "capabilities": self._capabilities(),
            "defaultInputModes": list(INPUT_MODES),
            "defaultOutputModes": list(OUTPUT_MODES),
            "skills": self._skills(name, description, extended=extended),
        }
        if self._schemes:
            card["securitySchemes"] = {name: _scheme(scheme) for name, scheme in self._schemes.items()}
            card["securityRequirements"] = [{"schemes": {name: {"list": []}}} for name in self._schemes]
        return card

    def _interfaces(self, url: str) -> list[dict[str, str]]:
        bindings = ((url, "JSONRPC"), (f"{url}/v1", "HTTP+JSON"))
        return [
            {
                "url": address,
                "protocolBinding": binding,
                "protocolVersion": VERSION,
                **({"tenant": tenant} if tenant else {}),
            }
            for tenant in ("", *self._config.tenants)
            for address, binding in bindings
        ]

    def _capabilities(self) -> dict[str, Any]:
        extensions = [_extension(one) for one in self._config.extensions]
        extensions.append({"uri": EXTENSION, "description": EXTENSION_DESCRIPTION, "required": False})
        return {
            "streaming": True,
            "pushNotifications": self._config.push_notifications,
            "extendedAgentCard": self.has_extended,
            "extensions": extensions,
        }

    def _skills(self, name: str, description: str, *, extended: bool) -> list[dict[str, Any]]:
        config = self._config
        skills = [_skill(skill) for skill in config.skills]
        if config.show_tools_as_skills or extended:
            named = {skill["id"] for skill in skills}
            skills += [_tool(tool) for tool in self._target.tool_names if tool not in named]
        if extended:
            skills += [_skill(skill) for skill in config.extended_skills]
        if not skills:
            skills.append({"id": "chat", "name": name, "description": description, "tags": ["chat"]})
        return skills


def collect_input_modes(config: CardSettings) -> frozenset[str]:
    """Return the media types that the channel accepts: its own and those of the skills."""
    skills = (*config.skills, *config.extended_skills)
    return frozenset((*INPUT_MODES, *(mode.lower() for skill in skills for mode in skill.input_modes)))


def _skill(skill: AgentSkill) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
    }
    lists = {"examples": skill.examples, "inputModes": skill.input_modes, "outputModes": skill.output_modes}
    return {**shown, **{name: list(values) for name, values in lists.items() if values}}


def _tool(name: str) -> dict[str, Any]:
    return {"id": name, "name": name, "description": f"The tool {name}.", "tags": ["tool"]}


def _extension(extension: AgentExtension) -> dict[str, Any]:
    shown = {"uri": extension.uri, "description": extension.description, "required": extension.required}
    return {**shown, "params": dict(extension.params)} if extension.params else shown


def _scheme(scheme: Mapping[str, str]) -> dict[str, Any]:
    """Return a security scheme of OpenAPI in the form of the card."""
    described = {"description": scheme["description"]} if "description" in scheme else {}
    kind = scheme.get("type")
    if kind == "apiKey":
        location = {"location": scheme.get("in", "header"), "name": scheme.get("name", "")}
        return {"apiKeySecurityScheme": {**described, **location}}
    if kind == "openIdConnect":
        return {"openIdConnectSecurityScheme": {**described, "openIdConnectUrl": scheme.get("openIdConnectUrl", "")}}
    if kind == "mutualTLS":
        return {"mtlsSecurityScheme": described}
    bearer = {"bearerFormat": scheme["bearerFormat"]} if "bearerFormat" in scheme else {}
    return {"httpAuthSecurityScheme": {**described, "scheme": scheme.get("scheme", "bearer"), **bearer}}


def _address(scope: Scope) -> str:
    """Return the address at which a request has come in, as its client sees it."""
    host = collect_headers(scope).get(b"host", b"").decode("latin-1")
    if not _HOST.fullmatch(host):
        host = "localhost"
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"


class CardEndpoint:
    """The public card. It needs no credentials, and pages of any origin may read it."""

    def __init__(self, cards: AgentCards) -> None:
        self._cards = cards

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            headers = [(b"allow", b"GET, HEAD"), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 405, "headers": headers})
            return await send({"type": "http.response.body", "body": b""})
        card = self._cards.get(scope)
        etag = b'"%b"' % hashlib.sha256(card).hexdigest()[:32].encode()
        caching = [
            (b"etag", etag),
            (b"last-modified", format_datetime(self._cards.last_modified, usegmt=True).encode()),
            (b"cache-control", b"public, max-age=%d" % MAX_AGE_SECONDS),
            (b"vary", b"Host"),
            (b"access-control-allow-origin", b"*"),
        ]
        if _is_current(collect_headers(scope), etag, self._cards.last_modified):
            await send({"type": "http.response.start", "status": 304, "headers": caching})
            return await send({"type": "http.response.body", "body": b""})
        length = (b"content-length", str(len(card)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [JSON, length, *caching]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else card})


def _is_current(headers: Mapping[bytes, bytes], etag: bytes, last_modified: datetime) -> bool:
    """Return True if the client has this card."""
    known = headers.get(b"if-none-match")
    if known is not None:
        tags = [tag.strip().removeprefix(b"W/") for tag in known.split(b",")]
        return etag in tags or b"*" in tags
    since = headers.get(b"if-modified-since")
    if since is None:
        return False
    try:
        return parsedate_to_datetime(since.decode("latin-1")) >= last_modified
    except (ValueError, TypeError):
        return False
