"""A workflow that asks before it answers, and writes down what it was told."""

from pathlib import Path

from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler


class Asker(Executor):
    """Asks about what begins with `ask`, and repeats everything else."""

    def __init__(self, ledger: Path) -> None:
        super().__init__("asker")
        self._ledger = ledger

    @handler
    async def hear(self, text: str, context: WorkflowContext[str, str]) -> None:
        if text.startswith("ask"):
            await context.request_info({"question": "Sure?"}, bool)
        else:
            await context.yield_output(f"heard {text}")

    @response_handler
    async def decide(self, asked: dict, answer: bool, context: WorkflowContext[str, str]) -> None:
        with self._ledger.open("a") as ledger:
            ledger.write(f"{answer}\n")
        await context.yield_output(f"sure {answer}")


def build_workflow(ledger: Path) -> Workflow:
    """The workflow."""
    asker = Asker(ledger)
    return WorkflowBuilder(name="asker", start_executor=asker, output_from=[asker]).build()
