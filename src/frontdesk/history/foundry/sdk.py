"""Foundry's response storage by the SDK `azure-ai-agentserver-responses`. Only this module imports the SDK."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from frontdesk.errors import HistoryRefusedError, HistoryStorageError, ResponseTakenError
from frontdesk.models.identity import IsolationKeys

# By name: the extra is not there for everybody who checks the types of this package.
_core: Any = import_module("azure.ai.agentserver.core")
_responses: Any = import_module("azure.ai.agentserver.responses")
_store: Any = import_module("azure.ai.agentserver.responses.store")
_azure: Any = import_module("azure.core.exceptions")

_MAX_USERS = 1_000
"""The number of people whose responses are kept in the memory of a process."""


def agent_config() -> Any:
    """Return the settings with which Foundry has started this process."""
    return _core.AgentConfig.from_env()


class SdkStorage:
    """Adapts a provider of the SDK to `ResponseStorage`."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    @classmethod
    def connect(cls, credential: Any, endpoint: str) -> "SdkStorage":
        """Connect to the storage of a Foundry project. Nothing is sent before the first call."""
        settings = _responses.FoundryStorageSettings.from_endpoint(endpoint)
        return cls(_responses.FoundryStorageProvider(credential, settings))

    async def create(
        self,
        response: Mapping[str, Any],
        input_items: Sequence[Mapping[str, Any]],
        history_item_ids: Sequence[str],
        keys: IsolationKeys,
    ) -> None:
        async with _translate_errors():
            await self._provider.create_response(response, input_items, history_item_ids, context=_context(keys))

    async def history_ids(self, response_id: str, limit: int, keys: IsolationKeys) -> Sequence[str]:
        async with _translate_errors():
            return await self._provider.get_history_item_ids(response_id, None, limit, context=_context(keys))

    async def items(self, ids: Sequence[str], keys: IsolationKeys) -> Sequence[Mapping[str, Any] | None]:
        async with _translate_errors():
            return await self._provider.get_items(ids, context=_context(keys))

    async def aclose(self) -> None:
        close = getattr(self._provider, "aclose", None)
        if close is not None:
            await close()


class MemoryStorage:
    """The SDK's in-memory storage for development, one for each person because it does not separate users."""

    def __init__(self) -> None:
        self._of_users: dict[str | None, SdkStorage] = {}

    async def create(
        self,
        response: Mapping[str, Any],
        input_items: Sequence[Mapping[str, Any]],
        history_item_ids: Sequence[str],
        keys: IsolationKeys,
    ) -> None:
        await self._storage_for(keys).create(response, input_items, history_item_ids, keys)

    async def history_ids(self, response_id: str, limit: int, keys: IsolationKeys) -> Sequence[str]:
        return await self._storage_for(keys).history_ids(response_id, limit, keys)

    async def items(self, ids: Sequence[str], keys: IsolationKeys) -> Sequence[Mapping[str, Any] | None]:
        return await self._storage_for(keys).items(ids, keys)

    async def aclose(self) -> None:
        self._of_users.clear()

    def _storage_for(self, keys: IsolationKeys) -> SdkStorage:
        storage = self._of_users.get(keys.user_key)
        if storage is None:
            if len(self._of_users) >= _MAX_USERS:
                # The one who came first; a process for development does not get there.
                del self._of_users[next(iter(self._of_users))]
            storage = self._of_users[keys.user_key] = SdkStorage(_responses.InMemoryResponseProvider())
        return storage


def _context(keys: IsolationKeys) -> Any:
    return _responses.PlatformContext(user_id_key=keys.user_key, call_id=keys.call_id)


@asynccontextmanager
async def _translate_errors() -> AsyncGenerator[None]:
    """Translate errors of the service and of the connection. Programming errors are not translated."""
    try:
        yield
    except _store.ResponseAlreadyExistsError as error:
        raise ResponseTakenError(type(error).__name__) from error
    except (_responses.FoundryResourceNotFoundError, _responses.FoundryBadRequestError) as error:
        raise HistoryRefusedError(type(error).__name__) from error
    except (_responses.FoundryStorageError, _azure.AzureError, OSError) as error:
        raise HistoryStorageError(type(error).__name__) from error
