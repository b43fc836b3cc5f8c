"""`ChatPlatformBase`: what its subclasses need not do themselves."""

import httpx
import pytest

from tests.contracts.test_letterbox import Letterbox


async def _send(platform: Letterbox, text: str, key: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        letter = {"to": "d-0", "text": text, "key": key}
        return await http.post(f"{platform.url}/letters", json=letter)


async def _fail_in_a_fake(*, waits: bool) -> None:
    async def never() -> bool:
        return False

    async with Letterbox() as platform, httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(httpx.TransportError):
            await http.post(f"{platform.url}/letters", json={"text": "no recipient"})
        if waits:
            await platform.until(never)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_mistake_in_a_fake_is_raised(waits: bool) -> None:
    with pytest.raises(KeyError, match="to"):
        await _fail_in_a_fake(waits=waits)


async def test_a_known_key_has_one_message() -> None:
    async with Letterbox() as platform:
        first, again = await _send(platform, "hello", "k"), await _send(platform, "hello", "k")
        assert first.json() == again.json()
        assert [message.text for message in await platform.shown("d-0")] == ["hello"]


@pytest.mark.parametrize(("failure", "status"), [("limited", 429), ("unavailable", 503), ("refused", 403)])
async def test_a_failure_is_for_one_message(failure: str, status: int) -> None:
    async with Letterbox() as platform:
        await platform.fail(failure)  # pyright: ignore[reportArgumentType]
        assert (await _send(platform, "hello", "k")).status_code == status
        assert await platform.shown("d-0") == []
        assert (await _send(platform, "hello", "k")).status_code == 200


async def test_a_lost_response_leaves_its_message() -> None:
    async with Letterbox() as platform:
        await platform.fail("lost")
        with pytest.raises(httpx.TransportError):
            await _send(platform, "hello", "k")
        assert [message.text for message in await platform.shown("d-0")] == ["hello"]


async def test_a_platform_that_is_away_refuses_every_call() -> None:
    async with Letterbox() as platform, httpx.AsyncClient(trust_env=False) as http:
        await platform.go_away(times=1)
        assert (await http.get(f"{platform.url}/me")).status_code == 503
        assert (await http.get(f"{platform.url}/me")).status_code == 200
