"""What things that are no channels add to a host."""

from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, HostContribution, OneTimeCodeIdentityLinker
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.interfaces.host import ContributesToHost
from frontdesk_testing import EchoAgent


def page(text: str) -> Route:
    return Route("/{name}", lambda request: PlainTextResponse(f"{text} {request.path_params['name']}"))


class Diary:
    """Notes what is called."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def entry(self, line: str) -> Any:
        async def write() -> None:
            self.lines.append(line)

        return write

    def contribution(self, name: str) -> HostContribution:
        stages = ("on_startup", "on_serving", "on_shutdown")
        callbacks: dict[str, Any] = {stage: [self.entry(f"{name} {stage}")] for stage in stages}
        return HostContribution(name=name, path=f"/{name}", routes=[page(name)], **callbacks)


async def test_a_contribution_has_routes_and_callbacks() -> None:
    diary = Diary()

    class Linker(OneTimeCodeIdentityLinker, ContributesToHost):
        def contribute_to_host(self) -> HostContribution:
            return diary.contribution("proofs")

    host = AgentFrameworkHost(
        EchoAgent(),
        channels=[InvocationsChannel()],
        linker=Linker(),
        contributions=[diary.contribution("pages")],
        on_startup=[diary.entry("own on_startup")],
        on_shutdown=[diary.entry("own on_shutdown")],
    )
    async with host.app.router.lifespan_context(host.app):
        transport = httpx.ASGITransport(host.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://desk") as client:
            assert (await client.get("/pages/here")).text == "pages here"
            assert (await client.get("/proofs/there")).text == "proofs there"
            assert (await client.get("/elsewhere/here")).status_code == 404
    assert diary.lines == [
        "proofs on_startup",
        "pages on_startup",
        "own on_startup",
        "proofs on_serving",
        "pages on_serving",
        "own on_shutdown",
        "pages on_shutdown",
        "proofs on_shutdown",
    ]


@pytest.mark.parametrize(
    ("given", "finding"),
    [
        (HostContribution(name="pages", findings=["no template"]), "pages: no template"),
        (
            HostContribution(name="pages", path="/invocations", routes=[page("x")]),
            "pages: its path '/invocations' is also that of the channel 'invocations'",
        ),
        (
            HostContribution(name="pages", path="/readyz", routes=[page("x")]),
            "pages: its path '/readyz' is also that of the host",
        ),
        (
            HostContribution(name="pages", path="pages/", routes=[page("x")]),
            "pages: its path 'pages/' must begin with a slash and not end with one",
        ),
        ("pages", "'pages' is not a HostContribution"),
    ],
)
def test_what_is_wrong_is_found_when_the_host_is_built(given: Any, finding: str) -> None:
    with pytest.raises(ChannelConfigurationError) as error:
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], contributions=[given])
    assert error.value.findings == (finding,)


def test_two_with_one_path_are_found() -> None:
    twice = [HostContribution(name=name, path="/pages", routes=[page("x")]) for name in ("a", "b")]
    with pytest.raises(ChannelConfigurationError, match="b: its path '/pages' is also that of a"):
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], contributions=twice)


def test_a_warning_is_one_of_the_host() -> None:
    slow = HostContribution(name="pages", warnings=["they are slow"])
    host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], contributions=[slow])
    assert "pages: they are slow" in host.warnings
