"""Chooses the chat client of the demo's agent: a real model if there is a key for one, else the script."""

import sys
from dataclasses import dataclass
from typing import Any

from frontdesk.demo.client import ScriptedClient
from frontdesk.errors.extras import install_hint
from frontdesk.host.config import openai_settings

DEFAULT_MODEL = "gpt-4.1-mini"


@dataclass(frozen=True)
class Choice:
    """A chat client, and the reason of the choice."""

    client: Any
    note: str


def choose_client() -> Choice:
    """Return the client for the key in `OPENAI_API_KEY`, or the scripted one."""
    key, model = openai_settings()
    if key is None:
        return Choice(
            ScriptedClient(),
            "The model is a script: no key, no network. Set OPENAI_API_KEY to talk to a real one.",
        )
    client = _openai(key, model or DEFAULT_MODEL)
    if client is None:
        return Choice(
            ScriptedClient(),
            "OPENAI_API_KEY is set, but the package that uses it is missing, so the model is a script. To install it:\n"
            f"  {install_hint('openai', sys.executable)}",
        )
    return Choice(client, f"The model is {model or DEFAULT_MODEL} of OpenAI; OPENAI_MODEL chooses another.")


def _openai(key: str, model: str) -> Any:
    try:
        from agent_framework.openai import OpenAIChatClient  # pyright: ignore
    except ImportError:
        return None
    return OpenAIChatClient(model=model, api_key=key)  # pyright: ignore
