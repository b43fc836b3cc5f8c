"""Serves the page of docs/examples with the modules that npm has installed, in place of those of a public server."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Page, Route

from tests.docs.pages import ROOT
from tests.node_program import INSTALLED

ADDRESS = "http://127.0.0.1:8080"
"""The origin that the example accepts. Nothing listens there: the requests are answered here."""
_MODULES = "https://esm.sh/"
_IMPORT = re.compile(r"""((?:from|import)\s*)(["'])(@?[a-z][\w./@-]*)\2""")


async def open_agui_page(page: Page, host: str) -> None:
    """Open the page of the example for a host."""
    await page.route(f"{_MODULES}**", _send_module)
    await page.route(f"{ADDRESS}/**", _send_page)
    await page.goto(f"{ADDRESS}/agui_page.html?host={host}/agui")


async def _send_page(route: Route) -> None:
    await route.fulfill(path=ROOT / "docs/examples/agui_page.html", content_type="text/html")


async def _send_module(route: Route) -> None:
    name = urlsplit(route.request.url).path.lstrip("/")
    if (INSTALLED / name).is_file():
        source = _IMPORT.sub(lambda found: f'{found[1]}"{_address(found[3])}"', (INSTALLED / name).read_text("utf-8"))
    else:
        # Relative imports are resolved against the address of the file.
        source = f'export * from "{_address(name)}";'
    headers = {"access-control-allow-origin": "*"}
    await route.fulfill(body=source, content_type="text/javascript", headers=headers)


def _address(name: str) -> str:
    return f"{_MODULES}{_find(name).relative_to(INSTALLED.resolve()).as_posix()}"


def _find(name: str) -> Path:
    """Return the file of a module: of a package, of one of its entries, or of a path without its ending."""
    installed = INSTALLED.resolve()
    path = installed / re.sub(r"(?<=.)@[\d.]+$", "", name)
    for candidate in (path, path.with_name(f"{path.name}.js")):
        if candidate.is_file():
            return candidate
    parts = path.relative_to(installed).parts
    count = 2 if parts[0].startswith("@") else 1
    package, entry = installed.joinpath(*parts[:count]), "/".join((".", *parts[count:]))
    described: dict[str, Any] = json.loads((package / "package.json").read_text())
    exported: Any = described.get("exports", {}).get(entry)
    while isinstance(exported, dict):
        names = ("browser", "es2015", "import", "module", "default")
        exported = next(exported[name] for name in names if name in exported)
    return (package / (exported or described.get("module") or described["main"])).resolve()
