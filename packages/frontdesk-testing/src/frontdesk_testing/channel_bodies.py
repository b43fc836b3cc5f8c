"""The contract of HTTP channels for malformed requests."""

from frontdesk_testing.agents import GatedAgent
from frontdesk_testing.channel_driver import ChannelDriver

BROKEN = {
    "nothing": b"",
    "half an object": b'{"a": 1',
    "words": b"hello",
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "two values": b"{} {}",
    "NaN": b'{"a": NaN}',
    "a lone surrogate": b'{"a": "\\ud800"}',
    "ten thousand arrays": b"[" * 10_000 + b"]" * 10_000,
    "ten thousand objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "null": b"null",
    "a number": b"1",
    "a list": b"[]",
    "an empty object": b"{}",
}


class Bodies(ChannelDriver):
    """Bad requests get an error in the channel's shape. Nothing is run and nothing is stored."""

    async def test_a_message_is_answered(self) -> None:
        async with self.serve(self.channel()) as served:
            answer = await self.post(served.http, "hello there")
            assert answer.status_code == 200
            assert [messages[-1].text for messages in served.agent.seen] == ["hello there"]
            assert self.run_id(answer)

    async def test_the_channel_stays_under_its_path(self) -> None:
        channel = self.channel()
        assert channel.name
        assert channel.findings() == []
        assert self.path.startswith(channel.path)

    async def test_an_unknown_path_is_a_404(self) -> None:
        async with self.serve(self.channel()) as served:
            answer = await served.http.get(f"{self.path}/no/such/path/anywhere")
            assert answer.status_code == 404
            assert self.error_text(answer)

    async def test_an_unknown_method_is_a_405(self) -> None:
        async with self.serve(self.channel()) as served:
            answer = await served.http.patch(self.path, json=self.message("hello"))
            assert answer.status_code == 405
            assert self.error_text(answer)
            assert served.untouched()

    async def test_a_broken_body_is_a_400(self) -> None:
        async with self.serve(self.channel()) as served:
            for name, body in BROKEN.items():
                answer = await served.http.post(self.path, content=body, headers={"content-type": "application/json"})
                assert answer.status_code == 400, name
                assert self.error_text(answer), name
                assert served.untouched(), name

    async def test_another_content_type_is_a_415(self) -> None:
        # A page of another origin can send the first two without asking.
        async with self.serve(self.channel()) as served:
            for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "x"):
                answer = await served.http.post(self.path, content=self.body("hello"), headers={"content-type": kind})
                assert answer.status_code == 415, kind
                assert self.error_text(answer), kind
                assert served.untouched(), kind

    async def test_a_body_that_is_announced_too_large_is_refused_unread(self) -> None:
        async with self.serve(self.channel(max_body_bytes=1000)) as served:
            head = self._head("content-length: 1000000000000")
            answer = await served.send_raw(head, b"{")
            assert answer.status_code == 413
            assert self.error_text(answer)
            assert served.untouched()

    async def test_a_body_that_grows_too_large_is_refused_before_its_end(self) -> None:
        async with self.serve(self.channel(max_body_bytes=1000)) as served:
            chunk = b"1f4\r\n" + b" " * 500 + b"\r\n"
            answer = await served.send_raw(self._head("transfer-encoding: chunked"), chunk * 3)
            assert answer.status_code == 413
            assert self.error_text(answer)
            assert served.untouched()

    async def test_the_largest_body_is_taken(self) -> None:
        body = self.body("hello")
        async with self.serve(self.channel(max_body_bytes=len(body))) as served:
            head = {"content-type": "application/json"}
            assert (await served.http.post(self.path, content=body, headers=head)).status_code == 200
            assert (await served.http.post(self.path, content=body + b" ", headers=head)).status_code == 413
            assert len(served.agent.seen) == 1

    async def test_half_a_body_is_a_408(self) -> None:
        async with self.serve(self.channel(body_timeout=0.05)) as served:
            answer = await served.send_raw(self._head("content-length: 100"), b'{"a": ')
            assert answer.status_code == 408
            assert self.error_text(answer)
            assert served.untouched()

    async def test_a_client_that_leaves_takes_its_run_along(self) -> None:
        agent = GatedAgent()
        async with self.serve(self.channel(), agent) as served:
            body = self.body("hello")
            _, writer = await served.connect()
            writer.write("\r\n".join([*self._head(f"content-length: {len(body)}"), "host: 127.0.0.1", "", ""]).encode())
            writer.write(body)
            await agent.started.wait()
            writer.close()
            await agent.cancelled.wait()
            assert agent.running == 0

    def _head(self, *headers: str) -> list[str]:
        return [f"POST {self.path} HTTP/1.1", "content-type: application/json", *headers]
