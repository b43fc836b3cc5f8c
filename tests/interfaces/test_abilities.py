"""Every optional ability is a base class that the host knows."""

import importlib
import inspect
import pkgutil
from abc import ABCMeta
from typing import Any

import pytest

import frontdesk.interfaces
from frontdesk.chat import abilities as chat_abilities
from frontdesk.chat.abilities import chat_ability
from frontdesk.chat.live_mixin import FindsMessages, TypingNotices
from frontdesk.interfaces.abilities import auth_ability, channel_ability, linker_ability, store_ability


def _classes() -> list[type]:
    modules = [
        importlib.import_module(f"frontdesk.interfaces.{found.name}")
        for found in pkgutil.iter_modules(frontdesk.interfaces.__path__)
        if not found.ispkg
    ]
    return [
        kind
        for module in (*modules, chat_abilities)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__
    ]


CLASSES = _classes()
DECLARED = [*channel_ability, *chat_ability, *linker_ability, *store_ability, *auth_ability]
NO_ABILITIES = {"Channel", "ChannelContext"}
"""Abstract classes that are required interfaces."""
OF_ADAPTERS = {"ShowsToolSchemas", "RequiresApprovals", "GivesUpQuestions", "FollowsResponses", "ChoosesLoading"}
"""Abilities of the adapters of targets and of history providers, which the host does not check."""
PROTOCOLS = {"HttpAuth", "RequestAuth", "BindsRequestContext"}
"""Required interfaces of credentials, and the context providers of others."""


def test_every_ability_is_declared() -> None:
    abstract = {kind.__name__ for kind in CLASSES if type(kind) is ABCMeta}
    # Other abilities of chats are in `chat/live_mixin.py`.
    declared = {kind.__name__ for kind in DECLARED if kind not in (FindsMessages, TypingNotices)}
    assert abstract - NO_ABILITIES - OF_ADAPTERS == declared


def test_only_required_interfaces_and_shapes_of_others_are_checked_by_their_methods() -> None:
    runtime = {kind.__name__ for kind in CLASSES if getattr(kind, "_is_runtime_protocol", False)}
    assert runtime == PROTOCOLS


@pytest.mark.parametrize("ability", DECLARED, ids=lambda kind: kind.__name__)
def test_a_method_alone_gives_no_ability(ability: Any) -> None:
    members = {name: (lambda self: None) for name in ability.__abstractmethods__}
    assert not isinstance(type("Look", (), members)(), ability)
    assert isinstance(type("Named", (ability,), members), type)
