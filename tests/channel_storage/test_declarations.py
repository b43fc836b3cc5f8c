"""What channels and linkers say of themselves is heeded: warnings, start-up and shut-down, rates of groups."""

import logging
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, Channel, ChannelContribution, OneTimeCodeIdentityLinker
from frontdesk.delivery.limits import SendLimits
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.interfaces.linker import SupportsLinkShutdown, SupportsLinkStartup
from frontdesk.models.delivery import DestinationKind
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.store_samples import delivery
from tests.scenarios.delivery.parcel_chat import ParcelChat, echo, open_host


class Worried(Channel):
    """A channel that writes down when it starts and stops."""

    name, path, requires_auth_when_public, session_family = "worried", "/worried", False, "host_tracked"

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        return ChannelContribution(on_startup=[self._start], on_shutdown=[self._stop])

    def warnings(self) -> list[str]:
        return ["its token ends soon"]

    async def _start(self) -> None:
        self._log.append("channel starts")

    async def _stop(self) -> None:
        self._log.append("channel stops")


class Prepared(OneTimeCodeIdentityLinker, SupportsLinkStartup, SupportsLinkShutdown):
    """A linker that opens and closes something."""

    def __init__(self, log: list[str], *, fails: bool = False) -> None:
        super().__init__()
        self._log = log
        self._fails = fails

    async def on_startup(self) -> None:
        self._log.append("linker starts")
        if self._fails:
            raise OSError("no socket")

    async def on_shutdown(self) -> None:
        self._log.append("linker stops")


def make(log: list[str], **settings: Any) -> AgentFrameworkHost:
    linker = Prepared(log, **settings)
    return AgentFrameworkHost(echo, channels=[Worried(log)], linker=linker, store=InMemoryStateStore())


async def test_a_channel_warns_at_the_start_and_in_the_check(caplog: pytest.LogCaptureFixture) -> None:
    host = make([])
    assert "channel 'worried': its token ends soon" in host.warnings
    async with host.app.router.lifespan_context(host.app):
        assert caplog.text.count("its token ends soon") == 1


async def test_a_linker_starts_before_the_channels_and_stops_after_them() -> None:
    log: list[str] = []
    host = make(log)
    async with host.app.router.lifespan_context(host.app):
        assert log == ["linker starts", "channel starts"]
    assert log[2:] == ["channel stops", "linker stops"]


async def test_a_linker_that_does_not_start_keeps_the_host_from_starting(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    log: list[str] = []
    host = make(log, fails=True)
    with pytest.raises(OSError, match="no socket"):
        await host.app.router.lifespan_context(host.app).__aenter__()
    # As for channels, the others are started and all are stopped.
    assert log == ["linker starts", "channel starts", "channel stops", "linker stops"]
    assert "callback failed: callback=start-up owner=linker" in caplog.text


async def test_a_part_says_whether_it_goes_to_a_group() -> None:
    chat = ParcelChat(scope="per_conversation")
    async with open_host(chat):
        kinds = [(await chat.hear(chat.who("ann"), "hello", group=group)).kind for group in ("room", None)]
    assert kinds == ["group", "direct"]


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ({}, "direct"),
        ({"conversation_id": "room"}, "group"),
        ({"conversation_id": "dm", "queue": "ann"}, "direct"),
    ],
)
def test_a_delivery_knows_the_kind_of_its_destination(place: dict[str, Any], kind: DestinationKind) -> None:
    assert delivery(**place).kind == kind


@pytest.mark.parametrize(("per_group", "free_at"), [(None, 0.5), (0.25, 4.0)])
def test_a_group_has_a_rate_of_its_own(per_group: float | None, free_at: float) -> None:
    limits = SendLimits(None, 2.0, per_group=per_group)
    assert limits.enter("room", 0.0, "group") == 0.0
    assert limits.enter("room", 0.0, "group") == free_at
    assert limits.enter("ann", 0.0) == 0.0
    assert limits.enter("ann", 0.0) == 0.5
