"""The page about clients, made from what was found. Pure."""

from typing import Any

TRIED = {
    "answer": "one question, one answer",
    "stream": "an answer that comes word by word",
    "history": "a second question that needs the first",
    "tools": "a tool that runs in the client",
    "structure": "an answer in the form of a schema",
    "pictures": "a picture in the question",
    "failure": "a run whose tool has charged and which then fails, whole and streamed: charged once, the message shown",
}
"""What is tried with every client."""

_HEAD = """\
# Clients

Clients of others on a host with [Responses](responses.md) and [Chat Completions](chat-completions.md), with nothing
set but their base URL and a key. This page is made by `make clients`, which installs each of them at the version
below, runs it against a host, and writes [what it found](../../tests/clients/results.json).
"""

_EMPTY = "An empty cell was not tried: the client has no such thing, or no way to ask for it from outside."

_NOTES = (
    "- The class `OpenAIResponses` of `llama-index` needs a target that counts tokens: without `usage` it fails after "
    "the answer.\n- `agent-framework-openai` repeats a streamed text once at its end, in an update that says so: read "
    "`get_final_response()`.\n- `agent-framework-openai` and `llama-index` don't read the `status` and the `error` of "
    "a response: on Responses a run that failed looks like an empty answer."
)


def page(results: dict[str, Any]) -> str:
    """Return the page for what was found."""
    columns = list(TRIED)
    lines = [_HEAD, "| client | version | API | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 3) + "|"]
    broken: list[str] = []
    for name, client in results.items():
        for door, found in client["found"].items():
            cells = [_cell(found.get(column)) for column in columns]
            lines.append(f"| `{name}` | {client['version']} | {door} | " + " | ".join(cells) + " |")
            wrong = ((what, said) for what, said in found.items() if said != "yes")
            broken += [f"- `{name}` on {door}, {what}: `{said.replace('`', '')}`" for what, said in wrong]
    lines += ["", _EMPTY, "", _NOTES]
    if broken:
        lines += ["", "What did not work, in the client's words:", "", *broken]
    lines += ["", "## What was tried", "", "| name | what |", "| --- | --- |"]
    lines += [f"| {name} | {what} |" for name, what in TRIED.items()]
    return "\n".join([*lines, ""])


def _cell(said: str | None) -> str:
    return "" if said is None else "yes" if said == "yes" else "no"
