"""A channel for a protocol of one's own: a text goes in, a text comes out."""

from functools import partial
from typing import Any, Unpack

import msgspec
from starlette.routing import Route

from frontdesk import ChannelRequest
from frontdesk.asgi.messages import NO_RETRY, error_headers, send_json
from frontdesk.errors import RequestError
from frontdesk.http import HttpChannel, HttpConfig, HttpSettings, takes_settings
from frontdesk.http.bodies import decode_as
from frontdesk.http.endpoint import HttpCall


class Said(msgspec.Struct):
    text: str


SAID = msgspec.json.Decoder(Said)


class PlainChannel(HttpChannel):
    """Takes `{"text": ...}` at `/plain`, and answers in the same way."""

    @takes_settings(HttpConfig)
    def __init__(self, **settings: Unpack[HttpSettings]) -> None:
        super().__init__(HttpConfig(**settings), name="plain", path="/plain")

    def routes(self) -> list[Route]:
        return [Route("/", endpoint=self.endpoint(runs=["POST"], POST=self.ask))]

    async def ask(self, call: HttpCall) -> None:
        said, _ = await self.read_body(call, partial(decode_as, SAID))
        request = ChannelRequest(channel=self.name, input=said.text)
        hosted = await self.context.run(request, call.caller, protocol_request={"text": said.text})
        await self._send(call, 200, {"id": hosted.run.run_id, "text": hosted.result.text})

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        body = {"error": {"code": error.code, "message": error.message}}
        if error.run is None:
            return await self._send(call, error.status, body, error_headers(error))
        # The target has run, and failed: a client that repeats a 500 would run it again.
        await self._send(call, 200, {"id": error.run.run_id, **body}, [NO_RETRY])

    async def _send(self, call: HttpCall, status: int, body: Any, headers: Any = ()) -> None:
        call.begun = True
        await send_json(call.send, status, msgspec.json.encode(body), list(headers))
