"""The contract of chat channels for intake: forged bodies, and an unavailable platform."""

from collections.abc import Mapping

import pytest

from frontdesk.clock import SystemClock
from frontdesk_testing.agents import EchoAgent
from frontdesk_testing.chat_driver import Chat, ChatDriver

_HOUR = 3_600.0
_LIMIT = 20_000


async def _post(chat: Chat, body: bytes, headers: Mapping[str, str]) -> int:
    sent = {"content-type": "application/json", **headers}
    return (await chat.client.http.post(chat.webhook, content=body, headers=sent)).status_code


class WebhookBodies(ChatDriver):
    """Bodies of webhook requests."""

    async def test_only_what_the_platform_has_signed_is_taken(self) -> None:
        agent = EchoAgent()
        async with self.chat(agent, max_body_bytes=_LIMIT) as chat:
            eve, now = await chat.platform.person("Eve"), SystemClock().now()
            body, other = chat.platform.event(eve, "let me in"), chat.platform.event(eve, "something else")
            right, large = chat.platform.signed(body, at=now), chat.platform.event(eve, "x" * (_LIMIT + 1))
            assert await _post(chat, body, {}) in self.refused_statuses
            if self.signs_bodies:
                assert await _post(chat, other, right) == 401
            for name in right:
                assert await _post(chat, body, {**right, name: ""}) in self.refused_statuses, name
                assert await _post(chat, body, {**right, name: "nonsense"}) in self.refused_statuses, name
            for at in (now - _HOUR, now + _HOUR) if self.signs_times else ():
                assert await _post(chat, body, chat.platform.signed(body, at=at)) == 401
            assert await _post(chat, large, chat.platform.signed(large, at=now)) == 413
            for text in (b"", b"{", b"[]", b"nonsense", b'{"id": 7}'):
                assert await _post(chat, text, chat.platform.signed(text, at=now)) == self.unreadable_status, text
            assert agent.seen == []
            assert await _post(chat, body, right) == 200
            assert await chat.texts(eve.chat_id, 1) == ["let me in"]
            # A copy changes nothing.
            assert await _post(chat, body, right) == 200
            assert await chat.pushed(eve) == ["let me in", "the last word"]

    async def test_a_platform_that_is_away_at_the_start_is_asked_again(self) -> None:
        async with self.platform() as platform:
            await platform.go_away(times=2)
            async with self.chat(platform=platform) as chat:
                ada = await platform.person("Ada")
                await platform.say(ada, "hello")
                assert await chat.texts(ada.chat_id, 1) == ["hello"]

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    async def test_other_methods_are_refused(self, method: str) -> None:
        if method == "GET" and self.has_handshake:
            pytest.skip("the platform asks so whether it is the right webhook")
        async with self.chat() as chat:
            answer = await chat.client.http.request(method, chat.webhook)
            assert answer.status_code == 405
