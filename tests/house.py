"""The rules of the house. Each is a function of a root directory that returns what it found wrong there."""

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
from statistics import median

PACKAGE = Path("src/frontdesk")
ROOM = {"__init__", "config", "wire", "parse", "render", "client", "channel"}
OPTIONAL = {"verify"}
# The API of Responses is the largest there is: it assembles streams, takes bodies in and looks up what they refer to,
# speaks over WebSockets with a memory of their own, and compacts. Telegram has codes in the texts of its errors alone,
# dozens of kinds of contents, and the command with which every chat begins. Each of these is a subject, and none fits
# one of the seven. The web chat is its own platform: it serves a page and its files, keeps what was said and tells
# pages what is new, links accounts, is embedded in other sites and has a theme.
MORE = {
    "chat_completions": {"assemble", "messages"},
    "responses": {"assemble", "compact", "drawing", "intake", "memory", "references", "socket"},
    "telegram": {"contents", "errors", "start"},
    "web": {
        "account",
        "api",
        "branches",
        "conversations",
        "elsewhere",
        "embedding",
        "feed",
        "files",
        "forms",
        "head",
        "live",
        "modules",
        "pages",
        "replies",
        "search",
        "site",
        "stream",
        "theme",
    },
}

NO_VERBS = {
    *("The", "A", "An", "All", "Any", "One", "Those", "This", "It", "Each", "Every", "No", "Nobody", "Nothing"),
    *("What", "Who", "Whoever", "Whose", "Whether", "Which", "How", "Where", "When", "As", "From", "For", "To", "With"),
}
"""Words with which no imperative begins."""

QUESTION_WORDS = {"How", "What", "Whatever", "Who", "Whoever", "Whom", "Whose", "Which", "Where", "Nobody"}
"""Words with which no docstring begins; `Whether` is the field's own for flags."""

# Where a broad `except` ends an error, because nobody is left who could, or throws it into the coroutine that waits for
# it: every run is recorded, every callback of the host runs, what was changed stays so if nobody can be told of it,
# every HTTP request and every message on a socket is answered, nobody waits for the task of a background run, of an
# event, of a runner or of a lane, a store's writer tells everybody whose transaction was in the batch, the thread
# for large values tells whoever waits for a job, and no request fails because of the telemetry;
# and every platform is asked, whatever the check of another does.
ENDS = {
    "cli/online.py",
    "host/events/worker.py",
    "host/lifespan.py",
    "host/direct_notifier.py",
    "host/background/worker.py",
    "kit/http/endpoint.py",
    "kit/aio/fair_thread.py",
    "kit/chat/polling.py",
    "kit/http/lanes.py",
    "kit/http/sockets.py",
    "kit/telemetry.py",
    "pipeline.py",
    "runners/stored.py",
    "stores/sql/postgres.py",
    "stores/sql/threads.py",
}
# Where it raises an error of ours instead: around functions that are not ours.
TRANSLATES = {
    "cli/load.py",
    "cli/worker.py",
    "data/codec.py",
    "delivery/calls.py",
    "delivery/push.py",
    "host/conversations/compact.py",
    "kit/hooks.py",
    "kit/http/sockets.py",
    "runners/base.py",
    "targets/detect.py",
}

# Who may open connections, or handle sockets. A URL that a user or a message can influence is fetched by the first
# alone, and a channel calls its platform by the two after it alone; the others go where the operator or the person at
# the terminal says, listen, look at connections that are there, or look up this machine's name.
WAYS_OUT = {
    "kit/outbound/client.py",
    "kit/outbound/platform.py",
    "kit/outbound/platform_socket.py",
    "kit/outbound/network.py",
    "kit/auth/provider.py",
    "admin/socket_server.py",
    "cli/demo.py",
    "cli/door.py",
    "host/operator_client.py",
    "cli/server.py",
    "host/state/state_lock.py",
    "host/server/server.py",
    "host/server/unread.py",
    "stores/sql/connecting.py",
}

# Who may start tasks, timers and threads: the first for all others, and those that have threads of their own, which
# carry no context.
STARTS = {"kit/aio/tasks.py", "kit/outbound/network.py", "stores/sql/threads.py"}

Check = Callable[[Path], list[str]]


@cache
def _parsed(text: bytes) -> ast.Module:
    # Python 3.11 loses count of its own depth when garbage is collected in the middle of this.
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()


@cache
def walked(tree: ast.Module) -> list[ast.AST]:
    """Return all nodes of a module; most rules go through all of them."""
    return list(ast.walk(tree))


def sources(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Every module of the package, by its place in it."""
    for path in sorted((root / PACKAGE).rglob("*.py")):
        yield path.relative_to(root / PACKAGE).as_posix(), _parsed(path.read_bytes())


def texts(root: Path, *suffixes: str) -> Iterator[tuple[str, str]]:
    """Every file that people write, by its place in the tree."""
    own = [path for part in ("src", "tests", "bench", "docs") for path in (root / part).rglob("*")]
    for path in sorted([*own, *root.glob("*.md")]):
        if path.suffix in suffixes:
            yield path.relative_to(root).as_posix(), path.read_text("utf-8")


def imports(root: Path) -> list[str]:
    """A module imports only from the floors below its own, and a channel only what channels may."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return [] if done.returncode == 0 else re.findall(r"^- +(.+)$", said, re.MULTILINE) or [said]


def file_sizes(root: Path) -> list[str]:
    """No file has more than 500 lines, and half of the package's have less than 120."""
    lengths = {place: text.count("\n") for place, text in texts(root, ".py", ".md")}
    wrong = [f"{place} has {length} lines" for place, length in lengths.items() if length > 500]
    middle = median(length for place, length in lengths.items() if place.startswith("src/"))
    return wrong if middle < 120 else [*wrong, f"the median file of the package has {middle} lines"]


def function_sizes(root: Path) -> list[str]:
    """No function of the package has more than 50 lines."""
    return [
        f"{place}: {node.name} has {length} lines"
        for place, tree in sources(root)
        for node in walked(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1) > 50
    ]


def prose(root: Path) -> list[str]:
    """There is less than 0.35 lines of prose to a line of code."""
    counts = [_counted(path) for path in (root / PACKAGE).rglob("*.py")]
    words, code = (sum(column) for column in zip(*counts, strict=True))
    return [] if words < 0.35 * code else [f"{words} lines of prose to {code} lines of code"]


def _counted(path: Path) -> tuple[int, int]:
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
        for node in walked(tree):
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
        for node in walked(tree):
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
    found = {place for place in _with_names(root, asked, set()) if not place.startswith("testing/")}
    wrong = [f"{place} can reach the network, and is not one that may" for place in sorted(found - WAYS_OUT)]
    return wrong + [f"{place} is listed as a way out, and is none" for place in sorted(WAYS_OUT - found)]


def task_starts(root: Path) -> list[str]:
    """Only `kit/aio/tasks.py` starts tasks and timers, so that each says whether it shares its starter's context."""
    asked = re.compile(
        r"(create_task|ensure_future|call_later|call_at|call_soon(_threadsafe)?|run_in_executor"
        r"|run_coroutine_threadsafe|TaskGroup|create_task_group|start_soon|Thread|Timer)"
    )
    wrong: list[str] = []
    found: set[str] = set()
    for place, tree in sources(root):
        if place.startswith("testing/"):
            continue
        for node in walked(tree):
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
        for node in walked(tree)
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
        if name.endswith("structs.replace") and not place.startswith(("data/", "kit/", "channels/", "testing/"))
    ]


def seams(root: Path) -> list[str]:
    """Tests and benchmarks come to the parts of a host by `frontdesk.testing.internals` alone."""
    return [
        f"{place}:{number} reaches into a host"
        for place, text in texts(root, ".py")
        if place.startswith(("tests/", "bench/")) and place not in ("tests/house.py", "tests/test_house.py")
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(r"(?<!\bself)\._parts\b", line)
    ]


def docstrings(root: Path) -> list[str]:
    """The docstring of a function begins with a verb in the imperative."""
    return [
        f"{place}: {node.name}: {text.splitlines()[0]}"
        for place, tree in sources(root)
        for node in walked(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name != "__init__"
        and (text := ast.get_docstring(node))
        and not _is_imperative(text.split()[0].strip("`,.:;"))
    ]


def plain_docstrings(root: Path) -> list[str]:
    """The docstring of a module, a class or an attribute says what it is, and begins with no question word."""
    return [
        f"{place}: {text.splitlines()[0]}"
        for place, tree in sources(root)
        for node in walked(tree)
        if isinstance(node, (ast.Module, ast.ClassDef))
        for text in _texts_of(node)
        if text.split()[0] in QUESTION_WORDS
    ]


def _texts_of(node: ast.Module | ast.ClassDef) -> list[str]:
    """Return the docstring of a module or a class, and those behind its attributes."""
    return [
        part.value.value.strip()
        for part in node.body
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)
    ]


def _is_imperative(word: str) -> bool:
    return word not in NO_VERBS and (not word.endswith("s") or word.endswith("ss") or word in ("Focus", "Alias"))


def front_door(root: Path) -> list[str]:
    """Every public name is in `__all__`, sorted, and is loaded from a module that defines and documents it."""
    tree = ast.parse((root / PACKAGE / "__init__.py").read_bytes())
    values = {_named(node): node.value for node in tree.body if isinstance(node, ast.Assign)}
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


def _named(node: ast.Assign) -> str:
    return ast.unparse(node.targets[0])


def _at(root: Path, name: str, home: str) -> bool:
    path = (root / "src" / home.replace(".", "/")).with_suffix(".py")
    if not path.exists():
        return False
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return ast.get_docstring(node) is not None
        if isinstance(node, ast.Assign) and _named(node) == name:
            return True
    return False


def rooms(root: Path) -> list[str]:
    """Every channel is the same room: the same files, at most two more or those named, and its class at the door."""
    wrong: list[str] = []
    for room in sorted(path for path in (root / PACKAGE / "channels").iterdir() if (path / "__init__.py").exists()):
        files = {path.stem for path in room.glob("*.py")}
        wrong += [f"channels/{room.name} has no {name}.py" for name in ROOM - files]
        own = files - ROOM - OPTIONAL
        if len(own - MORE.get(room.name, set())) > (0 if room.name in MORE else 2):
            wrong.append(f"channels/{room.name} has more than two files of its own: {sorted(own)}")
        tree = ast.parse((room / "__init__.py").read_bytes())
        values = {_named(node): node.value for node in tree.body if isinstance(node, ast.Assign)}
        exported = set(ast.literal_eval(values["__all__"])) if "__all__" in values else set()
        shown = {one.name for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names}
        if exported != shown or not any(name.endswith("Channel") for name in exported):
            wrong.append(f"channels/{room.name}: __all__ must name the channel and whatever else is imported there")
    return wrong


def documented(root: Path) -> list[str]:
    """Every module, and every public class and function in it, says in a sentence what it is."""
    return [
        f"{place}: {getattr(node, 'name', 'the module')} has no docstring"
        for place, tree in sources(root)
        for node in [tree, *tree.body]
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and not getattr(node, "name", "").startswith("_")
        and ast.get_docstring(node) is None
    ]


def unfinished(root: Path) -> list[str]:
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
    docstrings,
    plain_docstrings,
    front_door,
    rooms,
    documented,
    unfinished,
    locks,
]
