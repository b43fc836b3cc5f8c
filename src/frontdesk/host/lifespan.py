"""Start-up and shut-down: every callback runs, every failure is logged with its name, the first is raised."""

from collections.abc import Awaitable, Callable, Sequence

from frontdesk.errors import FrontdeskError
from frontdesk.loggers import host as log

Step = tuple[str, Callable[[], Awaitable[None]]]


async def run_all(stage: str, steps: Sequence[Step]) -> None:
    """Run every step, whatever happens to the others."""
    first: Exception | None = None
    for name, step in steps:
        try:
            await step()
        except Exception as error:
            if isinstance(error, FrontdeskError):
                # Its message says what is wrong; a traceback would not help.
                log.error("%s of %s failed: %s", stage, name, error)
            else:
                log.error("%s of %s failed", stage, name, exc_info=error)
            first = first or error
    if first is not None:
        raise first
