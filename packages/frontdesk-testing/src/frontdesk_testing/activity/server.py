"""The fake as a server on the loopback address, and as a test drives it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import httpx
import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from frontdesk.activity.clouds import CLOUDS
from frontdesk_testing.activity.connector import Connector, ConnectorCall, ConnectorError, service_path
from frontdesk_testing.activity.tokens import LIFETIME, Login, public_keys, sign_token
from frontdesk_testing.activity.world import TEAMS, Conversation, Message, Person, object_id
from frontdesk_testing.telegram.app import ABORT
from frontdesk_testing.telegram.clock import MovableClock
from frontdesk_testing.telegram.faults import ANY, Hold
from frontdesk_testing.telegram.server import serve_on

APP_ID: Final = "11111111-2222-4333-8444-555555555555"
APP_SECRET: Final = "the-client-secret-of-the-fake-bot"  # noqa: S105 - it opens nothing but a fake
TENANT: Final = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
CHANNELS: Final = (TEAMS, "webchat", "directline", "slack")
_RETRY_SECONDS = 0.02
_CLOUD = CLOUDS["public"]


class _DroppedError(Exception):
    """A connection that is closed without an answer."""


class _Fault:
    """A fault of the next calls of a method."""

    def __init__(self, method: str, times: int, **effects: Any) -> None:
        self.method, self.times = method, times
        self.error: ConnectorError | None = effects.get("error")
        self.before, self.after = bool(effects.get("before")), bool(effects.get("after"))
        self.hold: Hold | None = effects.get("hold")


class FakeActivity:
    """Bot Service with one bot, people who act on request, and faults; see `fake_activity`."""

    mention = "<at>The desk</at>"

    def __init__(
        self,
        *,
        app_id: str = APP_ID,
        secret: str = APP_SECRET,
        tenant: str = TENANT,
        token_tenant: str = _CLOUD.token_tenant,
        limits: bool = False,
        clock: MovableClock | None = None,
    ) -> None:
        """`token_tenant` is the tenant of the bot's tokens: its own for a single-tenant bot."""
        self.clock = clock or MovableClock()
        self.app_id, self.tenant = app_id, tenant
        self.bot_id = f"28:{app_id}"
        self.login = Login(app_id, secret, token_tenant, _LoginClock(self.clock))
        self.connector = Connector(self.bot_id, _LoginClock(self.clock), limits=limits)
        self.endorsements: list[str] = list(CHANNELS)
        """The channels for which the key of the issuer is endorsed."""
        self.url = ""
        """The address of the server: the `connector_url` of a channel."""
        self.webhook = ""
        """The URL of the bot's messaging endpoint."""
        self.responses: dict[str, httpx.Response] = {}
        """The bot's responses to activities, by their ids."""
        self.activities: dict[str, dict[str, Any]] = {}
        """The activities that were sent to the bot, by their ids."""
        self.changes = 0
        self._changed = asyncio.Event()
        self._faults: list[_Fault] = []
        self._tokens: dict[str, str] = {}
        self._unsent: asyncio.Queue[str] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None
        self._http = httpx.AsyncClient(timeout=60, trust_env=False)

    @property
    def calls(self) -> list[ConnectorCall]:
        """Return every call of the bot, in the order in which they came."""
        return self.connector.calls

    def service_url(self, channel: str = TEAMS) -> str:
        return f"{self.url}/{service_path(channel)}/"

    # People and places

    def person(self, name: str, *, channel: str = TEAMS, tenant: str | None = None) -> Person:
        """Add a person with a direct chat, in which the bot is installed."""
        number = len(self.connector.people) + 1
        tenant = tenant or self.tenant
        kind = "personal" if channel == TEAMS else ""
        person_id = f"29:{number:04}-{name}" if channel == TEAMS else f"{name}-{number}"
        chat = self._place(f"a:{number:04}" if channel == TEAMS else f"{channel}-{number}", kind, channel, tenant)
        oid = object_id(person_id) if channel == TEAMS else ""
        person = Person(person_id, name, channel, tenant, oid, chat)
        chat.members |= {person.id, self.bot_id}
        self.connector.people[person.id] = person
        return person

    def group(self, *people: Person, kind: str = "groupChat") -> Conversation:
        """Add a group chat, or a channel of a team, with the bot in it."""
        channel, tenant = people[0].channel, people[0].tenant
        suffix = "@thread.tacv2" if kind == "channel" else "@thread.v2"
        name = f"19:{len(self.connector.conversations) + 1:04}{suffix if channel == TEAMS else ''}"
        place = self._place(name, kind if channel == TEAMS else "", channel, tenant, is_group=True)
        place.members |= {self.bot_id, *(person.id for person in people)}
        return place

    def _place(self, name: str, kind: str, channel: str, tenant: str, *, is_group: bool = False) -> Conversation:
        place = Conversation(name, kind, channel, tenant, is_group)
        self.connector.conversations[name] = place
        return place

    # What people do

    def activity(
        self, who: Person, kind: str, *, place: Conversation | None = None, thread: str = "", **fields: Any
    ) -> dict[str, Any]:
        """Return an activity of a person that is not sent."""
        place = place or who.chat
        activity_id = self.connector.new_id()
        place.heard.add(activity_id)
        data = {"tenant": {"id": place.tenant}} if who.channel == TEAMS else {}
        return {
            "type": kind,
            "id": activity_id,
            "timestamp": _timestamp(self.clock.now()),
            "channelId": who.channel,
            "serviceUrl": self.service_url(who.channel),
            "from": who.account(),
            "recipient": {"id": self.bot_id, "name": "The desk"},
            "conversation": place.account(thread),
            **({"channelData": data} if data else {}),
            **fields,
        }

    def say(
        self,
        who: Person,
        text: str,
        *,
        place: Conversation | None = None,
        thread: str = "",
        attachments: Sequence[Mapping[str, Any]] = (),
        **fields: Any,
    ) -> str:
        """Write as a person, in their direct chat unless another is named. Return the id of the activity."""
        entities: list[dict[str, Any]] = []
        if self.mention in text:
            mentioned = {"id": self.bot_id, "name": "The desk"}
            entities.append({"type": "mention", "mentioned": mentioned, "text": self.mention})
        content: dict[str, Any] = {
            **fields,
            "text": text,
            "textFormat": "plain",
            "locale": "en-US",
            "entities": entities,
        }
        if attachments:
            content["attachments"] = list(attachments)
        return self.post(self.activity(who, "message", place=place, thread=thread, **content))

    def edit(self, who: Person, activity_id: str, text: str) -> None:
        """Change the text of a message."""
        before = self.activities[activity_id]
        data = {**before.get("channelData", {}), "eventType": "editMessage"}
        changed = {**before, "type": "messageUpdate", "text": text, "channelData": data}
        self.post({**changed, "timestamp": _timestamp(self.clock.now())})

    async def press(self, who: Person, message: Message, data: str, *, place: Conversation | None = None) -> str:
        """Press a button of a message. Return the text that the person sees, if there is one.

        It is an invoke where the button is an `Action.Execute`, and a message otherwise.
        """
        thread = message.conversation.partition(";messageid=")[2]
        executes = any(action.get("type") == "Action.Execute" and _data(action) == data for action in message.actions)
        if not executes:
            self.say(who, "", place=place, thread=thread, replyToId=message.id, value={"frontdesk": data})
            return ""
        action = {"type": "Action.Execute", "verb": "frontdesk", "data": {"frontdesk": data}}
        value = {"action": action, "trigger": "manual"}
        invoke = self.activity(
            who, "invoke", place=place, thread=thread, name="adaptiveCard/action", value=value, replyToId=message.id
        )
        return self.apply_click(await self.deliver(invoke), message)

    def apply_click(self, response: httpx.Response, message: Message) -> str:
        """Show the response to a click: another card in the place of the message, or a text."""
        answer = response.json()
        if answer["type"] != "application/vnd.microsoft.card.adaptive":
            return str(answer["value"])
        attachment = {"contentType": answer["type"], "content": answer["value"]}
        message.activity = {"type": "message", "attachments": [attachment]}
        self.change()
        return message.text

    async def invoke(self, who: Person, name: str, value: Any, **fields: Any) -> httpx.Response:
        """Send an invoke once, and return the bot's response."""
        return await self.deliver(self.activity(who, "invoke", name=name, value=value, **fields))

    def stop_stream(self, who: Person) -> None:
        """Press Stop in the direct chat of a person."""
        for stream in who.chat.streams.values():
            if stream.state == "open":
                stream.state = "canceled"
        self.change()

    def remove_bot(self, who: Person, *, place: Conversation | None = None) -> None:
        self._membership(who, place or who.chat, present=False)

    def add_bot(self, who: Person, *, place: Conversation | None = None) -> None:
        self._membership(who, place or who.chat, present=True)

    def _membership(self, who: Person, place: Conversation, *, present: bool) -> None:
        place.installed = present
        change: dict[str, Any] = {"membersAdded" if present else "membersRemoved": [{"id": self.bot_id}]}
        self.post(self.activity(who, "conversationUpdate", place=place, **change))
        if who.channel == TEAMS:
            self.post(self.activity(who, "installationUpdate", place=place, action="add" if present else "remove"))

    def attach(self, data: bytes, media_type: str, name: str) -> dict[str, Any]:
        """Store a file of a person. Return the attachment of their message."""
        number = str(len(self.connector.attachments))
        self.connector.attachments[number] = (media_type, data)
        url = f"{self.url}/others/v3/attachments/{number}/views/original"
        return {"contentType": media_type, "contentUrl": url, "name": name}

    # Delivery

    def token(self, service_url: str, **claims: Any) -> str:
        """Return the token with which Bot Service sends activities of a service URL."""
        now = int(self.clock.now())
        own = {"iss": _CLOUD.issuer, "aud": self.app_id, "serviceurl": service_url, "nbf": now, "exp": now + LIFETIME}
        return sign_token({**own, **claims})

    def headers(self, service_url: str) -> dict[str, str]:
        """Return the headers with which activities of a service URL are sent."""
        if service_url not in self._tokens:
            self._tokens[service_url] = self.token(service_url)
        return {"authorization": f"Bearer {self._tokens[service_url]}", "content-type": "application/json"}

    def post(self, activity: Mapping[str, Any]) -> str:
        """Send an activity to the bot, after those before it, until it is acknowledged. Return its id."""
        name = str(activity["id"])
        self.activities[name] = dict(activity)
        self._unsent.put_nowait(name)
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_all())
        return name

    async def _send_all(self) -> None:
        while True:
            name = await self._unsent.get()
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if self.webhook and (await self.deliver(self.activities[name])).is_success:
                        break
                await asyncio.sleep(_RETRY_SECONDS)

    async def deliver(self, activity: Mapping[str, Any]) -> httpx.Response:
        """Send an activity once, and return the response."""
        self.activities[str(activity["id"])] = dict(activity)
        headers = self.headers(str(activity["serviceUrl"]))
        response = await self._http.post(self.webhook, content=msgspec.json.encode(activity), headers=headers)
        self.responses[str(activity["id"])] = response
        self.change()
        return response

    def change(self) -> None:
        """Let `until` check its condition again."""
        self.changes += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], Any], *, within: float = 60.0) -> None:
        """Wait until a condition holds; it is asked after every change on the platform."""
        async with asyncio.timeout(within):
            while not condition():
                await self._changed.wait()

    # Faults

    def fail_next(
        self,
        method: str,
        status: int,
        code: str,
        message: str = "",
        *,
        times: int = 1,
        retry_after: float | None = None,
    ) -> None:
        """Answer the next calls of a method with an error.

        It is `POST`, `PUT`, `DELETE`, `GET`, `TYPING`, `LOGIN`, `KEYS`, or `*` for all.
        """
        error = ConnectorError(status, code, message, retry_after=retry_after)
        self._faults.append(_Fault(method, times, error=error))

    def drop_next(self, method: str, *, acted: bool, times: int = 1) -> None:
        """Close the connection of the next calls without an answer, before or after they were acted on."""
        self._faults.append(_Fault(method, times, before=not acted, after=acted))

    def hold_next(self, method: str) -> Hold:
        """Keep the next call of a method waiting, before it is acted on, until it is released."""
        hold = Hold()
        self._faults.append(_Fault(method, 1, hold=hold))
        return hold

    def take_fault(self, method: str) -> _Fault:
        """Return the fault of a call, and count it."""
        for fault in self._faults:
            if fault.method in (method, ANY):
                fault.times -= 1
                if fault.times <= 0:
                    self._faults.remove(fault)
                return fault
        return _Fault("", 0)

    # Server

    def app(self) -> Starlette:
        """Return the connector, the issuer and the login server as an ASGI application."""
        methods = ["GET", "POST", "PUT", "DELETE"]
        return Starlette(
            routes=[
                Route("/v1/.well-known/openidconfiguration", _Answering(self, "KEYS", self._metadata)),
                Route("/v1/.well-known/keys", _Answering(self, "KEYS", self._keys)),
                Route("/bare/keys", _Answering(self, "KEYS", self._bare_keys)),
                Route("/{number:int}/.well-known/openid-configuration", _Answering(self, "KEYS", self._entra)),
                Route("/{tenant}/oauth2/v2.0/token", _Answering(self, "LOGIN", self._token), methods=["POST"]),
                Route("/{service}/v3/attachments/{name}/views/original", _Answering(self, "GET", self._file)),
                Route("/{service}/v3/{path:path}", _Answering(self, "", self._connect), methods=methods),
            ]
        )

    async def _metadata(self, request: Request) -> Response:
        return _json_response(200, {"issuer": _CLOUD.issuer, "jwks_uri": f"{self.url}/v1/.well-known/keys"})

    async def _entra(self, request: Request) -> Response:
        issuer = _CLOUD.entra_issuers[int(request.path_params["number"])].issuer
        return _json_response(200, {"issuer": issuer, "jwks_uri": f"{self.url}/bare/keys"})

    async def _keys(self, request: Request) -> Response:
        return _json_response(200, public_keys(self.endorsements))

    async def _bare_keys(self, request: Request) -> Response:
        return _json_response(200, public_keys(()))

    async def _token(self, request: Request) -> Response:
        tenant = str(request.path_params["tenant"])
        url = f"{self.url}/{tenant}/oauth2/v2.0/token"
        return _json_response(*self.login.grant(tenant, await request.body(), url))

    def _require_token(self, request: Request) -> None:
        if not self.login.accepts(request.headers.get("authorization", ""), _CLOUD.scope):
            raise ConnectorError(401, "Unauthorized", "Authorization has been denied for this request.")

    async def _file(self, request: Request) -> Response:
        self._require_token(request)
        media_type, data = self.connector.attachments[str(request.path_params["name"])]
        return Response(data, media_type=media_type)

    async def _connect(self, request: Request) -> Response:
        self._require_token(request)
        body = await request.body()
        raw = request.scope["raw_path"].decode("latin-1")
        service, _, path = raw.lstrip("/").partition("/v3/")
        return _json_response(*self.connector.answer(request.method, service, path.partition("?")[0], body))

    async def close(self) -> None:
        """End what is being sent."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        await self._http.aclose()


class _LoginClock:
    """The movable clock with the methods of the host's."""

    def __init__(self, clock: MovableClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now()

    def steady(self) -> float:
        return self._clock.now()


class _Answering:
    """An endpoint with the faults that are set, whose errors are those of the connector."""

    def __init__(self, fake: FakeActivity, method: str, endpoint: Callable[[Request], Any]) -> None:
        self._fake, self._method, self._endpoint = fake, method, endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await self._answer(request)
        except ConnectorError as error:
            headers = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
            response = _json_response(error.status, error.as_json(), headers)
        except ClientDisconnect:
            return
        except _DroppedError:
            self._fake.change()
            scope["extensions"][ABORT]["close"]()
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        self._fake.change()
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        # Before the faults: what was sent is acted on, also if its sender is gone by then.
        body = await request.body()
        method = self._method or ("TYPING" if _is_typing(body) else request.method)
        fault = self._fake.take_fault(method)
        if fault.hold is not None:
            fault.hold.reached.set()
            await fault.hold.released.wait()
        if fault.before:
            raise _DroppedError
        if fault.error is not None:
            raise fault.error
        response: Response = await self._endpoint(request)
        if fault.after:
            raise _DroppedError
        return response


def _json_response(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    content = b"" if body is None else msgspec.json.encode(body)
    return Response(content, status, headers=headers, media_type="application/json")


def _is_typing(body: bytes) -> bool:
    return b'"type":"typing"' in body and b'"streaminfo"' not in body


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _data(action: Mapping[str, Any]) -> str:
    return str(action.get("data", {}).get("frontdesk", ""))


@contextlib.asynccontextmanager
async def fake_activity(activity: FakeActivity | None = None, *, port: int = 0) -> AsyncGenerator[FakeActivity]:
    """Serve a fake on a free port of the loopback address, in the loop of the test."""
    activity = activity or FakeActivity()
    async with serve_on(activity.app(), port) as url:
        activity.url = url
        try:
            yield activity
        finally:
            await activity.close()
