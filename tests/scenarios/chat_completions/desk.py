"""A host with a Chat Completions door behind a real server, and real clients of the API for it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from openai import AsyncOpenAI
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from frontdesk import AgentFrameworkHost, Channel
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk_testing import serving
from frontdesk_testing.internals import active_runs
from tests.scenarios.ledger import Ledger
from tests.scenarios.stores import new_store

HI: Any = [{"role": "user", "content": "hello"}]
STRICT: dict[str, TypeAdapter[Any]] = {
    "chat.completion": TypeAdapter(ChatCompletion),
    "chat.completion.chunk": TypeAdapter(ChatCompletionChunk),
    "model": TypeAdapter(Model),
}
"""The types of the `openai` package, used strictly: its clients themselves accept nearly anything."""


class ChatHost:
    """A started host, a client of the API for it, and what its store has kept."""

    def __init__(self, host: AgentFrameworkHost, ledger: Ledger, url: str, http: Any, client: AsyncOpenAI) -> None:
        self.host = host
        self.ledger = ledger
        self.url = url
        self.http = http
        self.client = client

    async def create(self, messages: Any = HI, **body: Any) -> Any:
        """One question, one answer."""
        made = await self.client.chat.completions.create(model="m", messages=messages, **body)
        STRICT[made.object].validate_json(made.model_dump_json(exclude_unset=True), strict=True)
        return made

    async def chunks(self, messages: Any = HI, **body: Any) -> list[Any]:
        """The chunks of a stream."""
        stream: Any = await self.client.chat.completions.create(model="m", messages=messages, stream=True, **body)
        chunks = [chunk async for chunk in stream]
        for chunk in chunks:
            STRICT[chunk.object].validate_json(chunk.model_dump_json(exclude_unset=True), strict=True)
        return chunks

    async def post(self, body: Any, **options: Any) -> Any:
        """Posts a body as it is."""
        return await self.http.post("/v1/chat/completions", json=body, **options)

    @property
    def active(self) -> int:
        """How many runs are in progress."""
        return len(active_runs(self.host))

    def is_untouched(self) -> bool:
        """Whether nothing at all was written, and nothing runs."""
        return not self.ledger.writes and not self.active


@asynccontextmanager
async def open_client(target: Any, *, beside: Sequence[Channel] = (), **settings: Any) -> AsyncIterator[ChatHost]:
    """A started host with one Chat Completions channel."""
    ledger: Any = Ledger(new_store())
    host = AgentFrameworkHost(target, channels=[ChatCompletionsChannel(**settings), *beside], store=ledger)
    async with serving(host) as served, httpx2.AsyncClient(trust_env=False, verify=False) as http:
        url = f"{served.base_url}/v1"
        client = AsyncOpenAI(api_key="any key will do", base_url=url, max_retries=0, timeout=60, http_client=http)
        yield ChatHost(host, ledger, served.base_url, served.http, client)
