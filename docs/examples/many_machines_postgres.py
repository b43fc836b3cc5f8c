"""One host on many machines: start it as often as you like, and workers beside it.

frontdesk serve docs/examples/many_machines_postgres.py:host --port 8001
frontdesk serve docs/examples/many_machines_postgres.py:host --port 8002
frontdesk worker docs/examples/many_machines_postgres.py:host
"""

import os
from collections.abc import Mapping
from typing import Any

from frontdesk import AgentFrameworkHost, PostgresStateStore, ProcrastinateTaskRunner, RetryPolicy
from frontdesk.channels.invocations import InvocationsChannel

store = PostgresStateStore(os.environ["DATABASE_URL"])
runner = ProcrastinateTaskRunner(store)


async def remind(payload: Mapping[str, Any]) -> None:
    """A task of one's own: it runs at least once, in whichever process has room."""
    print(f"It is time: {payload['what']}")


runner.register("remind", remind, retry=RetryPolicy(attempts=3, first_delay=5.0))


async def answer(text: str) -> str:
    await runner.schedule("remind", {"what": text}, task_id=f"remind {text}")
    return f"I'll remind you: {text}"


host = AgentFrameworkHost(target=answer, channels=[InvocationsChannel()], store=store, runner=runner)
