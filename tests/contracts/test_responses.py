"""The Responses channel keeps the channel contract, wherever it is served."""

from collections.abc import Sequence
from typing import Any

import httpx

from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import ChannelContract
from frontdesk_testing.channel_callers import ALICE, BOB, keys, read_answer


class TestResponses(ChannelContract):
    path = "/v1/responses"

    def channel(self, **settings: Any) -> ResponsesChannel:
        return ResponsesChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        return {"input": text}

    def run_id(self, answer: httpx.Response) -> str:
        return answer.json()["id"]

    def calls_about(self, run_id: str) -> Sequence[tuple[str, str]]:
        about = f"{self.path}/{run_id}"
        return [("GET", about), ("POST", f"{about}/cancel"), ("DELETE", about)]

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        assert list(body) == ["error"]
        assert set(body["error"]) == {"message", "type", "param", "code"}
        assert isinstance(body["error"]["type"], str)
        return body["error"]["message"]

    async def test_what_another_has_asked_looks_like_what_does_not_exist(self) -> None:
        async with self.serve(self.channel(auth=keys())) as served:
            theirs = self.run_id(await self.post(served.http, x_api_key=ALICE))
            await self.post(served.http, x_api_key=BOB)
            real, made_up, own = [
                await served.http.get(f"{self.path}/{run_id}/input_items", headers={"x-api-key": key})
                for run_id, key in ((theirs, BOB), (theirs[:-1] + "x", BOB), (theirs, ALICE))
            ]
            assert (real.status_code, own.status_code) == (404, 200)
            assert read_answer(real) == read_answer(made_up)


class TestResponsesWithoutTheVersion(TestResponses):
    path = "/responses"


class TestResponsesElsewhere(TestResponses):
    path = "/desk/v1/responses"

    def channel(self, **settings: Any) -> ResponsesChannel:
        return super().channel(path="/desk", **settings)
