"""Settings of the A2A channel."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from frontdesk.channels.a2a.card import AgentExtension, AgentSkill
from frontdesk.channels.a2a.modes import is_mode
from frontdesk.http.channel import StreamingConfig, StreamingSettings
from frontdesk.identifiers import is_plain_id

MAX_SKILLS = 256
MAX_TENANT_LENGTH = 64
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class A2ASettings(StreamingSettings, total=False):
    title: str | None
    description: str | None
    version: str
    skills: Sequence[AgentSkill]
    show_tools_as_skills: bool
    extended_skills: Sequence[AgentSkill]
    extensions: Sequence[AgentExtension]
    push_notifications: bool
    max_push_configs: int
    tenants: Sequence[str]
    short_answers_as_messages: bool


@dataclass(frozen=True, kw_only=True)
class A2AConfig(StreamingConfig):
    max_body_bytes: int = 16 * 1024 * 1024
    body_timeout: float = 30.0
    title: str | None = None
    description: str | None = None
    version: str = "1.0.0"
    skills: Sequence[AgentSkill] = ()
    show_tools_as_skills: bool = False
    extended_skills: Sequence[AgentSkill] = ()
    extensions: Sequence[AgentExtension] = ()
    push_notifications: bool = False
    max_push_configs: int = 10
    tenants: Sequence[str] = ()
    short_answers_as_messages: bool = False

    def own_findings(self) -> list[str]:
        return [
            *self._text_findings(),
            *self._skill_findings(),
            *self._extension_findings(),
            *self._push_findings(),
            *self._tenant_findings(),
            *super().own_findings(),
        ]

    def _text_findings(self) -> Iterator[str]:
        texts: dict[str, Any] = {"title": self.title, "description": self.description, "version": self.version}
        for name, value in texts.items():
            if (value is None and name == "version") or not (value is None or isinstance(value, str)):
                yield f"{name} must be a string, got {type(value).__name__}"
            elif value is not None and not value.strip():
                yield f"{name} must not be empty"
        for name in ("show_tools_as_skills", "push_notifications", "short_answers_as_messages"):
            if type(getattr(self, name)) is not bool:
                yield f"{name} must be True or False, got {getattr(self, name)!r}"

    def _skill_findings(self) -> Iterator[str]:
        skills: list[Any] = []
        for name in ("skills", "extended_skills"):
            given: Any = getattr(self, name)
            if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
                yield f"{name} must be a list of AgentSkill, got {type(getattr(self, name)).__name__}"
                continue
            skills += given
        if len(skills) > MAX_SKILLS:
            yield f"skills and extended_skills must be at most {MAX_SKILLS} together, got {len(skills)}"
            return
        seen: set[str] = set()
        for skill in skills:
            if not isinstance(skill, AgentSkill):
                yield f"skills must be AgentSkill objects, got {type(skill).__name__}"
                continue
            if skill.id in seen:
                yield f"skills: the id {skill.id!r} is used twice"
            seen.add(skill.id)
            yield from _one_skill(skill)

    def _extension_findings(self) -> Iterator[str]:
        for extension in self.extensions:
            given: Any = extension
            if not isinstance(given, AgentExtension):
                yield f"extensions must be AgentExtension objects, got {type(given).__name__}"
            elif ":" not in given.uri or not given.uri.isascii() or not given.uri.isprintable() or "," in given.uri:
                yield f"extensions: uri must be an absolute URI, got {given.uri!r}"
            elif not _is_json(given.params):
                yield f"extensions: params of {given.uri} must be JSON"

    def _push_findings(self) -> Iterator[str]:
        most: Any = self.max_push_configs
        if type(most) is not int or most < 1:
            yield f"max_push_configs must be a whole number of at least 1, got {most!r}"

    def _tenant_findings(self) -> Iterator[str]:
        given: Any = self.tenants
        if isinstance(given, str):
            yield "tenants must be a list of names, got a string"
            return
        for tenant in given:
            if not isinstance(tenant, str) or len(tenant) > MAX_TENANT_LENGTH or not _TENANT.fullmatch(tenant):
                yield f"tenants must be 1 to {MAX_TENANT_LENGTH} letters, digits, _ or -, got {tenant!r}"
        if len(set(map(str, given))) < len(given):
            yield "tenants: a name is used twice"


def _one_skill(skill: AgentSkill) -> Iterator[str]:
    if not is_plain_id(skill.id):
        yield f"skills: the id {skill.id!r} must have letters, digits and . _ : - only"
    for name in ("name", "description"):
        if not str(getattr(skill, name)).strip():
            yield f"skills: {name} of {skill.id!r} must not be empty"
    for name in ("tags", "examples", "input_modes", "output_modes"):
        if isinstance(getattr(skill, name), str):
            yield f"skills: {name} of {skill.id!r} must be a list of strings, got a string"
            return
    for mode in (*skill.input_modes, *skill.output_modes):
        if not is_mode(mode):
            yield f"skills: {mode!r} of {skill.id!r} is not a media type"


def _is_json(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(value, Mapping)
