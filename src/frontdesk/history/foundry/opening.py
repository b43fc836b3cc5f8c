"""Decides where a history is kept: in Foundry, in files, or in memory."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from frontdesk.errors import ChannelConfigurationError
from frontdesk.errors.extras import install_hint
from frontdesk.history.foundry.storage import ResponseStorage
from frontdesk.kit.foundry.settings import FoundrySettings
from frontdesk.loggers import host as log

_NAME = "FoundryHostedAgentHistoryProvider"
NO_SDK = f"{_NAME}: the SDK is missing: {install_hint('foundry')}; or name a local_storage_root, for development"


class Opened(NamedTuple):
    """A place for a history."""

    storage: ResponseStorage | None
    root: Path | None = None
    settings: FoundrySettings | None = None


def open_storage(credential: Any, endpoint: str | None, root: str | Path | None) -> Opened:
    """Open the storage of the Foundry project that hosts this process; elsewhere files or memory stand in for it."""
    if not _has_sdk():
        if root is None:
            raise ChannelConfigurationError([NO_SDK])
        return Opened(None, Path(root))
    # Here, and not at the top: it takes a second, and most hosts are somewhere else.
    from frontdesk.history.foundry.sdk import MemoryStorage, SdkStorage, agent_config

    config = agent_config()
    settings = FoundrySettings(
        name=config.agent_name or None, version=config.agent_version or None, session_id=config.session_id or None
    )
    if not config.is_hosted:
        return Opened(MemoryStorage(), None, settings) if root is None else Opened(None, Path(root), settings)
    if root is not None:
        log.info("%s: local_storage_root has no effect in Foundry", _NAME)
    place = endpoint or config.project_endpoint
    findings = _findings(credential, place)
    if findings:
        raise ChannelConfigurationError(findings)
    return Opened(SdkStorage.hosted(credential, place), None, settings)


def _has_sdk() -> bool:
    try:
        return find_spec("azure.ai.agentserver.responses") is not None
    except ModuleNotFoundError:
        return False


def _findings(credential: Any, endpoint: str) -> list[str]:
    wrong: list[str] = []
    if credential is None:
        wrong.append(
            f"{_NAME}: in Foundry it needs credential=, such as an azure.identity.aio.ManagedIdentityCredential"
        )
    if not endpoint:
        wrong.append(f"{_NAME}: in Foundry it needs endpoint=, or FOUNDRY_PROJECT_ENDPOINT")
    elif not endpoint.startswith("https://"):
        wrong.append(f"{_NAME}: the endpoint must begin with https://")
    return wrong
