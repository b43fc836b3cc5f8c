"""The `openai` package's two clients behind one face, so that a test says a thing once and both are asked."""

import asyncio
from typing import Any, Protocol

from tests.scenarios.responses.desk import ANYONE, ResponsesHost

MODEL = "Concierge"


class Customer(Protocol):
    """What a client of the API does."""

    async def create(self, said: Any, **body: Any) -> Any:
        """One question, one answer."""
        ...

    async def events(self, said: Any, **body: Any) -> list[Any]:
        """The events of `create(stream=True)`."""
        ...

    async def stream(self, said: Any, **body: Any) -> tuple[list[Any], Any]:
        """The events of `stream()`, and the response that the client has put together from them."""
        ...

    async def parse(self, said: Any, **body: Any) -> Any:
        """An answer with a structure."""
        ...

    async def retrieve(self, response_id: str) -> Any: ...

    async def delete(self, response_id: str) -> None: ...

    async def cancel(self, response_id: str) -> Any: ...

    async def input_items(self, response_id: str, **options: Any) -> list[Any]:
        """All of them, page by page."""
        ...

    async def models(self) -> list[Any]: ...

    async def model(self, name: str) -> Any: ...


class AsyncCustomer:
    """Speaks with `AsyncOpenAI`."""

    def __init__(self, desk: ResponsesHost, key: str = ANYONE) -> None:
        self.api = desk.client(key)

    async def create(self, said: Any, **body: Any) -> Any:
        return await self.api.responses.create(model=MODEL, input=said, **body)

    async def events(self, said: Any, **body: Any) -> list[Any]:
        stream: Any = await self.api.responses.create(model=MODEL, input=said, stream=True, **body)
        return [event async for event in stream]

    async def stream(self, said: Any, **body: Any) -> tuple[list[Any], Any]:
        async with self.api.responses.stream(model=MODEL, input=said, **body) as stream:
            events = [event async for event in stream]
            return events, await stream.get_final_response()

    async def parse(self, said: Any, **body: Any) -> Any:
        return await self.api.responses.parse(model=MODEL, input=said, **body)

    async def retrieve(self, response_id: str) -> Any:
        return await self.api.responses.retrieve(response_id)

    async def delete(self, response_id: str) -> None:
        await self.api.responses.delete(response_id)

    async def cancel(self, response_id: str) -> Any:
        return await self.api.responses.cancel(response_id)

    async def input_items(self, response_id: str, **options: Any) -> list[Any]:
        return [item async for item in self.api.responses.input_items.list(response_id, **options)]

    async def models(self) -> list[Any]:
        return [model async for model in self.api.models.list()]

    async def model(self, name: str) -> Any:
        return await self.api.models.retrieve(name)


class SyncCustomer:
    """Speaks with `OpenAI`, in a thread."""

    def __init__(self, desk: ResponsesHost, key: str = ANYONE) -> None:
        self.api = desk.sync_client(key)

    async def create(self, said: Any, **body: Any) -> Any:
        return await asyncio.to_thread(self.api.responses.create, model=MODEL, input=said, **body)

    async def events(self, said: Any, **body: Any) -> list[Any]:
        def read() -> list[Any]:
            stream: Any = self.api.responses.create(model=MODEL, input=said, stream=True, **body)
            return list(stream)

        return await asyncio.to_thread(read)

    async def stream(self, said: Any, **body: Any) -> tuple[list[Any], Any]:
        def read() -> tuple[list[Any], Any]:
            with self.api.responses.stream(model=MODEL, input=said, **body) as stream:
                return list(stream), stream.get_final_response()

        return await asyncio.to_thread(read)

    async def parse(self, said: Any, **body: Any) -> Any:
        return await asyncio.to_thread(self.api.responses.parse, model=MODEL, input=said, **body)

    async def retrieve(self, response_id: str) -> Any:
        return await asyncio.to_thread(self.api.responses.retrieve, response_id)

    async def delete(self, response_id: str) -> None:
        await asyncio.to_thread(self.api.responses.delete, response_id)

    async def cancel(self, response_id: str) -> Any:
        return await asyncio.to_thread(self.api.responses.cancel, response_id)

    async def input_items(self, response_id: str, **options: Any) -> list[Any]:
        return await asyncio.to_thread(lambda: list(self.api.responses.input_items.list(response_id, **options)))

    async def models(self) -> list[Any]:
        return await asyncio.to_thread(lambda: list(self.api.models.list()))

    async def model(self, name: str) -> Any:
        return await asyncio.to_thread(self.api.models.retrieve, name)


CUSTOMERS = [AsyncCustomer, SyncCustomer]
