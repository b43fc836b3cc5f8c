"""Rules of the code, of which each is a function of a root directory that returns the violations."""

import ast
import gc
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path("src/frontdesk")
TESTING = Path("packages/frontdesk-testing/src/frontdesk_testing")
KIT = "frontdesk_testing/"
"""Where the places of the modules of the testing kit begin."""
CHANNEL_FILES = {"__init__", "config", "channel"}
CATCH_ALL = {"common", "helper", "helpers", "kit", "misc", "parts", "shared", "util", "utils"}
MAX_MODULES = 482
MAX_SINGLE_IMPORTS = 64

# Where a broad `except` ends an error, because nobody is left who could, or throws it into the coroutine that waits for
# it: every run is recorded, every callback of the host runs, what was changed stays so if nobody can be told of it,
# every HTTP request and every message on a socket is answered, nobody waits for the task of a background run, of an
# event, of a runner or of a lane, a store's writer tells everybody whose transaction was in the batch, the thread
# for large values tells whoever waits for a job, and no request fails because of the telemetry;
# and every platform is asked, whatever the check of another does.
ENDS = {
    "cli/check.py",
    "inbox/worker.py",
    "host/app.py",
    "delivery/proactive.py",
    "runs/background/worker.py",
    "http/endpoint.py",
    "concurrency/offload.py",
    "chat/connection.py",
    "http/sockets.py",
    "telemetry/spans.py",
    "pipeline.py",
    "runners/base.py",
    "stores/sql/postgres/engine.py",
    "stores/sql/sqlite/engine.py",
}
# Where it raises an error of ours instead: around functions that are not ours.
TRANSLATES = {
    "activity/credentials.py",
    "cli/load.py",
    "cli/mcp.py",
    "cli/worker.py",
    "serialization/codec.py",
    "delivery/push.py",
    "host/conversations/context.py",
    "hooks.py",
    "http/detached_runs.py",
    "http/sockets.py",
    "runners/base.py",
    "targets/detect.py",
}

# Who may open connections, or handle sockets. A URL that a user or a message can influence is fetched by the first
# alone, and a channel calls its platform by the two after it alone; the others go where the operator or the person at
# the terminal says, listen, look at connections that are there, or look up this machine's name.
WAYS_OUT = {
    "outbound/client.py",
    "outbound/platform.py",
    "outbound/platform_socket.py",
    "outbound/network.py",
    "auth/oidc.py",
    "admin/socket_file.py",
    "cli/demo.py",
    "cli/chat.py",
    "cli/mcp.py",
    "admin/client.py",
    "cli/serve.py",
    "state_dir/lock.py",
    "server/uvicorn_server.py",
    "server/unread.py",
    "stores/sql/postgres/connections.py",
}

# Who may start tasks, timers and threads: the first for all others, and those that have threads of their own, which
# carry no context.
STARTS = {"concurrency/tasks.py", "outbound/network.py", "stores/sql/sqlite/engine.py"}

Check = Callable[[Path], list[str]]


@cache
def _parse(text: bytes) -> ast.Module:
    # Python 3.11 loses count of its own depth when garbage is collected in the middle of this.
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()


@cache
def walk(tree: ast.Module) -> list[ast.AST]:
    """Return all nodes of a module; most rules go through all of them."""
    return list(ast.walk(tree))


def sources(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Return every module of the package by its place in it, and those of the testing kit below `KIT`."""
    for package, prefix in ((PACKAGE, ""), (TESTING, KIT)):
        for path in sorted((root / package).rglob("*.py")):
            yield prefix + path.relative_to(root / package).as_posix(), _parse(path.read_bytes())


def texts(root: Path, *suffixes: str) -> Iterator[tuple[str, str]]:
    """Every file that people write, by its place in the tree."""
    own = [path for part in ("src", "packages", "tests", "bench", "docs") for path in (root / part).rglob("*")]
    for path in sorted([*own, *root.glob("*.md")]):
        if path.suffix in suffixes:
            yield path.relative_to(root).as_posix(), path.read_text("utf-8")


def imports(root: Path) -> list[str]:
    """A module imports only from the layers below its own, and a channel only what channels may."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str((root / TESTING).parent)])}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return [] if done.returncode == 0 else re.findall(r"^- +(.+)$", said, re.MULTILINE) or [said]


def file_sizes(root: Path) -> list[str]:
    """No file but the changelog has more than 600 lines."""
    lengths = {place: text.count("\n") for place, text in texts(root, ".py", ".md") if place != "CHANGELOG.md"}
    return [f"{place} has {length} lines" for place, length in lengths.items() if length > 600]


def function_sizes(root: Path) -> list[str]:
    """No function of the package has more than 60 lines."""
    return [
        f"{place}: {node.name} has {length} lines"
        for place, tree in sources(root)
        for node in walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1) > 60
    ]


def prose(root: Path) -> list[str]:
    """There is less than 0.35 lines of prose to a line of code."""
    counts = [_count_lines(path) for package in (PACKAGE, TESTING) for path in (root / package).rglob("*.py")]
    words, code = (sum(column) for column in zip(*counts, strict=True))
    return [] if words < 0.35 * code else [f"{words} lines of prose to {code} lines of code"]


def _count_lines(path: Path) -> tuple[int, int]:
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    words: set[int] = set()
    code: set[int] = set()
    fresh = True
    for token in tokens[1:]:
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT or (fresh and token.type == tokenize.STRING):
            words.update(lines)
        elif token.string.strip():
            code.update(lines)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            fresh = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return len(words), len(code)


def broad_excepts(root: Path) -> list[str]:
    """A broad `except` raises again, or is in one of the few files that have a reason."""
    wrong: list[str] = []
    found: dict[str, set[str]] = {"ends": set(), "translates": set()}
    for place, tree in sources(root):
        for node in walk(tree):
            if not isinstance(node, ast.ExceptHandler) or not _is_broad(node.type) or _raises_again(node):
                continue
            what = "translates" if isinstance(node.body[-1], ast.Raise) else "ends"
            found[what].add(place)
            if place not in (TRANSLATES if what == "translates" else ENDS):
                wrong.append(f"{place}:{node.lineno}: a broad except {what} whatever comes")
    wrong += [f"{place} is listed among those that end errors, and does not" for place in ENDS - found["ends"]]
    unused = TRANSLATES - found["translates"]
    return wrong + [f"{place} is listed among those that translate errors, and does not" for place in unused]


def _raises_again(node: ast.ExceptHandler) -> bool:
    last = node.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _is_broad(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_is_broad(one) for one in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in ("Exception", "BaseException"))


def environment(root: Path) -> list[str]:
    """Only the host's configuration reads the environment."""
    asked = re.compile(r"\b(environ|getenv|environb)\b")
    return [f"{place} reads the environment" for place in _with_names(root, asked, {"host/config.py"})]


def time_and_chance(root: Path) -> list[str]:
    """Only `clock` and `ids` know what time it is, and draw lots."""
    asked = re.compile(r"(time|random|uuid|secrets|datetime\.now|datetime\.utcnow|date\.today|os\.urandom)")
    return [f"{place} uses time or chance" for place in _with_names(root, asked, {"clock.py", "ids.py"})]


def _with_names(root: Path, asked: re.Pattern[str], allowed: set[str]) -> list[str]:
    """The places that import one of some modules, or use one of their names."""
    found: list[str] = []
    for place, tree in sources(root):
        names: set[str] = set()
        for node in walk(tree):
            if isinstance(node, ast.Import):
                names.update(one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.update([node.module or "", *(f"{node.module}.{one.name}" for one in node.names)])
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names.add(f"{node.value.id}.{node.attr}")
        hits = any(asked.fullmatch(name) or asked.fullmatch(name.removeprefix("os.")) for name in names)
        if hits and place not in allowed:
            found.append(place)
    return found


def ways_out(root: Path) -> list[str]:
    """Only the files that are named for it can reach the network; the test kit is no part of a host."""
    asked = re.compile(
        r"requests|socket|requests\.(api|sessions|adapters)"
        r"|(httpx2?|httpcore|aiohttp|urllib3|urllib\.request|http\.client|ftplib|smtplib|websockets|pycurl)(\..*)?"
        r"|authlib\.integrations\..*|\w+\.(open_connection|create_connection|sock_connect)"
    )
    found = {place for place in _with_names(root, asked, set()) if not place.startswith(KIT)}
    wrong = [f"{place} can reach the network, and is not one that may" for place in sorted(found - WAYS_OUT)]
    return wrong + [f"{place} is listed as a way out, and is none" for place in sorted(WAYS_OUT - found)]


def task_starts(root: Path) -> list[str]:
    """Only `concurrency/tasks.py` starts tasks and timers, so that each says if it shares its starter's context."""
    asked = re.compile(
        r"(create_task|ensure_future|call_later|call_at|call_soon(_threadsafe)?|run_in_executor"
        r"|run_coroutine_threadsafe|TaskGroup|create_task_group|start_soon|Thread|Timer)"
    )
    wrong: list[str] = []
    found: set[str] = set()
    for place, tree in sources(root):
        if place.startswith(KIT):
            continue
        for node in walk(tree):
            if not isinstance(node, (ast.Attribute, ast.ImportFrom)):
                continue
            names = [node.attr] if isinstance(node, ast.Attribute) else [one.name for one in node.names]
            if any(asked.fullmatch(name) for name in names):
                found.add(place)
                if place not in STARTS:
                    wrong.append(f"{place}:{node.lineno} starts a task, a timer or a thread by itself")
    return wrong + [f"{place} is listed as one that starts tasks, and does not" for place in sorted(STARTS - found)]


def admission(root: Path) -> list[str]:
    """Only the gate makes an `AdmittedRequest`, and nothing behind it copies one with other fields."""
    calls = [
        (place, node.lineno, ast.unparse(node.func))
        for place, tree in sources(root)
        for node in walk(tree)
        if isinstance(node, ast.Call)
    ]
    wrong = [
        f"{place}:{line} makes an AdmittedRequest"
        for place, line, name in calls
        if name.split(".")[-1] == "AdmittedRequest" and place != "access/gate.py"
    ]
    return wrong + [
        f"{place}:{line} copies a noun past its own methods"
        for place, line, name in calls
        if name.endswith("structs.replace")
        and not place.startswith(
            ("activity/", "auth/", "channels/", "chat/", "framework/", "markdown/", "models/", "serialization/", KIT)
        )
    ]


def seams(root: Path) -> list[str]:
    """Tests and benchmarks come to the parts of a host by `frontdesk_testing.internals` alone."""
    return [
        f"{place}:{number} reaches into a host"
        for place, text in texts(root, ".py")
        if place.startswith(("tests/", "bench/"))
        and place not in ("tests/architecture.py", "tests/test_architecture.py")
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(r"(?<!\bself)\._parts\b", line)
    ]


def public_names(root: Path) -> list[str]:
    """Every public name is in `__all__`, sorted, and is loaded from a module that defines and documents it."""
    tree = ast.parse((root / PACKAGE / "__init__.py").read_bytes())
    values = {_get_target(node): node.value for node in tree.body if isinstance(node, ast.Assign)}
    exported: list[str] = ast.literal_eval(values["__all__"])
    modules: dict[str, str] = ast.literal_eval(values["_MODULES"])
    homes = {name: module for module, names in modules.items() for name in names.split()}
    typed = {
        one.asname or one.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }
    wrong = [] if exported == sorted(set(exported)) else ["__all__ is not sorted"]
    wrong += [f"{name} is not in all of __all__, _MODULES and the imports" for name in set(exported) ^ set(homes)]
    wrong += [f"{name} has another home for type checkers" for name, _ in set(homes.items()) ^ set(typed.items())]
    return wrong + [
        f"{name} is not defined and documented in {home}" for name, home in homes.items() if not _at(root, name, home)
    ]


def _get_target(node: ast.Assign) -> str:
    return ast.unparse(node.targets[0])


def _at(root: Path, name: str, home: str) -> bool:
    path = (root / "src" / home.replace(".", "/")).with_suffix(".py")
    if not path.exists():
        return False
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return ast.get_docstring(node) is not None
        if isinstance(node, ast.Assign) and _get_target(node) == name:
            return True
    return False


def channels(root: Path) -> list[str]:
    """Every channel has a `channel.py` and a `config.py`, and its package exports the channel."""
    wrong: list[str] = []
    for package in sorted(path for path in (root / PACKAGE / "channels").iterdir() if (path / "__init__.py").exists()):
        files = {path.stem for path in package.glob("*.py")}
        wrong += [f"channels/{package.name} has no {name}.py" for name in sorted(CHANNEL_FILES - files)]
        tree = ast.parse((package / "__init__.py").read_bytes())
        values = {_get_target(node): node.value for node in tree.body if isinstance(node, ast.Assign)}
        exported = set(ast.literal_eval(values["__all__"])) if "__all__" in values else set()
        imported = {one.name for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names}
        if exported != imported or not any(name.endswith("Channel") for name in exported):
            wrong.append(f"channels/{package.name}: __all__ must name the channel and whatever else is imported there")
    return wrong


def subjects(root: Path) -> list[str]:
    """Folders and files are named for a subject."""
    wrong: list[str] = []
    for place, _ in sources(root):
        names = place.removesuffix(".py").split("/")
        wrong += [f"{place}: {name} names no subject" for name in names if name in CATCH_ALL]
    return wrong


def fragments(root: Path) -> list[str]:
    """The package is not cut into small pieces: few modules, and few that only one other module imports."""
    importers: dict[str, set[str]] = {}
    places = [place for place, _ in sources(root) if not place.startswith(KIT)]
    for place, tree in sources(root):
        if place.startswith(KIT):
            continue
        own = _module(place)
        for node in walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            elif isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            else:
                continue
            for name in names:
                importers.setdefault(name, set()).add(own)
    wrong = [f"{len(places)} modules"] if len(places) > MAX_MODULES else []
    single = [
        place
        for place in places
        if not place.endswith("__init__.py")
        and len({one for one in importers.get(_module(place), ()) if not _module(place).startswith(f"{one}.")}) == 1
    ]
    return wrong + (
        [f"{len(single)} modules are imported by one other only"] if len(single) > MAX_SINGLE_IMPORTS else []
    )


def _module(place: str) -> str:
    return f"frontdesk.{place.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


def cycles(root: Path) -> list[str]:
    """No two packages import each other, directly or by others."""
    uses: dict[str, set[str]] = {}
    for place, tree in sources(root):
        if place.startswith(KIT):
            continue
        package = place.split("/")[0].removesuffix(".py")
        for node in walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("frontdesk."):
                uses.setdefault(package, set()).add(str(node.module).split(".")[1])
    reached = {package: _find_reached(package, uses) for package in uses}
    return [
        f"{one} and {other} import each other"
        for one in sorted(uses)
        for other in sorted(uses)
        if one < other and other in reached[one] and one in reached[other]
    ]


def _find_reached(package: str, uses: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [package]
    while waiting:
        for other in uses.get(waiting.pop(), set()) - found:
            found.add(other)
            waiting.append(other)
    return found


def find_undocumented(root: Path) -> list[str]:
    """Every module has a docstring."""
    return [f"{place}: the module has no docstring" for place, tree in sources(root) if ast.get_docstring(tree) is None]


def find_unfinished(root: Path) -> list[str]:
    """Nothing is left for later in the code."""
    words = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|for n" + r"ow)\b")
    return [
        f"{place}:{number}: {match.group()}"
        for place, text in texts(root, ".py", ".md", ".toml")
        for number, line in enumerate(text.splitlines(), 1)
        if (match := words.search(line))
    ]


def locks(root: Path) -> list[str]:
    """The locked requirements name no host, and every one of them has a hash."""
    wrong: list[str] = []
    for path in sorted((root / "requirements").rglob("*.txt")):
        text = path.read_text("utf-8")
        if "://" in text or "index-url" in text or "find-links" in text:
            wrong.append(f"{path.name} names a host")
        pinned = re.findall(r"^[a-zA-Z0-9].*==.*$", text, re.MULTILINE)
        wrong += [f"{path.name}: {line} has no hash" for line in pinned if not line.endswith("\\")]
    return wrong


CHECKS: list[Check] = [
    imports,
    file_sizes,
    function_sizes,
    prose,
    broad_excepts,
    environment,
    time_and_chance,
    ways_out,
    task_starts,
    admission,
    seams,
    public_names,
    channels,
    subjects,
    fragments,
    cycles,
    find_undocumented,
    find_unfinished,
    locks,
]
