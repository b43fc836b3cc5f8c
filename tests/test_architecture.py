"""The code keeps the rules of its architecture, and each rule notices when it is broken."""

import importlib
import inspect
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import frontdesk
from tests.architecture import (
    CHANNEL_FILES,
    CHECKS,
    MAX_MODULES,
    MAX_SINGLE_IMPORTS,
    PACKAGE,
    Check,
    admission,
    broad_excepts,
    channels,
    cycles,
    environment,
    file_sizes,
    find_undocumented,
    find_unfinished,
    fragments,
    function_sizes,
    imports,
    locks,
    prose,
    public_names,
    seams,
    subjects,
    task_starts,
    time_and_chance,
    ways_out,
)

ROOT = Path(__file__).parents[1]
Before = Callable[[Check], list[str]]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_code_keeps_its_rules(check: Check) -> None:
    violations = check(ROOT)
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize("name", frontdesk.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    value = getattr(frontdesk, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert value.__doc__
        assert value.__module__.startswith("frontdesk.")


@pytest.mark.parametrize("name", ["chat_completions", "conversations", "invocations", "responses", "telegram"])
def test_a_package_exports_its_channel(name: str) -> None:
    package = importlib.import_module(f"frontdesk.channels.{name}")
    assert package.__all__[0] == f"{name.title().replace('_', '')}Channel"
    assert issubclass(getattr(package, package.__all__[0]), frontdesk.Channel)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = frontdesk.NoSuchName
    assert dir(frontdesk) == frontdesk.__all__


IDS = "src/frontdesk/ids.py"
PACKAGE_INIT = "src/frontdesk/__init__.py"
CHANNEL = "src/frontdesk/channels/invocations"
TRY = "\ntry:\n    x = 1\nexcept "

# A title, the rule, the file that gets something added to its end, what, and what the rule must say about it.
ADDED: list[tuple[str, Check, str, str, str]] = [
    (
        "a channel imports the store",
        imports,
        f"{CHANNEL}/render.py",
        "\nimport frontdesk.stores.memory.store\n",
        "render -> ",
    ),
    ("a channel imports the gate", imports, f"{CHANNEL}/parse.py", "\nimport frontdesk.access.gate\n", "parse -> "),
    (
        "a channel knows the time",
        imports,
        f"{CHANNEL}/parse.py",
        "\nimport frontdesk.clock\n",
        "parse -> frontdesk.clock",
    ),
    (
        "a base module imports access",
        imports,
        "src/frontdesk/identifiers.py",
        "\nimport frontdesk.access.gate\n",
        "identifiers -> ",
    ),
    (
        "a store imports a neighbour",
        imports,
        "src/frontdesk/stores/memory/store.py",
        "\nimport frontdesk.pipeline\n",
        "store -> ",
    ),
    (
        "a session reads OpenAI items",
        imports,
        "src/frontdesk/sessions/items.py",
        "\nimport frontdesk.openai.items\n",
        "sessions.items -> frontdesk.openai.items",
    ),
    ("a module has no layer", imports, "src/frontdesk/nowhere.py", '"""Below everything."""\n', "frontdesk.nowhere"),
    ("601 lines in the package", file_sizes, "src/frontdesk/http/long.py", "x = 1\n" * 601, "long.py has 601 lines"),
    ("601 lines in the tests", file_sizes, "tests/test_long.py", "x = 1\n" * 601, "test_long.py has 601 lines"),
    ("601 lines in a document", file_sizes, "docs/long.md", "word\n" * 601, "long.md has 601 lines"),
    ("a function of 61 lines", function_sizes, IDS, "\ndef long():\n" + "    x = 1\n" * 60, "long has 61 lines"),
    ("a flood of comments", prose, IDS, "# word\n" * 500, "lines of prose"),
    ("a flood of docstrings", prose, IDS, '"""\n' + "word\n" * 500 + '"""\n', "lines of prose"),
    ("an except hides", broad_excepts, IDS, TRY + "Exception:\n    pass\n", "ids.py"),
    ("a bare except hides", broad_excepts, IDS, TRY.rstrip() + ":\n    x = 2\n", "ids.py"),
    ("an except of several hides", broad_excepts, IDS, TRY + "(KeyError, BaseException):\n    x = 2\n", "ids.py"),
    ("an except translates", broad_excepts, IDS, TRY + "Exception as e:\n    raise KeyError from e\n", "ids.py"),
    ("os.environ is read", environment, IDS, "\nx = os.environ\n", "ids.py"),
    ("getenv is imported", environment, IDS, "\nfrom os import getenv\n", "ids.py"),
    ("a channel has a clock", time_and_chance, f"{CHANNEL}/parse.py", "\nfrom time import monotonic\n", "parse.py"),
    ("a channel has dice", time_and_chance, f"{CHANNEL}/parse.py", "\nimport secrets\n", "parse.py"),
    ("a channel has a calendar", time_and_chance, f"{CHANNEL}/parse.py", "\nx = datetime.now()\n", "parse.py"),
    ("a channel fetches by itself", ways_out, f"{CHANNEL}/parse.py", "\nimport httpx\n", "invocations/parse.py"),
    (
        "a channel has a socket",
        ways_out,
        f"{CHANNEL}/channel.py",
        "\nimport websockets.asyncio\n",
        "invocations/channel.py",
    ),
    ("a late import of a client", ways_out, IDS, "\ndef get():\n    from urllib import request\n", "ids.py"),
    ("a client under another name", ways_out, IDS, "\nfrom aiohttp.client import ClientSession as S\n", "ids.py"),
    ("a bare connection", ways_out, IDS, "\nx = asyncio.open_connection('h', 1)\n", "ids.py"),
    ("a task of its own", task_starts, IDS, "\nx = asyncio.get_running_loop().create_task(y)\n", "ids.py"),
    ("a timer of its own", task_starts, IDS, "\nx = loop.call_later(1, y)\n", "ids.py"),
    ("a task under its bare name", task_starts, IDS, "\nfrom asyncio import ensure_future as later\n", "ids.py"),
    ("a group of tasks", task_starts, IDS, "\nx = asyncio.TaskGroup()\n", "ids.py"),
    ("a thread of its own", task_starts, f"{CHANNEL}/parse.py", "\nx = threading.Thread(target=y)\n", "parse.py"),
    ("a second gate", admission, "src/frontdesk/pipeline.py", "\nx = AdmittedRequest()\n", "pipeline.py"),
    (
        "a copy past the gate",
        admission,
        "src/frontdesk/pipeline.py",
        "\nx = structs.replace(y, owner='bob')\n",
        "pipeline.py",
    ),
    ("a test reaches into a host", seams, "tests/test_odd.py", "x = host._parts.store\n", "test_odd.py:1 reaches"),
    ("a module says nothing", find_undocumented, "src/frontdesk/silent.py", "x = 1\n", "silent.py: the module"),
    ("a folder for anything", subjects, "src/frontdesk/utils/text.py", "x = 1\n", "utils names no subject"),
    ("a note to oneself", find_unfinished, IDS, "\n# TO" + "DO: think\n", "ids.py"),
    ("a lock file names a host", locks, "requirements/run.txt", "--index-url x\n", "run.txt names a host"),
    ("a requirement has no hash", locks, "requirements/run.txt", "left-pad==1.0\n", "left-pad==1.0 has no hash"),
]

# A title, the rule, the file in which something is exchanged, what, for what, and what the rule must say about it.
EXCHANGED: list[tuple[str, Check, str, str, str, str]] = [
    (
        "a name that nobody defines",
        public_names,
        PACKAGE_INIT,
        "__all__ = [",
        '__all__ = [\n    "Aa",',
        "Aa is not in all",
    ),
    ("a name that is not exported", public_names, PACKAGE_INIT, '    "ApiKeyAuth",\n', "", "ApiKeyAuth is not in all"),
    (
        "a name without a home",
        public_names,
        PACKAGE_INIT,
        '    "frontdesk.auth.api_keys": "ApiKeyAuth",\n',
        "",
        "ApiKeyAuth is not in",
    ),
    (
        "a name with a wrong home",
        public_names,
        PACKAGE_INIT,
        '"frontdesk.auth.api_keys": ',
        '"frontdesk.ids": ',
        "is not defined and",
    ),
    (
        "names out of order",
        public_names,
        PACKAGE_INIT,
        "__all__ = [",
        '__all__ = [\n    "register",',
        "__all__ is not sorted",
    ),
    (
        "a package hides its channel",
        channels,
        f"{CHANNEL}/__init__.py",
        '["InvocationsChannel"]',
        "[]",
        "invocations: __all__",
    ),
]


PUBLIC_NAMES = '''"""A package with one public name."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frontdesk.auth.api_keys import ApiKeyAuth

__all__ = [
    "ApiKeyAuth",
]
_MODULES = {
    "frontdesk.auth.api_keys": "ApiKeyAuth",
}
'''
# Modules that the rules name, or that a rule is broken in.
MODULES = (
    *(
        "access/gate.py",
        "stores/memory/__init__.py",
        "stores/memory/store.py",
        "sessions/items.py",
        "identifiers.py",
        "auth/__init__.py",
    ),
    *("openai/__init__.py", "openai/items.py", "host/conversations/__init__.py"),
)
STUB = '"""A module."""\n' + "x = 1\n" * 4
# The files of the small tree that are more than a stub.
WRITTEN = {
    PACKAGE_INIT: PUBLIC_NAMES,
    f"{CHANNEL}/__init__.py": STUB + 'from .channel import InvocationsChannel\n\n__all__ = ["InvocationsChannel"]\n',
    "src/frontdesk/auth/api_keys.py": STUB + 'class ApiKeyAuth:\n    """A class with a docstring."""\n',
    "requirements/run.txt": "left==1.0 \\\n    --hash=sha256:0\n",
}


def plant(root: Path) -> Path:
    """Plant a tree with every layer of the package and one channel: as little as the rules can be broken in."""
    layers = [path.relative_to(ROOT) for path in (ROOT / PACKAGE).iterdir() if not path.name.startswith(("_", "."))]
    channel = [Path(CHANNEL, f"{name}.py") for name in CHANNEL_FILES]
    modules = [path if path.suffix else path / "__init__.py" for path in layers] + channel
    modules += [Path("src/frontdesk", name) for name in MODULES]
    texts = {module.as_posix(): STUB for module in modules}
    for place, text in {**texts, **WRITTEN}.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, "utf-8")
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Plant a small tree to break a rule in."""
    return plant(tmp_path)


@pytest.fixture(scope="module")
def violations_before(tmp_path_factory: pytest.TempPathFactory) -> Before:
    """Return what a rule says of the small tree as it was planted: files that the rules name are not in it."""
    untouched = plant(tmp_path_factory.mktemp("untouched"))
    return cache(lambda check: check(untouched))


@pytest.mark.parametrize(
    ("check", "place", "text", "told"), [case[1:] for case in ADDED], ids=[case[0] for case in ADDED]
)
def test_a_rule_notices_what_was_added(
    tree: Path, violations_before: Before, check: Check, place: str, text: str, told: str
) -> None:
    (tree / place).parent.mkdir(parents=True, exist_ok=True)
    with (tree / place).open("a", encoding="utf-8") as file:
        file.write(text)
    assert any(told in line for line in check(tree) if line not in violations_before(check))


@pytest.mark.parametrize(
    ("check", "place", "old", "new", "told"), [case[1:] for case in EXCHANGED], ids=[case[0] for case in EXCHANGED]
)
def test_a_rule_notices_what_was_exchanged(
    tree: Path, violations_before: Before, check: Check, place: str, old: str, new: str, told: str
) -> None:
    text = (tree / place).read_text("utf-8")
    assert old in text
    (tree / place).write_text(text.replace(old, new, 1), "utf-8")
    assert any(told in line for line in check(tree) if line not in violations_before(check))


def test_a_channel_that_imports_another_one_is_noticed(tree: Path) -> None:
    other = tree / "src/frontdesk/channels/other"
    other.mkdir()
    (other / "__init__.py").write_text('"""Another channel."""\n', "utf-8")
    with (tree / CHANNEL / "parse.py").open("a", encoding="utf-8") as file:
        file.write("\nimport frontdesk.channels.other\n")
    assert any("parse -> frontdesk.channels.other" in line for line in imports(tree))


def test_a_channel_that_lacks_a_file_is_noticed(tree: Path) -> None:
    assert channels(tree) == []
    (tree / CHANNEL / "config.py").unlink()
    assert channels(tree) == ["channels/invocations has no config.py"]


def test_packages_that_import_each_other_are_noticed(tree: Path) -> None:
    for place, other in (("auth/api_keys.py", "sessions"), ("sessions/items.py", "access"), ("access/gate.py", "auth")):
        with (tree / PACKAGE / place).open("a", encoding="utf-8") as file:
            file.write(f"\nfrom frontdesk.{other} import x\n")
    assert cycles(tree) == [
        "access and auth import each other",
        "access and sessions import each other",
        "auth and sessions import each other",
    ]


def test_many_small_modules_are_noticed(tree: Path) -> None:
    folder = tree / PACKAGE / "small"
    folder.mkdir()
    for number in range(MAX_MODULES):
        uses = f"import frontdesk.small.m{number - 1}\n" if 0 < number <= MAX_SINGLE_IMPORTS + 1 else ""
        (folder / f"m{number}.py").write_text(f'"""A module."""\n{uses}', "utf-8")
    counted, single = fragments(tree)
    assert counted.endswith(" modules")
    assert single == f"{MAX_SINGLE_IMPORTS + 1} modules are imported by one other only"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_small_tree_breaks_no_rule_by_itself(violations_before: Before, check: Check) -> None:
    assert [line for line in violations_before(check) if " is listed " not in line] == []


def test_every_rule_was_broken_once() -> None:
    assert {case[1] for case in [*ADDED, *EXCHANGED]} | {cycles, fragments} == set(CHECKS)
