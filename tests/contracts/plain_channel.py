"""A channel for a protocol of one's own: a text goes in, a text comes out."""

from typing import Any

import msgspec
from starlette.routing import Route

from frontdesk import Channel, ChannelContribution, ChannelRequest
from frontdesk.abc.auth import Auth
from frontdesk.abc.channel import ChannelContext
from frontdesk.abc.hooks import RunHook
from frontdesk.errors import RequestError
from frontdesk.kit.auth.any_auth import as_auth
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.asgi import NO_RETRY, error_headers, send_json
from frontdesk.kit.http.bodies import decode_as
from frontdesk.kit.http.endpoint import BodyDeadline, HttpCall, HttpEndpoint


class Said(msgspec.Struct):
    text: str


SAID = msgspec.json.Decoder(Said)


class PlainChannel(Channel):
    """Takes `{"text": ...}` at `/plain`, and answers in the same way."""

    def __init__(
        self,
        *,
        auth: Auth | None = None,
        run_hook: RunHook | None = None,
        max_body_bytes: int = 100_000,
        body_timeout: float = 30.0,
    ) -> None:
        self.name, self.path, self.auth, self.run_hook = "plain", "/plain", as_auth(auth), run_hook
        self._max_body_bytes = max_body_bytes
        self._deadline = BodyDeadline(body_timeout)

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._context = context
        verifier = HttpVerifier.for_channel(self.name, self.auth, context, allowed_origins=())
        endpoint = HttpEndpoint(verifier, self.refuse, allow=context.allow, runs=["POST"], POST=self.ask)
        return ChannelContribution(routes=[Route("/", endpoint=endpoint)])

    async def ask(self, call: HttpCall) -> None:
        raw = await call.json_body(limit=self._max_body_bytes, deadline=self._deadline)
        said = decode_as(SAID, raw)
        request = ChannelRequest(channel=self.name, input=said.text)
        hosted = await self._context.run(request, call.caller, protocol_request={"text": said.text})
        await self._send(call, 200, {"id": hosted.run.run_id, "text": hosted.result.text})

    async def refuse(self, call: HttpCall, error: RequestError) -> None:
        body = {"error": {"code": error.code, "message": error.message}}
        if error.run is None:
            return await self._send(call, error.status, body, error_headers(error))
        # The target has run, and failed: a client that repeats a 500 would run it again.
        await self._send(call, 200, {"id": error.run.run_id, **body}, [NO_RETRY])

    async def _send(self, call: HttpCall, status: int, body: Any, headers: Any = ()) -> None:
        call.begun = True
        await send_json(call.send, status, msgspec.json.encode(body), list(headers))
