"""The house keeps its rules, and each rule notices when it is broken."""

import importlib
import inspect
import shutil
from functools import cache
from pathlib import Path

import pytest

import frontdesk
from tests.house import (
    CHECKS,
    Check,
    admission,
    broad_excepts,
    documented,
    environment,
    file_sizes,
    front_door,
    function_sizes,
    imports,
    locks,
    prose,
    rooms,
    task_starts,
    time_and_chance,
    unfinished,
    ways_out,
)

ROOT = Path(__file__).parents[1]


@cache
def found_as_it_is(check: Check) -> list[str]:
    return check(ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_house_keeps_its_rules(check: Check) -> None:
    found = found_as_it_is(check)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", frontdesk.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    value = getattr(frontdesk, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert value.__doc__
        assert value.__module__.startswith("frontdesk.")


@pytest.mark.parametrize("name", ["conversations", "invocations", "responses"])
def test_a_room_shows_its_channel(name: str) -> None:
    room = importlib.import_module(f"frontdesk.channels.{name}")
    assert room.__all__[0] == f"{name.title()}Channel"
    assert issubclass(getattr(room, room.__all__[0]), frontdesk.Channel)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = frontdesk.NoSuchName
    assert dir(frontdesk) == frontdesk.__all__


IDS = "src/frontdesk/ids.py"
DOOR = "src/frontdesk/__init__.py"
ROOM = "src/frontdesk/channels/invocations"
TRY = "\ntry:\n    x = 1\nexcept "

# A title, the rule, the file that gets something added to its end, what, and what the rule must say about it.
ADDED: list[tuple[str, Check, str, str, str]] = [
    ("a channel imports the store", imports, f"{ROOM}/render.py", "\nimport frontdesk.stores.memory\n", "render -> "),
    ("a channel imports the gate", imports, f"{ROOM}/parse.py", "\nimport frontdesk.access.gate\n", "parse -> "),
    ("a channel knows the time", imports, f"{ROOM}/parse.py", "\nimport frontdesk.clock\n", "parse -> frontdesk.clock"),
    ("the kit imports access", imports, "src/frontdesk/kit/names.py", "\nimport frontdesk.access.gate\n", "names -> "),
    (
        "a store imports a neighbour",
        imports,
        "src/frontdesk/stores/memory.py",
        "\nimport frontdesk.pipeline\n",
        "memory -> ",
    ),
    (
        "a session reads OpenAI items",
        imports,
        "src/frontdesk/sessions/items.py",
        "\nimport frontdesk.kit.openai.items\n",
        "sessions.items -> frontdesk.kit.openai.items",
    ),
    ("a module has no floor", imports, "src/frontdesk/cellar.py", '"""Below everything."""\n', "frontdesk.cellar"),
    ("600 lines in the package", file_sizes, "src/frontdesk/kit/long.py", "x = 1\n" * 600, "long.py has 600 lines"),
    ("600 lines in the tests", file_sizes, "tests/test_long.py", "x = 1\n" * 600, "test_long.py has 600 lines"),
    ("600 lines in a document", file_sizes, "docs/long.md", "word\n" * 600, "long.md has 600 lines"),
    ("a function of 60 lines", function_sizes, IDS, "\ndef long():\n" + "    x = 1\n" * 59, "long has 60 lines"),
    ("a flood of comments", prose, IDS, "# word\n" * 50_000, "lines of prose"),
    ("a flood of docstrings", prose, IDS, '"""\n' + "word\n" * 50_000 + '"""\n', "lines of prose"),
    ("an except hides", broad_excepts, IDS, TRY + "Exception:\n    pass\n", "ids.py"),
    ("a bare except hides", broad_excepts, IDS, TRY.rstrip() + ":\n    x = 2\n", "ids.py"),
    ("an except of several hides", broad_excepts, IDS, TRY + "(KeyError, BaseException):\n    x = 2\n", "ids.py"),
    ("an except translates", broad_excepts, IDS, TRY + "Exception as e:\n    raise KeyError from e\n", "ids.py"),
    ("os.environ is read", environment, IDS, "\nx = os.environ\n", "ids.py"),
    ("getenv is imported", environment, IDS, "\nfrom os import getenv\n", "ids.py"),
    ("a channel has a clock", time_and_chance, f"{ROOM}/parse.py", "\nfrom time import monotonic\n", "parse.py"),
    ("a channel has dice", time_and_chance, f"{ROOM}/parse.py", "\nimport secrets\n", "parse.py"),
    ("a channel has a calendar", time_and_chance, f"{ROOM}/parse.py", "\nx = datetime.now()\n", "parse.py"),
    ("a channel fetches by itself", ways_out, f"{ROOM}/parse.py", "\nimport httpx\n", "invocations/parse.py"),
    ("a late import of a client", ways_out, IDS, "\ndef get():\n    from urllib import request\n", "ids.py"),
    ("a client under another name", ways_out, IDS, "\nfrom aiohttp.client import ClientSession as S\n", "ids.py"),
    ("a bare connection", ways_out, IDS, "\nx = asyncio.open_connection('h', 1)\n", "ids.py"),
    ("a task of its own", task_starts, IDS, "\nx = asyncio.get_running_loop().create_task(y)\n", "ids.py"),
    ("a timer of its own", task_starts, IDS, "\nx = loop.call_later(1, y)\n", "ids.py"),
    ("a task under its bare name", task_starts, IDS, "\nfrom asyncio import ensure_future as later\n", "ids.py"),
    ("a group of tasks", task_starts, IDS, "\nx = asyncio.TaskGroup()\n", "ids.py"),
    ("a thread of its own", task_starts, f"{ROOM}/parse.py", "\nx = threading.Thread(target=y)\n", "parse.py"),
    ("a second gate", admission, "src/frontdesk/pipeline.py", "\nx = AdmittedRequest()\n", "pipeline.py"),
    ("a class says nothing", documented, IDS, "\n\nclass Silent:\n    x = 1\n", "Silent has no docstring"),
    ("a note to oneself", unfinished, IDS, "\n# TO" + "DO: think\n", "ids.py"),
    ("a lock file names a host", locks, "requirements/run.txt", "--index-url x\n", "run.txt names a host"),
    ("a requirement has no hash", locks, "requirements/run.txt", "left-pad==1.0\n", "left-pad==1.0 has no hash"),
]

# A title, the rule, the file in which something is exchanged, what, for what, and what the rule must say about it.
EXCHANGED: list[tuple[str, Check, str, str, str, str]] = [
    ("a name that nobody defines", front_door, DOOR, "__all__ = [", '__all__ = [\n    "Aa",', "Aa is not in all"),
    ("a name that is not exported", front_door, DOOR, '    "ApiKeyAuth",\n', "", "ApiKeyAuth is not in all"),
    (
        "a name without a home",
        front_door,
        DOOR,
        '    "ApiKeyAuth": "frontdesk.kit.auth.api_keys",\n',
        "",
        "ApiKeyAuth is not in",
    ),
    (
        "a name with a wrong home",
        front_door,
        DOOR,
        ': "frontdesk.kit.auth.api_keys"',
        ': "frontdesk.ids"',
        "is not defined and",
    ),
    ("names out of order", front_door, DOOR, "__all__ = [", '__all__ = [\n    "register",', "__all__ is not sorted"),
    ("a room hides its channel", rooms, f"{ROOM}/__init__.py", '["InvocationsChannel"]', "[]", "invocations: __all__"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The house once more, to break things in."""
    for part in ("src", "tests", "bench", "docs", "requirements"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("check", "place", "text", "told"), [one[1:] for one in ADDED], ids=[one[0] for one in ADDED])
def test_a_rule_notices_what_was_added(copy: Path, check: Check, place: str, text: str, told: str) -> None:
    with (copy / place).open("a", encoding="utf-8") as file:
        file.write(text)
    assert any(told in one for one in check(copy) if one not in found_as_it_is(check))


@pytest.mark.parametrize(
    ("check", "place", "old", "new", "told"), [one[1:] for one in EXCHANGED], ids=[one[0] for one in EXCHANGED]
)
def test_a_rule_notices_what_was_exchanged(copy: Path, check: Check, place: str, old: str, new: str, told: str) -> None:
    text = (copy / place).read_text("utf-8")
    assert old in text
    (copy / place).write_text(text.replace(old, new, 1), "utf-8")
    assert any(told in one for one in check(copy) if one not in found_as_it_is(check))


def test_a_channel_that_imports_another_one_is_noticed(copy: Path) -> None:
    other = copy / "src/frontdesk/channels/other"
    other.mkdir()
    (other / "__init__.py").write_text('"""Another room."""\n', "utf-8")
    with (copy / ROOM / "parse.py").open("a", encoding="utf-8") as file:
        file.write("\nimport frontdesk.channels.other\n")
    assert any("parse -> frontdesk.channels.other" in one for one in imports(copy))


def test_a_room_that_lacks_a_file_is_noticed(copy: Path) -> None:
    (copy / ROOM / "wire.py").unlink()
    assert any("channels/invocations has no wire.py" in one for one in rooms(copy))


def test_many_long_files_are_noticed(copy: Path) -> None:
    for number in range(len(list((copy / "src").rglob("*.py"))) + 1):
        (copy / f"src/frontdesk/kit/long{number}.py").write_text("x = 1\n" * 130, "utf-8")
    assert any("the median file" in one for one in file_sizes(copy))


def test_every_rule_was_broken_once() -> None:
    assert {one[1] for one in [*ADDED, *EXCHANGED]} == set(CHECKS)
