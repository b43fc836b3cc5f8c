"""`HttpAgent` of both versions against a host, and any updates through the verifiers of both."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.agui.events import TOOLS, Script
from frontdesk.framework.state_updates import state_update
from frontdesk.models.run import RunRecord
from tests.channels.agui.agui_agent import build_agent
from tests.channels.agui.agui_client import checked, open_page
from tests.examples import examples
from tests.node_program import INSTALLED, SCRIPTS, node_with

CLIENTS = ("@ag-ui/client", "ag-ui-client-0.0")
NODE = node_with("@ag-ui/client", "the AG-UI channel with")


async def run_script(place: Path, name: str, client: str, *arguments: str, **environment: str) -> str:
    """Run a script beside its `node_modules`."""
    if not (place / "node_modules").exists():
        (place / "node_modules").symlink_to(INSTALLED, target_is_directory=True)
    script = shutil.copy(SCRIPTS / name, place)
    process = await asyncio.create_subprocess_exec(
        *(NODE, script, *arguments),
        env={"AGUI_CLIENT": client, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode()
    return said.decode()


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_conversation_of_http_agent(client: str, tmp_path: Path) -> None:
    async with open_page(build_agent()) as page:
        url = str(page.http.base_url.join("/agui"))
        await run_script(tmp_path, "agui.mjs", client, AGUI_URL=url)


_TEXTS = st.text(max_size=8)
_NAMES = st.sampled_from(["c1", "c2", "c3", "client", None])


def _call(call_id: str | None, arguments: str) -> Content:
    name = "" if call_id is None else "paint" if call_id == "client" else "draw"
    return Content.from_function_call(call_id or "", name, arguments=arguments)


_CONTENTS = st.one_of(
    _TEXTS.map(Content.from_text),
    _TEXTS.map(lambda text: Content.from_text_reasoning(text=text)),
    st.builds(_call, _NAMES, _TEXTS),
    st.builds(lambda name, text: Content.from_function_result(name or "", result=text), _NAMES, _TEXTS),
    st.just(Content.from_uri("https://example.com/a.png", media_type="image/png")),
    st.builds(lambda name: Content.from_function_approval_request(f"q-{name}", _call(name or "c9", "{}")), _NAMES),
    st.just(Content.from_error(message="It broke.")),
)
_UPDATES = st.builds(
    lambda contents, role, message_id: AgentResponseUpdate(contents=contents, role=role, message_id=message_id),
    st.lists(_CONTENTS, max_size=3),
    st.sampled_from(["assistant", "tool", None]),
    st.sampled_from(["m1", "m2", None]),
)
_STATES = st.just(state_update(None, b'{"a":1}')) | st.just(state_update(b'{"a":1}', b'{"a":1,"long":"text text"}'))


def _stream(updates: list[AgentResponseUpdate], status: Any, is_current: bool) -> list[dict[str, Any]]:
    run = RunRecord(
        run_id="run_1",
        owner="o",
        channel="agui",
        status="running",
        created_at=0.0,
        stream=True,
        details={TOOLS: ["paint"]},
    )
    script = Script(run, thread_id="t", is_current=is_current)
    result = AgentResponse.from_updates(updates) if status == "completed" else None
    parts = [*script.begin()]
    for update in updates:
        parts += script.update(update)
    parts += script.end(run.replace(status=status), result)
    return checked(b"".join(parts))


@examples(20)
@given(data=st.data())
def test_any_updates_pass_the_verifiers(data: st.DataObject, tmp_path: Path) -> None:
    streams = [
        _stream(
            data.draw(st.lists(_UPDATES | _STATES, max_size=8)),
            data.draw(st.sampled_from(["completed", "failed", "cancelled"])),
            data.draw(st.booleans()),
        )
        for _ in range(10)
    ]
    old = [
        [event for event in stream if "outcome" not in event or event["outcome"] != {"type": "cancelled"}]
        for stream in streams
    ]
    for client, given_streams in zip(CLIENTS, (streams, old), strict=True):
        place = tmp_path / "streams.jsonl"
        place.write_text("".join(json.dumps(stream) + "\n" for stream in given_streams))
        said = asyncio.run(run_script(tmp_path, "agui_verify.mjs", client, str(place)))
        assert set(said.split("\n")) <= {"ok", ""}, said


def test_a_whole_result_has_the_ids_of_its_stream() -> None:
    message = Message("assistant", ["one ", "two"])
    update = AgentResponseUpdate(contents=message.contents, role="assistant")
    (_, started, *_) = _stream([update], "completed", True)
    assert started["messageId"] == "msg_run_1_0"
