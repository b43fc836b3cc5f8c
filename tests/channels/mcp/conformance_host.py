"""A host whose tools have the names and the answers that the conformance suite of MCP expects."""

import asyncio
import json
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

from agent_framework import (
    Content,
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from pydantic import BaseModel, Field, WithJsonSchema

from frontdesk import AgentFrameworkHost, ChannelRequest
from frontdesk.channels.mcp import MCPChannel, MCPTool

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

RICH_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

HEADERS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
    "required": ["region"],
}


@dataclass
class Call:
    tool: str
    arguments: str


class Registration(BaseModel):
    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


class Named(BaseModel):
    name: str


class Coloured(BaseModel):
    color: str


class Confirmed(BaseModel):
    ok: bool


class Status(Enum):
    ACTIVE = "active"
    INACTIVE = "inactive"
    PENDING = "pending"


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


_TITLED = [{"const": f"value{number}", "title": f"{word} Option"} for number, word in ((1, "First"), (2, "Second"))]
_OPTIONS = ["option1", "option2", "option3"]
_LEGACY = {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]}


class Enums(BaseModel):
    untitledSingle: Literal["option1", "option2", "option3"]
    titledSingle: Annotated[str, WithJsonSchema({"type": "string", "oneOf": _TITLED})]
    legacyEnum: Annotated[str, WithJsonSchema(_LEGACY)]
    untitledMulti: Annotated[
        list[str], WithJsonSchema({"type": "array", "items": {"type": "string", "enum": _OPTIONS}})
    ]
    titledMulti: Annotated[list[str], WithJsonSchema({"type": "array", "items": {"anyOf": _TITLED}})]


CONTENTS: dict[str, list[Content]] = {
    "test_simple_text": [Content.from_text("This is a simple text response for testing.")],
    "test_image_content": [Content.from_uri(f"data:image/png;base64,{PNG}", media_type="image/png")],
    "test_audio_content": [Content.from_uri(f"data:audio/wav;base64,{WAV}", media_type="audio/wav")],
    "test_embedded_resource": [Content.from_uri("data:text/plain;base64,VGhpcw==", media_type="text/plain")],
    "test_multiple_content_types": [
        Content.from_text("Multiple content types test:"),
        Content.from_uri(f"data:image/png;base64,{PNG}", media_type="image/png"),
        Content.from_uri("data:application/json;base64,e30=", media_type="application/json"),
    ],
}
QUESTIONS: dict[str, list[tuple[str, str, type[Any]]]] = {
    "test_elicitation": [("form", "Please register", Registration)],
    "test_elicitation_sep1034_defaults": [("form", "Please check", Defaults)],
    "test_elicitation_sep1330_enums": [("form", "Please choose", Enums)],
    "test_input_required_result_elicitation": [("user_name", "What is your name?", Named)],
    "test_input_required_result_request_state": [("confirm", "Please confirm", Confirmed)],
    "test_input_required_result_tampered_state": [("confirm", "Please confirm", Confirmed)],
    "test_input_required_result_multi_round": [("step1", "Step 1: What is your name?", Named)],
    "test_input_required_result_multiple_inputs": [
        ("user_name", "What is your name?", Named),
        ("confirm", "Please confirm", Confirmed),
    ],
    "test_input_required_result_capabilities": [("user_name", "What is your name?", Named)],
    "test_streaming_elicitation": [("user_name", "What is your name?", Named)],
    "test_tool_with_task": [("user_name", "What is your name?", Named)],
    "confirm_delete": [("confirm", "Delete the file?", Confirmed)],
    "multi_input": [("first", "First?", Confirmed), ("second", "Second?", Named)],
}
OTHERS = [
    "test_error_handling",
    "test_tool_with_progress",
    "test_missing_capability",
    "test_logging_tool",
    "test_sampling",
    "greet",
    "slow_compute",
    "failing_job",
]
SLOW_SECONDS = 1.0
"""The time that tools take before they ask, so that their calls have become tasks."""


@dataclass
class Question:
    question: str
    tool: str
    step: str


class Tools(Executor):
    @handler
    async def call(self, call: Call, context: WorkflowContext[Any, Any]) -> None:
        arguments = json.loads(call.arguments)
        if call.tool in CONTENTS:
            return await context.yield_output(CONTENTS[call.tool])
        if call.tool in ("confirm_delete", "multi_input"):
            await asyncio.sleep(SLOW_SECONDS)
        for name, text, answer in QUESTIONS.get(call.tool, []):
            await context.request_info(Question(text, call.tool, name), answer, request_id=name)
        if call.tool not in QUESTIONS:
            await context.yield_output(await _answer(call.tool, arguments))

    @response_handler
    async def registered(self, asked: Question, answer: Registration, context: WorkflowContext[Any, Any]) -> None:
        await context.yield_output(f"User response: {answer.username}")

    @response_handler
    async def checked(self, asked: Question, answer: Defaults, context: WorkflowContext[Any, Any]) -> None:
        await context.yield_output(f"Elicitation completed: {answer.name}")

    @response_handler
    async def chosen(self, asked: Question, answer: Enums, context: WorkflowContext[Any, Any]) -> None:
        await context.yield_output("Elicitation completed")

    @response_handler
    async def confirmed(self, asked: Question, answer: Confirmed, context: WorkflowContext[Any, Any]) -> None:
        await context.yield_output(f"state-ok: {answer.ok}")

    @response_handler
    async def coloured(self, asked: Question, answer: Coloured, context: WorkflowContext[Any, Any]) -> None:
        await context.yield_output(f"The color is {answer.color}")

    @response_handler
    async def named(self, asked: Question, answer: Named, context: WorkflowContext[Any, Any]) -> None:
        if asked.step == "step1":
            question = Question("Step 2: What is your favorite color?", asked.tool, "step2")
            return await context.request_info(question, Coloured, request_id="step2")
        if asked.tool == "test_tool_with_task":
            await asyncio.sleep(SLOW_SECONDS)
        await context.yield_output(f"Hello, {answer.name}!")


async def _answer(tool: str, arguments: dict[str, Any]) -> str:
    if tool == "test_error_handling":
        raise RuntimeError("This tool intentionally returns an error for testing")
    if tool == "failing_job":
        await asyncio.sleep(SLOW_SECONDS)
        raise RuntimeError("The job has failed")
    if tool == "slow_compute":
        await asyncio.sleep(float(arguments.get("seconds", 0)))
    if tool == "test_tool_with_progress":
        await asyncio.sleep(0.1)
    return f"Hello, {arguments.get('name', 'you')}!"


def build_workflow() -> Any:
    return WorkflowBuilder(name="conformance", start_executor=Tools(id="tools"), output_from="all").build()


def make_input(request: ChannelRequest, **_: Any) -> ChannelRequest:
    """Make the input of the workflow from the name of the tool and its arguments."""
    if request.client_outputs or request.approvals:
        return request
    given = request.attributes["arguments"]
    return request.replace(input={"tool": request.attributes["tool"], "arguments": json.dumps(given)})


def build_host() -> AgentFrameworkHost:
    anything = {"type": "object"}
    named = ("greet", "test_missing_capability", "failing_job")
    tools = [
        MCPTool(name=name, description=f"The tool {name}.", input_schema=anything)
        for name in (*CONTENTS, *QUESTIONS, *OTHERS)
        if name not in named
    ]
    tools += [
        MCPTool(name="greet", description="Greets.", input_schema=anything, tasks="never"),
        MCPTool(name="test_missing_capability", description="Needs.", input_schema=anything, tasks="always"),
        MCPTool(name="failing_job", description="Fails.", input_schema=anything, tasks="always"),
        MCPTool(name="test_custom_headers", description="Mirrors headers.", input_schema=HEADERS_SCHEMA),
        MCPTool(name="json_schema_2020_12_tool", description="Has a rich schema.", input_schema=RICH_SCHEMA),
    ]
    return AgentFrameworkHost(
        target=build_workflow, channels=[MCPChannel(tools=tools, run_hook=make_input, task_after_seconds=0.5)]
    )
