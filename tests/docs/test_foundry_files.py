"""The files to deploy, and the two samples."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from frontdesk import AgentFrameworkHost
from frontdesk_testing import serving
from frontdesk_testing.telegram import fake_telegram

FILES = Path(__file__).parents[2] / "docs/examples/foundry"
PROTOCOLS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["protocol", "version"],
        "additionalProperties": False,
        "properties": {
            "protocol": {"enum": ["responses", "invocations", "activity"]},
            "version": {"const": "2.0.0"},
        },
    },
}
VARIABLES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "value"],
        "additionalProperties": False,
        "properties": {
            # Foundry sets these itself, and refuses an agent that does.
            "name": {"type": "string", "pattern": "^(?!FOUNDRY_|AGENT_|PORT$)[A-Z][A-Z0-9_]*$"},
            "value": {"type": "string"},
        },
    },
}
NAME = {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$"}
AGENT = {
    "type": "object",
    "required": ["kind", "name", "protocols"],
    "additionalProperties": False,
    "properties": {
        "kind": {"const": "hosted"},
        "name": NAME,
        "description": {"type": "string"},
        "protocols": PROTOCOLS,
        "environment_variables": VARIABLES,
    },
}
MANIFEST = {
    "type": "object",
    "required": ["name", "template"],
    "additionalProperties": False,
    "properties": {
        "name": NAME,
        "description": {"type": "string"},
        "template": AGENT,
        "resources": {
            "type": "array",
            "items": {"type": "object", "required": ["kind", "id", "name"], "properties": {"kind": {"const": "model"}}},
        },
    },
}
AZURE = {
    "type": "object",
    "required": ["name", "services"],
    "properties": {
        "name": NAME,
        "services": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "type": "object",
                "required": ["host", "project", "language"],
                "properties": {"host": {"const": "azure.ai.agent"}, "language": {"const": "docker"}},
            },
        },
    },
}


def _read(name: str) -> Any:
    return yaml.safe_load((FILES / name).read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "schema"), [("agent.yaml", AGENT), ("agent.manifest.yaml", MANIFEST), ("azure.yaml", AZURE)]
)
def test_the_files_have_the_form_that_the_tools_read(name: str, schema: dict[str, Any]) -> None:
    jsonschema.validate(_read(name), schema)


def test_the_files_say_the_same() -> None:
    agent, template, project = _read("agent.yaml"), _read("agent.manifest.yaml")["template"], _read("azure.yaml")
    assert {name: agent[name] for name in template} == template
    assert list(project["services"]) == [agent["name"]]
    docker = project["services"][agent["name"]]["docker"]
    assert (FILES / docker["path"]).is_file()


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (FILES / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in text.splitlines() if line.strip()]


def test_the_image_is_slim_and_not_of_root_and_is_probed() -> None:
    named = dict(instructions())
    assert re.fullmatch(r"python:3\.\d+-slim", named["FROM"])
    kinds = [kind for kind, _ in instructions()]
    assert kinds.index("USER") < kinds.index("CMD")
    assert named["USER"] not in ("root", "0")
    assert "/readiness" in named["HEALTHCHECK"]
    assert named["EXPOSE"] == "8088"
    command = json.loads(named["CMD"])
    assert command == ["frontdesk", "serve", "agent.py:host"]
    copied = {source for kind, rest in instructions() if kind == "COPY" for source in rest.split()[:-1]}
    assert all(list(FILES.glob(name)) for name in copied if not name.endswith(".whl"))


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FOUNDRY_HOSTING_ENVIRONMENT", raising=False)
    return tmp_path


def _sample(name: str) -> AgentFrameworkHost:
    spec = importlib.util.spec_from_file_location(f"foundry_{name}", FILES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.host


async def test_the_hosted_agent_runs_on_a_laptop(at_home: Path) -> None:
    async with serving(_sample("agent")) as client:
        one = (await client.http.post("/responses", json={"input": "good day"})).json()
        assert one["id"].startswith("caresp_")
        assert one["output"][0]["content"][0]["text"].startswith("You said: good day. Before that, you said 0")
        more = {"input": "and now?", "previous_response_id": one["id"]}
        two = (await client.http.post("/responses", json=more)).json()
        assert two["output"][0]["content"][0]["text"].endswith("you said 1 other things.")
        assert (await client.invoke("hello"))["text"].startswith("You said: hello")
        assert (await client.http.get("/readiness")).status_code == 200


async def test_a_chat_comes_in_by_the_path_of_invocations(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with fake_telegram() as telegram:
        monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "test")
        monkeypatch.setenv("TELEGRAM_SECRET", "a-secret-of-the-relay")
        monkeypatch.setenv("TELEGRAM_TOKEN", telegram.token)
        monkeypatch.setenv("TELEGRAM_URL", telegram.url)
        ada = telegram.user("Ada")
        telegram.start(ada)
        chat = telegram.private(ada)
        person = {"id": ada.id, "is_bot": False, "first_name": "Ada"}
        message = {"message_id": 1, "date": 1, "chat": {"id": ada.id, "type": "private"}, "from": person, "text": "hi"}
        update = {"update_id": 5, "message": message}
        async with serving(_sample("chat")) as client:
            refused = await client.http.post("/invocations", json=update)
            assert refused.status_code == 401
            secret = {"x-client-telegram-secret": "a-secret-of-the-relay"}
            taken = await client.http.post("/invocations", json=update, headers=secret)
            assert taken.status_code == 200, taken.text
            await telegram.until(lambda: telegram.shown(chat).answers == ["You said: hi"])
