"""The page about clients, made from what was found. Pure."""

from typing import Any

TRIED = {
    "answer": "a question and its answer",
    "stream": "a streamed answer",
    "history": "a second question that needs the first",
    "tools": "a tool that runs in the client",
    "structure": "structured output",
    "pictures": "an image in the question",
    "approval": "a tool call that waits for the user's approval",
    "failure": "a run that fails after a tool call, also streamed: the tool ran once, the message is shown",
}
"""What is tried with every client."""

_HEAD = """\
# Tested clients

Clients of [Responses](responses.md), [Chat Completions](chat-completions.md) and [A2A](a2a.md) with only a base URL and
a key set.
`make clients` generates this page: it runs each client against a host and stores the
[results](../../tests/clients/results.json).
"""

_EMPTY = "An empty cell was not tested, because the client lacks the feature."

_NOTES = (
    "- `OpenAIResponses` of `llama-index` fails without `usage`, so it needs a target that counts tokens.\n"
    "- `agent-framework-openai` repeats a streamed text in its last update. Read `get_final_response()`.\n"
    "- `agent-framework-openai` and `llama-index` ignore `status` and `error`. On Responses a failed run looks like an "
    "empty answer."
)


def page(results: dict[str, Any]) -> str:
    """Return the page for what was found."""
    columns = list(TRIED)
    lines = [_HEAD, "| client | version | API | " + " | ".join(columns) + " |", "|---" * (len(columns) + 3) + "|"]
    broken: list[str] = []
    for name, client in results.items():
        for door, found in client["found"].items():
            cells = [_cell(found.get(column)) for column in columns]
            lines.append(f"| `{name}` | {client['version']} | {door} | " + " | ".join(cells) + " |")
            wrong = ((what, said) for what, said in found.items() if said != "yes")
            broken += [f"- `{name}` on {door}, {what}: `{said.replace('`', '')}`" for what, said in wrong]
    lines += ["", _EMPTY, "", _NOTES]
    if broken:
        lines += ["", "Failures, as the clients report them:", "", *broken]
    lines += ["", "## Tests", "", "| test | content |", "|---|---|"]
    lines += [f"| {name} | {what} |" for name, what in TRIED.items()]
    return "\n".join([*lines, ""])


def _cell(said: str | None) -> str:
    return "" if said is None else "yes" if said == "yes" else "no"
