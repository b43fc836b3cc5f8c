"""The commands that a chat offers, and the state that a command may keep."""

from typing import Any, Literal, Protocol

from frontdesk.data.noun import Value

CommandScope = Literal["direct", "group", "admins"]
"""A place where a command is offered: direct chats, groups, or the administrators of a group."""


class CommandLocale(Value, frozen=True, kw_only=True):
    """The name and the description of a command in one language; what is empty stays as it is."""

    name: str = ""
    description: str = ""


class BuiltInTexts(Protocol):
    """The sentences of the host's own commands and notices, in all languages."""

    def say(self, key: str, locale: str | None = None, /, **values: Any) -> str:
        """Return a sentence in a language; `pt-BR` falls back to `pt`, and then to English."""
        ...

    def described(self, key: str) -> tuple[str, dict[str, CommandLocale]]:
        """Return the description of a command, and those in other languages."""
        ...


class CommandState(Protocol):
    """Small values that commands keep for one person in one conversation; all commands of a channel share them."""

    async def get(self, key: str) -> Any:
        """Return a value; `None` if there is none, or it has expired."""
        ...

    async def set(self, key: str, value: Any, *, seconds: float | None = None) -> None:
        """Keep a value for a time, 30 days by default; no JSON, or more than 65,536 bytes, is a `ValueError`."""
        ...

    async def delete(self, key: str) -> None:
        """Remove a value, if there is one."""
        ...
