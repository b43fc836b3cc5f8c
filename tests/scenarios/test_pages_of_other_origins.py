"""A page in a real browser calls a host of another origin: with its key, and as a stream."""

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, serving
from tests.browser import chromium, need_chromium

CHROMIUM = need_chromium("pages of other origins")
KEY = "the-key-of-somebody"
AUTH = ApiKeyAuth({"somebody": KEY})
FETCH = """
async ([url, key, body]) => {
  const headers = {"content-type": "application/json", "authorization": `Bearer ${key}`};
  try {
    const answer = await fetch(url, {method: "POST", headers, body: JSON.stringify(body)});
    return [answer.status, await answer.text(), answer.headers.get("x-request-id") !== null];
  } catch (error) {
    return [0, error.name, false];
  }
}
"""


async def test_a_page_calls_the_host_that_lists_its_origin_and_no_other() -> None:
    elsewhere = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()])
    async with serving(elsewhere) as site, chromium(CHROMIUM) as open_tab:
        # By another name for the same machine, so that the browser takes it for another site.
        origin = site.base_url.replace("127.0.0.1", "localhost")
        channels = [
            ResponsesChannel(auth=AUTH, allowed_origins=[origin]),
            InvocationsChannel(auth=AUTH, allowed_origins=["https://another.example"]),
        ]
        async with serving(AgentFrameworkHost(EchoAgent(), channels=channels)) as client:
            tab = await open_tab()
            await tab.page.goto(f"{origin}/healthz")

            async def fetch(path: str, key: str, **body: object) -> tuple[int, str, bool]:
                return tuple(await tab.page.evaluate(FETCH, [client.base_url + path, key, body]))

            status, text, named = await fetch("/v1/responses", KEY, input="good day")
            assert (status, "good day" in text, named) == (200, True, True)
            status, text, _ = await fetch("/v1/responses", KEY, input="good day", stream=True)
            assert (status, "event: response.completed" in text) == (200, True)
            status, text, named = await fetch("/v1/responses", "wrong", input="good day")
            assert (status, "authentication_error" in text, named) == (401, True, True)
            assert await fetch("/invocations", KEY, message="good day") == (0, "TypeError", False)
