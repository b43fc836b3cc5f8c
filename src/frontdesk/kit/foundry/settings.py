"""The settings with which Foundry starts the process of a hosted agent."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

HOSTED: Final = "FOUNDRY_HOSTING_ENVIRONMENT"
SESSION: Final = "FOUNDRY_AGENT_SESSION_ID"
_MODELS = ("MODEL_DEPLOYMENT_NAME", "AZURE_AI_MODEL_DEPLOYMENT_NAME")


@dataclass(frozen=True)
class FoundrySettings:
    """The name of the agent, of its sandbox and of its model, as far as they are known."""

    name: str | None = None
    version: str | None = None
    session_id: str | None = None
    """The sandbox in which the process runs, which is no conversation: users may share it."""
    model: str | None = None

    @classmethod
    def of(cls, variable: Callable[[str], str | None]) -> Self:
        """Read them from the environment."""
        models = (variable(name) for name in _MODELS)
        return cls(
            name=variable("FOUNDRY_AGENT_NAME"),
            version=variable("FOUNDRY_AGENT_VERSION"),
            session_id=variable(SESSION),
            model=next((model for model in models if model), None),
        )

    @property
    def agent_reference(self) -> dict[str, Any] | None:
        """Return how responses name the agent; `None` where it has no name."""
        if self.name is None:
            return None
        version = {} if self.version is None else {"version": self.version}
        return {"type": "agent_reference", "name": self.name, **version}
