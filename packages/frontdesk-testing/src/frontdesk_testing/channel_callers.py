"""The contract of HTTP channels for callers: access, and isolation from other callers."""

import asyncio
from typing import Any

import httpx
import pytest

from frontdesk.auth.api_keys import ApiKeyAuth
from frontdesk.errors import ForbiddenError
from frontdesk.models.request import ChannelRequest
from frontdesk_testing.agents import FailingAgent
from frontdesk_testing.channel_driver import ChannelDriver

ALICE = "the key of alice, long enough"
BOB = "the key of bob, long enough too"
REASON = "the secret reason"
NO_CREDENTIALS: tuple[dict[str, str], ...] = (
    {},
    {"x-api-key": "wrong"},
    {"authorization": "Basic YTpi"},
    {"authorization": "Bearer wrong"},
)


def keys() -> ApiKeyAuth:
    """Make credentials for two people."""
    return ApiKeyAuth({"alice": ALICE, "bob": BOB})


def read_answer(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """Return the answer without its date and its id."""
    shown = {name: answer.headers[name] for name in answer.headers if name not in ("date", "x-request-id")}
    return answer.status_code, answer.content, shown


def fail_in_hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
    """Fail."""
    raise RuntimeError(REASON)


async def return_nothing(request: ChannelRequest, *, target: Any, protocol_request: Any) -> Any:
    """A hook that does not return the request."""


class Callers(ChannelDriver):
    """Callers with and without valid credentials, and isolation between callers."""

    async def test_nobody_gets_in_without_the_right_credentials(self) -> None:
        async with self.serve(self.channel(auth=keys())) as served:
            for headers in NO_CREDENTIALS:
                answer = await served.http.post(self.path, json=self.message("hello"), headers=headers)
                assert answer.status_code == 401, headers
                assert "www-authenticate" in answer.headers, headers
                assert self.error_text(answer), headers
                for method, path in self.calls_about("run_1"):
                    assert (await served.http.request(method, path, headers=headers)).status_code == 401, headers
                assert served.untouched(), headers

    async def test_the_right_credentials_get_in(self) -> None:
        async with self.serve(self.channel(auth=keys())) as served:
            assert (await self.post(served.http, x_api_key=ALICE)).status_code == 200
            assert (await self.post(served.http, authorization=f"Bearer {BOB}")).status_code == 200
            assert served.ids.made["key"] == 2

    async def test_what_is_anothers_looks_like_what_does_not_exist(self) -> None:
        async with self.serve(self.channel(auth=keys())) as served:
            theirs = self.run_id(await self.post(served.http, x_api_key=ALICE))
            for has_run in (False, True):
                if has_run:
                    await self.post(served.http, x_api_key=BOB)
                for real, made_up in zip(self.calls_about(theirs), self.calls_about(theirs[:-1] + "x"), strict=True):
                    answers = [
                        await served.http.request(method, path, headers={"x-api-key": BOB})
                        for method, path in (real, made_up)
                    ]
                    assert answers[0].status_code == 404
                    assert self.error_text(answers[0])
                    assert read_answer(answers[0]) == read_answer(answers[1])

    async def test_what_is_ones_own_is_found(self) -> None:
        async with self.serve(self.channel(auth=keys())) as served:
            mine = self.run_id(await self.post(served.http, x_api_key=ALICE))
            for method, path in self.calls_about(mine):
                answer = await served.http.request(method, path, headers={"x-api-key": ALICE})
                assert answer.status_code == 200
                assert self.run_id(answer) == mine

    async def test_a_page_of_another_origin_may_not_post(self) -> None:
        async with self.serve(self.channel()) as served:
            for origin in ("https://evil.example", "http://127.0.0.1:1", "null", "", "127.0.0.1"):
                answer = await self.post(served.http, origin=origin)
                assert answer.status_code == 403, origin
                assert self.error_text(answer), origin
                assert served.untouched(), origin

    async def test_a_page_of_the_host_itself_may_post(self) -> None:
        async with self.serve(self.channel()) as served:
            assert (await self.post(served.http, origin=served.base_url)).status_code == 200

    async def test_a_foreign_name_for_this_machine_is_not_this_machine(self) -> None:
        # What a page sees after its own name was pointed at the loopback address.
        async with self.serve(self.channel()) as served:
            answer = await self.post(served.http, host="rebound.example", origin="http://rebound.example")
            assert answer.status_code == 401
            assert self.error_text(answer)
            assert served.untouched()

    @pytest.mark.parametrize("hook", [fail_in_hook, return_nothing])
    async def test_a_hook_that_fails_is_a_422(self, hook: Any) -> None:
        async with self.serve(self.channel(run_hook=hook)) as served:
            answer = await self.post(served.http)
            assert answer.status_code == 422
            assert REASON not in self.error_text(answer)
            assert REASON not in answer.text
            assert served.untouched()

    async def test_a_hook_may_say_no_in_its_own_words(self) -> None:
        def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
            raise ForbiddenError("Not on Sundays.")

        async with self.serve(self.channel(run_hook=hook)) as served:
            answer = await self.post(served.http)
            assert answer.status_code == 403
            assert self.error_text(answer) == "Not on Sundays."
            assert served.untouched()

    async def test_a_target_that_fails_is_told_without_the_reason_and_not_tried_again(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with self.serve(self.channel(), FailingAgent(RuntimeError(REASON))) as served:
            answer = await self.post(served.http)
            # Clients repeat what is answered with one of these, and the target has run.
            assert answer.status_code < 500
            assert answer.status_code not in (408, 409, 425, 429)
            assert answer.headers["x-should-retry"] == "false"
            assert self.failure_text(answer)
            assert REASON not in answer.text
            assert REASON not in str(answer.headers)
            assert REASON in caplog.text

    async def test_twenty_callers_at_once_get_their_own_answers(self) -> None:
        async with self.serve(self.channel()) as served:
            answers = await asyncio.gather(*(self.post(served.http, f"number-{number}!") for number in range(20)))
            for number, answer in enumerate(answers):
                assert answer.status_code == 200
                assert f"number-{number}!" in answer.text
            assert len({self.run_id(answer) for answer in answers}) == 20
