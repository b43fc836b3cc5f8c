"""What a hook adds to an identity reaches the operator's resolver, and lets nobody in whom the resolver refuses."""

from collections.abc import Callable
from typing import Any

import pytest

from frontdesk.errors import ForbiddenError
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest, ChannelSession
from tests.access.door import ALICE, BOB, CALLER, Door

Resolver = Callable[[ChannelIdentity], Any]


async def _later(identity: ChannelIdentity) -> str:
    return identity.attributes["app_user_id"]


RESOLVERS: dict[str, Resolver] = {
    "by key": lambda one: one.attributes["app_user_id"],
    "by get": lambda one: one.attributes.get("app_user_id"),
    "by in": lambda one: "app_user_id" in one.attributes and one.attributes["app_user_id"],
    "async": _later,
}


def _adds(**attributes: Any) -> Any:
    def hook(wire: ChannelRequest) -> ChannelRequest:
        return wire.replace(identity=ALICE.replace(attributes=attributes))

    return hook


@pytest.mark.parametrize("name", RESOLVERS)
async def test_the_resolver_never_saw_what_the_hook_had_added(name: str) -> None:
    admitted = await Door(resolver=RESOLVERS[name]).enter(hook=_adds(app_user_id="user_alice"))
    assert admitted.owner == "user_alice"
    assert admitted.identity.attributes == {"app_user_id": "user_alice"}


async def test_the_owner_stayed_the_one_before_the_hook() -> None:
    door = Door(resolver=lambda one: one.attributes.get("app_user_id", "nobody in particular"))
    assert (await door.enter(hook=_adds(app_user_id="user_alice"))).owner == "user_alice"


@pytest.mark.parametrize("name", RESOLVERS)
async def test_who_is_not_introduced_by_the_hook_is_refused_after_it(name: str) -> None:
    door = Door(resolver=RESOLVERS[name])
    for hook in (lambda wire: wire, _adds(name="Alice")):
        with pytest.raises(ForbiddenError):
            await door.enter(hook=hook)
    assert await door.is_empty()


@pytest.mark.parametrize("name", RESOLVERS)
async def test_without_a_hook_who_lacks_the_attribute_is_refused(name: str) -> None:
    with pytest.raises(ForbiddenError):
        await Door(resolver=RESOLVERS[name]).enter()


async def test_who_is_refused_outright_reaches_no_hook() -> None:
    def hook(wire: ChannelRequest) -> ChannelRequest:
        raise AssertionError("the hook was called")

    with pytest.raises(ForbiddenError):
        await Door(resolver=lambda one: None).enter(hook=hook)


@pytest.mark.parametrize(
    "changes",
    [{"identity": BOB.replace(attributes={"app_user_id": "user_bob"})}, {"session": ChannelSession(isolation_key="x")}],
    ids=["another identity", "another session"],
)
async def test_a_hook_can_not_pass_somebody_unknown_off_as_another(changes: dict[str, Any]) -> None:
    door = Door(resolver=RESOLVERS["by get"])
    with pytest.raises(ForbiddenError):
        await door.enter(hook=lambda wire: wire.replace(**changes))


async def test_who_asks_a_human_is_still_the_one_whom_the_hook_has_introduced() -> None:
    door = Door(resolver=RESOLVERS["by key"])
    admitted = await door.enter(caller=CALLER, hook=_adds(app_user_id="user_alice"))
    assert await door.gate.requester(admitted) is None
