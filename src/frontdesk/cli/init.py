"""`frontdesk init`: creates a new project. Overwrites no files."""

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from frontdesk.cli.terminal import CommandError, Terminal, visible


class Model(NamedTuple):
    """A model provider: how to create its client, what to install and which settings it needs."""

    title: str
    module: str
    call: str
    requirement: str
    settings: Sequence[tuple[str, str, str]]
    """Variables of the environment: the name, an example, and what it is."""


class ChannelTemplate(NamedTuple):
    """A channel type: how to create it, and how the generated test calls it."""

    title: str
    imports: str
    call: str
    test: str
    requirement: str = ""
    """The package that it needs besides Frontdesk, as in `requirements.txt`."""
    settings: Sequence[tuple[str, str, str]] = ()
    code: str = ""
    """The function of the project that makes the channel."""
    names: Sequence[str] = ()
    """The names that it needs from `frontdesk`."""
    kit: str = ""
    fixture: str = ""
    """The lines of the test's fixture that set what the channel needs."""
    over_http: bool = True
    """Whether the test asks it over HTTP."""


_OPENAI = "agent-framework-openai>=1.17,<2"
MODELS: Mapping[str, Model] = {
    "openai": Model(
        "OpenAI",
        "agent_framework.openai",
        "OpenAIChatClient()",
        _OPENAI,
        (
            ("OPENAI_API_KEY", "", "the key, such as sk-..."),
            ("OPENAI_CHAT_MODEL", "gpt-4.1-mini", "the model"),
        ),
    ),
    "azure": Model(
        "Azure OpenAI",
        "agent_framework.openai",
        'OpenAIChatClient(azure_endpoint=os.environ["AZURE_OPENAI_ENDPOINT"])',
        _OPENAI,
        (
            ("AZURE_OPENAI_ENDPOINT", "", "the resource, such as https://your-resource.openai.azure.com"),
            ("AZURE_OPENAI_API_KEY", "", "the key"),
            ("AZURE_OPENAI_CHAT_MODEL", "", "the name of the deployment"),
        ),
    ),
    "anthropic": Model(
        "Anthropic",
        "agent_framework.anthropic",
        "AnthropicClient()",
        "agent-framework-anthropic>=1.0.0b261022,<2",
        (
            ("ANTHROPIC_API_KEY", "", "the key, such as sk-ant-..."),
            ("ANTHROPIC_CHAT_MODEL", "claude-sonnet-4-5", "the model"),
        ),
    ),
    "ollama": Model(
        "Ollama, on this machine",
        "agent_framework.ollama",
        "OllamaChatClient()",
        "agent-framework-ollama>=1.0.0b261022,<2",
        (
            ("OLLAMA_HOST", "http://127.0.0.1:11434", "the server"),
            ("OLLAMA_MODEL", "llama3.2", "a model that was pulled"),
        ),
    ),
    "compatible": Model(
        "any server that speaks the Chat Completions API of OpenAI",
        "agent_framework.openai",
        "OpenAIChatCompletionClient()",
        _OPENAI,
        (
            ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1", "the server"),
            ("OPENAI_API_KEY", "any", "its key; any text if it wants none"),
            ("OPENAI_CHAT_COMPLETION_MODEL", "", "the model, by the name that the server knows"),
        ),
    ),
}

TELEGRAM_SETTINGS = (
    ("BOT_TOKEN", "", "the token that @BotFather gave you, such as 123456:ABC-DEF..."),
    ("TELEGRAM_PEOPLE", "", "who may write to the bot: ids of Telegram, separated by spaces; @userinfobot tells yours"),
)
_TELEGRAM = '''

def telegram() -> TelegramChannel:
    """Return the bot. It answers the people whose ids are listed, and nobody else."""
    people = os.environ.get("TELEGRAM_PEOPLE", "").split()
    return TelegramChannel(
        bot_token=os.environ["BOT_TOKEN"],
        api_url=os.environ.get("TELEGRAM_API_URL", "https://api.telegram.org"),
        transport="polling",
        allowlist=NativeIdAllowlist(people),
    )
'''
ACTIVITY_SETTINGS = (
    ("BOT_APP_ID", "", "the Microsoft App ID of the Azure Bot"),
    ("BOT_SECRET", "", "the client secret of its app registration"),
    ("BOT_TENANT", "", "the tenant of the app registration"),
    ("BOT_PEOPLE", "", "who may write to the bot: ids such as 29:..., separated by spaces"),
)
_ACTIVITY = '''

def azure_bot() -> ActivityChannel:
    """Return the bot. It answers the people whose ids are listed, and nobody else."""
    return ActivityChannel(
        app_id=os.environ["BOT_APP_ID"],
        credential=ClientSecret(os.environ["BOT_SECRET"], tenant=os.environ.get("BOT_TENANT") or None),
        connector_url=os.environ.get("BOT_CONNECTOR_URL"),
        allowlist=NativeIdAllowlist(os.environ.get("BOT_PEOPLE", "").split()),
    )
'''

CHANNEL_TEMPLATES: Mapping[str, ChannelTemplate] = {
    "web": ChannelTemplate(
        "a page to talk to, at /chat",
        "from frontdesk.channels.web import WebChatChannel",
        'WebChatChannel(title="Concierge")',
        """
def test_the_page_is_served(tmp_path):
    async def ask(client):
        return (await client.http.get("/chat")).raise_for_status().text

    assert "<title>Concierge</title>" in answered(ask, tmp_path)
""",
    ),
    "responses": ChannelTemplate(
        "the OpenAI Responses API, at /v1/responses",
        "from frontdesk.channels.responses import ResponsesChannel",
        "ResponsesChannel()",
        """
def test_a_client_of_the_responses_api_is_answered(tmp_path):
    async def ask(client):
        response = await client.http.post("/v1/responses", json={"input": "Hello"})
        return response.raise_for_status().json()["output"][0]["content"][0]["text"]

    assert answered(ask, tmp_path) == "Good day!"
""",
    ),
    "completions": ChannelTemplate(
        "the OpenAI Chat Completions API, at /v1/chat/completions",
        "from frontdesk.channels.chat_completions import ChatCompletionsChannel",
        "ChatCompletionsChannel()",
        """
def test_a_client_of_the_chat_completions_api_is_answered(tmp_path):
    async def ask(client):
        messages = [{"role": "user", "content": "Hello"}]
        response = await client.http.post("/v1/chat/completions", json={"model": "Concierge", "messages": messages})
        return response.raise_for_status().json()["choices"][0]["message"]["content"]

    assert answered(ask, tmp_path) == "Good day!"
""",
    ),
    "conversations": ChannelTemplate(
        "the OpenAI Conversations API, at /v1/conversations",
        "from frontdesk.channels.conversations import ConversationsChannel",
        "ConversationsChannel()",
        """
def test_a_conversation_is_kept(tmp_path):
    async def ask(client):
        items = [{"role": "user", "content": "Hello"}]
        talk = (await client.http.post("/v1/conversations", json={"items": items})).raise_for_status().json()
        kept = await client.http.get(f"/v1/conversations/{talk['id']}/items")
        return kept.raise_for_status().json()["data"][0]["content"][0]["text"]

    assert answered(ask, tmp_path) == "Hello"
""",
    ),
    "agui": ChannelTemplate(
        "web applications by AG-UI, at /agui",
        "from frontdesk.channels.agui import AGUIChannel",
        "AGUIChannel()",
        """
def test_a_web_application_is_answered(tmp_path):
    async def ask(client):
        message = {"id": "u1", "role": "user", "content": "Hello"}
        body = {"threadId": "t", "runId": "r", "messages": [message]}
        return (await client.http.post("/agui", json=body)).raise_for_status().text

    assert "RUN_FINISHED" in answered(ask, tmp_path)
""",
    ),
    "invocations": ChannelTemplate(
        "plain JSON, at /invocations",
        "from frontdesk.channels.invocations import InvocationsChannel",
        "InvocationsChannel()",
        """
def test_a_backend_is_answered(tmp_path):
    async def ask(client):
        return (await client.invoke("Hello"))["text"]

    assert answered(ask, tmp_path) == "Good day!"
""",
    ),
    "a2a": ChannelTemplate(
        "other agents, over the Agent2Agent protocol, at /a2a",
        "from frontdesk.channels.a2a import A2AChannel",
        "A2AChannel()",
        """
def test_another_agent_is_answered(tmp_path):
    async def ask(client):
        message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}
        headers = {"A2A-Version": "1.0"}
        response = await client.http.post("/a2a/v1/message:send", json={"message": message}, headers=headers)
        return response.raise_for_status().json()["task"]["artifacts"][0]["parts"][0]["text"]

    assert answered(ask, tmp_path) == "Good day!"
""",
    ),
    "mcp": ChannelTemplate(
        "a tool for MCP clients, at /mcp",
        "from frontdesk.channels.mcp import MCPChannel",
        "MCPChannel()",
        """
def test_an_mcp_client_is_answered(tmp_path):
    async def ask(client):
        from mcp import Client

        async with Client(f"{client.base_url}/mcp") as tools:
            result = await tools.call_tool("Concierge", {"message": "Hello"})
            return result.structured_content["text"]

    assert answered(ask, tmp_path) == "Good day!"
""",
        "mcp>=2.3,<3",
    ),
    "telegram": ChannelTemplate(
        "a bot on Telegram",
        "from frontdesk.channels.telegram import TelegramChannel",
        "telegram()",
        """
def test_a_person_on_telegram_is_answered(tmp_path, monkeypatch):
    async def talk():
        async with fake_telegram() as telegram:
            ann = telegram.user("Ann")
            monkeypatch.setenv("BOT_TOKEN", telegram.token)
            monkeypatch.setenv("TELEGRAM_API_URL", telegram.url)
            monkeypatch.setenv("TELEGRAM_PEOPLE", str(ann.id))
            host = build_host(ScriptedChatClient(["Good day!"]), state_dir=tmp_path / "state")
            async with serving(host):
                telegram.say(ann, "Hello")
                chat = telegram.private(ann)
                await telegram.until(lambda: telegram.shown(chat).answers)
                return telegram.shown(chat).answers

    assert asyncio.run(asyncio.wait_for(talk(), 60)) == ["Good day!"]
""",
        settings=TELEGRAM_SETTINGS,
        code=_TELEGRAM,
        names=("NativeIdAllowlist",),
        kit="\n    from frontdesk_testing.telegram import fake_telegram",
        fixture="""
    monkeypatch.setenv("BOT_TOKEN", "123456:a-token-that-opens-nothing-at-all")
    monkeypatch.setenv("TELEGRAM_API_URL", "http://127.0.0.1:9")
""",
        over_http=False,
    ),
    "activity": ChannelTemplate(
        "a bot of Azure Bot Service: Web Chat, Direct Line, Slack, Teams",
        "from frontdesk.channels.activity import ActivityChannel, ClientSecret",
        "azure_bot()",
        """
def test_a_person_behind_bot_service_is_answered(tmp_path, monkeypatch):
    async def talk():
        async with fake_activity() as service:
            monkeypatch.setenv("BOT_CONNECTOR_URL", service.url)
            ann = service.person("Ann")
            monkeypatch.setenv("BOT_PEOPLE", ann.id)
            host = build_host(ScriptedChatClient(["Good day!"]), state_dir=tmp_path / "state")
            async with serving(host) as client:
                service.webhook = f"{client.base_url}/activity/messages"
                service.say(ann, "Hello")
                await service.until(lambda: ann.chat.shown())
                return [message.text for message in ann.chat.shown()]

    assert asyncio.run(asyncio.wait_for(talk(), 60)) == ["Good day!"]
""",
        settings=ACTIVITY_SETTINGS,
        code=_ACTIVITY,
        names=("NativeIdAllowlist",),
        kit="\n    from frontdesk_testing.activity import APP_ID, APP_SECRET, fake_activity",
        fixture="""
    monkeypatch.setenv("BOT_APP_ID", APP_ID)
    monkeypatch.setenv("BOT_SECRET", APP_SECRET)
    monkeypatch.setenv("BOT_CONNECTOR_URL", "http://127.0.0.1:9")
""",
        over_http=False,
    ),
}

EXAMPLE = ".env.example"
"""The file that is copied to `.env`. A copy has no more permissions than the file itself."""
_REQUIREMENTS = "# Frontdesk itself is on no package index: README.md says how to install it.\n"
_GITIGNORE = ".env\nstate/\n.venv/\n__pycache__/\n.pytest_cache/\n"
_HOST = """\
\"\"\"The host of an agent: `make run` serves it.\"\"\"

{system}from agent_framework import Agent, tool
from frontdesk import {names}
{channels}

INSTRUCTIONS = "You are the concierge of a small hotel: warm and brief."


@tool(approval_mode="never_require")
def opening_hours(place: str) -> str:
    \"\"\"Return when a place of the hotel is open.\"\"\"
    return {{"breakfast": "7:00 to 10:30", "bar": "17:00 to 1:00"}}.get(place, "day and night")


@tool(approval_mode="always_require")
def book_room(nights: int) -> str:
    \"\"\"Book a room; a person is asked before this runs.\"\"\"
    return f"Booked for {{nights}} nights."


def chat_client():
    \"\"\"Return the client of the model, set up by {settings}.\"\"\"
    # Imported here, so that the test, which needs no model, does without the package.
    from {module} import {client}

    return {call}
{more}

def build_host(client=None, *, state_dir="state") -> AgentFrameworkHost:
    \"\"\"Build the host, with a given chat client or that of the model.\"\"\"
    tools = [opening_hours, book_room]
    agent = Agent(client or chat_client(), INSTRUCTIONS, name="Concierge", tools=tools)
    channels = [
{calls}
    ]
    return AgentFrameworkHost(agent, channels=channels, state_dir=state_dir)
"""
_TEST = """\
\"\"\"The test of the host, with a script in place of the model: no key, no network.\"\"\"

import asyncio
{third_party}
from frontdesk.scripted import ScriptedChatClient

from host import build_host

try:
{kit}
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('The test needs the testing kit: pip install "frontdesk[testing]"') from error
{fixtures}{helper}{tests}"""
_ANSWERED = """

def answered(ask, directory):
    \"\"\"Return the answer of a served host to a question.\"\"\"

    async def serve():
        host = build_host(ScriptedChatClient(["Good day!"]), state_dir=directory / "state")
        async with serving(host) as client:
            return await ask(client)

    return asyncio.run(asyncio.wait_for(serve(), 60))
"""
_SERVING = "    from frontdesk_testing import serving"
_FIXTURE = """

@pytest.fixture(autouse=True)
def bot(monkeypatch):
    \"\"\"Set what the bot needs; at this address nobody answers.\"\"\"{lines}"""
_MAKEFILE = """\
# Run it in the environment in which Frontdesk is installed: make install, make test, make run.
.PHONY: install test check run filled

install:
\t@python -c "import frontdesk" 2>/dev/null || { echo "Frontdesk is missing; README.md says how" >&2; false; }
\tpython -m pip install -r requirements.txt

test:
\t@python -c "import pytest" 2>/dev/null || { echo "pytest is missing: make install" >&2; false; }
\tpython -m pytest -q

check: filled
\tset -a; . ./.env; set +a; frontdesk check host.py:build_host

run: filled
\tset -a; . ./.env; set +a; frontdesk serve host.py:build_host

# Nobody else may read the keys, also if .env was written by hand.
filled: .env
\t@chmod go= .env
\t@! grep -n "=''$$" .env || { echo "Fill in these lines of .env, and run it again." >&2; false; }

.env:
\tumask 077 && cp .env.example .env
"""


README = "README.md"
_README = """\
# Concierge

The host of an agent, made with Frontdesk. `host.py` is the host, `test_host.py` its test.

## Install

Frontdesk is on no package index, so that `requirements.txt` can't name it. In a virtual environment, install it and its
testing kit from a checkout, or from wheels that were built in one
(`pip wheel --no-deps --wheel-dir dist . ./packages/frontdesk-testing`), and then the rest:

```sh
python -m venv .venv
. .venv/bin/activate
python -m pip install /path/to/frontdesk /path/to/frontdesk/packages/frontdesk-testing
make install
```

## Run

```sh
make test      # with a script in place of the model
make run       # writes .env the first time, and says what to fill in there; then it serves
```
"""


def list_files(model: str, channels: Sequence[str]) -> dict[str, str]:
    chosen, templates = MODELS[model], [CHANNEL_TEMPLATES[channel] for channel in channels]
    settings = [*chosen.settings, *(setting for template in templates for setting in template.settings)]
    lines = "".join(template.fixture for template in templates).replace("\n\n", "\n")
    own = filter(None, (template.requirement for template in templates))
    requirements = [chosen.requirement, *own, "pytest>=8"]
    return {
        "host.py": _host(chosen, templates),
        "test_host.py": _TEST.format(
            third_party="\nimport pytest" if lines else "",
            kit=_SERVING + "".join(template.kit for template in templates),
            fixtures=_FIXTURE.format(lines=lines) if lines else "",
            # A bot is not asked over HTTP.
            helper=_ANSWERED if any(template.over_http for template in templates) else "",
            tests="".join(f"\n{template.test}" for template in templates),
        ),
        EXAMPLE: "".join(f"# {told}\n{name}='{example}'\n" for name, example, told in settings),
        "requirements.txt": _REQUIREMENTS + "".join(f"{one}\n" for one in requirements),
        README: _README,
        "Makefile": _MAKEFILE,
        ".gitignore": _GITIGNORE,
    }


def _host(model: Model, channels: Sequence[ChannelTemplate]) -> str:
    names = sorted({"AgentFrameworkHost", *(name for template in channels for name in template.names)})
    more = "".join(template.code for template in channels)
    return _HOST.format(
        system="import os\n\n" if more or "os." in model.call else "",
        names=", ".join(names),
        channels="\n".join(sorted(template.imports for template in channels)),
        settings=", ".join(name for name, _, _ in model.settings),
        module=model.module,
        client=model.call.partition("(")[0],
        call=model.call,
        more=more,
        calls="\n".join(f"        {template.call}," for template in channels),
    )


_NEXT = """\
Next, in {place}:
  make install   # the client of the model
  make test      # with a script in place of the model
  make run       # writes .env the first time, and says what to fill in there; then it serves"""


def run(arguments: Namespace) -> int:
    """Write the files of a project. Prompt for anything missing on the command line."""
    terminal = Terminal()
    model: str = arguments.model or _ask_model(terminal)
    channels: list[str] = arguments.channels or _ask_channels(terminal)
    place = Path(arguments.directory)
    files = list_files(model, channels)
    if os.path.lexists(place / README):
        # A repository has one from its first day; the others are the project itself.
        del files[README]
    taken = sorted(name for name in files if os.path.lexists(place / name))
    if taken:
        raise CommandError(
            f"{place} has {', '.join(taken)} already. Existing files are not overwritten, choose another directory"
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            _write(place / name, text, mode=0o600 if name == EXAMPLE else 0o666)
    except OSError as error:
        raise CommandError(f"{place} can't be written: {error.strerror}") from None
    print(*(f"wrote {place / name}" for name in files), _NEXT.format(place=place), sep="\n")
    return 0


def _write(path: Path, text: str, *, mode: int) -> None:
    # A file that has appeared meanwhile is not overwritten either.
    with open(path, "x", encoding="utf-8", newline="\n", opener=partial(os.open, mode=mode)) as file:
        file.write(text)


def _ask_model(terminal: Terminal) -> str:
    """Prompt for the model. An empty line or the end of the input selects the first."""
    _offer("Which model?", {name: model.title for name, model in MODELS.items()})
    first = next(iter(MODELS))
    while name := terminal.read(f"model [{first}]: "):
        if name in MODELS:
            return name
        print(f"There is no {visible(name)!r} among them.")
    return first


def _ask_channels(terminal: Terminal) -> list[str]:
    titles = {name: template.title for name, template in CHANNEL_TEMPLATES.items()}
    _offer("Which channels, separated by commas?", titles)
    while line := terminal.read("channels [web,responses]: "):
        names = [name for name in line.replace(",", " ").split() if name]
        if names and set(names) <= set(CHANNEL_TEMPLATES):
            return [name for name in CHANNEL_TEMPLATES if name in names]
        print(f"There is no {visible(', '.join(sorted(set(names) - set(CHANNEL_TEMPLATES))))!r} among them.")
    return ["web", "responses"]


def _offer(question: str, choices: Mapping[str, str]) -> None:
    print(question, *(f"  {name:12} {title}" for name, title in choices.items()), sep="\n", flush=True)
