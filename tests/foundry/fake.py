"""A fake of Foundry's storage of responses, as strict as the service: ids, partitions, people, duplicates."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk import IsolationKeys
from frontdesk.errors import HistoryRefusedError, HistoryStorageError, ResponseTakenError

_ID = re.compile(r"[a-z]{2,6}[0-9]?_(?:[0-9a-f]{16}00[0-9A-Za-z]{32}|[0-9A-Za-z]{48})")
_REQUIRED = {"id", "object", "created_at", "status", "output"}
TOKEN = "a-token-of-the-agent"


class Refused(Exception):
    """What the service answers with an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Stored:
    """A response, with what it was created with."""

    def __init__(self, user: str, response: dict[str, Any], given: list[str], history: list[str]) -> None:
        self.user, self.response, self.given, self.history = user, response, given, history


class FakeStorage:
    """The service: `calls` says which person a call id of the platform's stands for."""

    def __init__(self) -> None:
        self.calls: dict[str, str] = {}
        self.responses: dict[str, Stored] = {}
        self.items: dict[str, tuple[str, dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.was_asked = asyncio.Event()
        self.fails_with: int | None = None
        self.hangs = False
        self.fails_only: str | None = None
        """The beginning of the paths for which `fails_with` and `hangs` count; all of them without one."""
        routes = [
            Route("/storage/responses", self._create, methods=["POST"]),
            Route("/storage/responses/{response_id}", self._response, methods=["GET", "POST", "DELETE"]),
            Route("/storage/responses/{response_id}/input_items", self._input, methods=["GET"]),
            Route("/storage/items/batch/retrieve", self._batch, methods=["POST"]),
            Route("/storage/history/item_ids", self._history, methods=["GET"]),
        ]
        self.app = Starlette(routes=routes, exception_handlers={Refused: _refuse})

    async def _user(self, request: Request) -> str:
        self.asked.append(f"{request.method} {request.url.path.removeprefix('/storage')}")
        self.was_asked.set()
        hit = self.fails_only is None or request.url.path.startswith(f"/storage/{self.fails_only}")
        if hit and self.hangs:
            await asyncio.Event().wait()
        if hit and self.fails_with is not None:
            raise Refused(self.fails_with, "outage", "The service is away.")
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "unauthorized", "A token is needed.")
        if request.query_params.get("api-version") != "v1":
            raise Refused(400, "bad_version", "api-version must be v1.")
        if "x-agent-user-id" in request.headers:
            raise Refused(400, "bad_header", "The user is not for a container to say.")
        user = self.calls.get(request.headers.get("x-agent-foundry-call-id", ""))
        if user is None:
            raise Refused(403, "unknown_call", "There is no such call.")
        return user

    async def _create(self, request: Request) -> Response:
        user, body = await self._user(request), await request.json()
        response, given, history = body["response"], body["input_items"], body["history_item_ids"]
        missing = _REQUIRED - response.keys()
        if missing:
            raise Refused(400, "invalid", f"Missing: {sorted(missing)}")
        response_id = _check_id(response["id"])
        if response_id in self.responses:
            raise Refused(409, "conflict", f"Response {response_id} already exists")
        for item in (*given, *response["output"]):
            if _partition(_check_id(item["id"])) != _partition(response_id):
                raise Refused(400, "partition", "An item is in another partition.")
            if item["id"] in self.items:
                raise Refused(409, "conflict", f"Item {item['id']} already exists")
        for item_id in history:
            if _partition(_check_id(item_id)) != _partition(response_id):
                raise Refused(400, "partition", "The history is in another partition.")
            if item_id not in self.items or self.items[item_id][0] != user:
                raise Refused(404, "not_found", "There is no such item.")
        self._keep(user, [*given, *response["output"]])
        self.responses[response_id] = Stored(user, response, [item["id"] for item in given], history)
        return JSONResponse({})

    def _keep(self, user: str, items: Sequence[dict[str, Any]]) -> None:
        for item in items:
            self.items[item["id"]] = (user, item)

    async def _response(self, request: Request) -> Response:
        user = await self._user(request)
        stored = self._find(user, request.path_params["response_id"])
        if request.method == "DELETE":
            del self.responses[stored.response["id"]]
        elif request.method == "POST":
            changed = await request.json()
            for item in changed["output"]:
                if _partition(_check_id(item["id"])) != _partition(changed["id"]):
                    raise Refused(400, "partition", "An item is in another partition.")
            self._keep(user, changed["output"])
            stored.response = changed
        return JSONResponse(stored.response)

    def _find(self, user: str, response_id: str) -> Stored:
        stored = self.responses.get(_check_id(response_id))
        if stored is None or stored.user != user:
            raise Refused(404, "not_found", "There is no such response.")
        return stored

    async def _input(self, request: Request) -> Response:
        stored = self._find(await self._user(request), request.path_params["response_id"])
        return JSONResponse({"data": [self.items[item_id][1] for item_id in stored.given]})

    async def _batch(self, request: Request) -> Response:
        user = await self._user(request)
        kept = [self.items.get(_check_id(item_id)) for item_id in (await request.json())["item_ids"]]
        return JSONResponse([None if item is None or item[0] != user else item[1] for item in kept])

    async def _history(self, request: Request) -> Response:
        user, limit = await self._user(request), int(request.query_params["limit"])
        stored = self._find(user, request.query_params["previous_response_id"])
        ids = [*stored.history, *stored.given, *(item["id"] for item in stored.response["output"])]
        return JSONResponse(ids if limit == -1 else ids[-limit:])

    def of(self, user: str) -> list[Stored]:
        """The responses of a person, in the order in which they came."""
        return [stored for stored in self.responses.values() if stored.user == user]


def _check_id(value: Any) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise Refused(500, "bad_id", "The id can't be read.")
    return value


def _partition(value: str) -> str:
    body = value.partition("_")[2]
    return body[:18] if len(body) == 50 else body[-16:] + "00"


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"error": {"code": error.code, "message": str(error)}}, error.status)


class HttpStorage:
    """The way of the SDK in a few lines, for tests without it."""

    def __init__(self, fake: FakeStorage) -> None:
        transport = httpx.ASGITransport(fake.app)
        bearer = {"authorization": f"Bearer {TOKEN}"}
        self._http = httpx.AsyncClient(transport=transport, base_url="https://project/storage", headers=bearer)

    async def create(
        self,
        response: Mapping[str, Any],
        input_items: Sequence[Mapping[str, Any]],
        history_item_ids: Sequence[str],
        keys: IsolationKeys,
    ) -> None:
        body = {"response": response, "input_items": input_items, "history_item_ids": history_item_ids}
        await self._ask("POST", "responses", keys, content=json.dumps(body))

    async def history_ids(self, response_id: str, limit: int, keys: IsolationKeys) -> Sequence[str]:
        query = {"previous_response_id": response_id, "limit": str(limit)}
        return await self._ask("GET", "history/item_ids", keys, query)

    async def items(self, ids: Sequence[str], keys: IsolationKeys) -> Sequence[Mapping[str, Any] | None]:
        return await self._ask("POST", "items/batch/retrieve", keys, content=json.dumps({"item_ids": list(ids)}))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _ask(
        self, method: str, path: str, keys: IsolationKeys, query: Mapping[str, str] | None = None, **sent: Any
    ) -> Any:
        headers = {} if keys.call_id is None else {"x-agent-foundry-call-id": keys.call_id}
        params = {"api-version": "v1", **(query or {})}
        answer = await self._http.request(method, path, params=params, headers=headers, **sent)
        if answer.status_code == 409:
            raise ResponseTakenError(answer.text)
        if answer.status_code in (400, 404):
            raise HistoryRefusedError(answer.text)
        if answer.status_code >= 400:
            raise HistoryStorageError(str(answer.status_code))
        return answer.json()
