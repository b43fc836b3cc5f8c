"""Write docs/reference/errors.md: every error code with its status, message, cause and remedy.

    python -m tools.error_reference

Codes, statuses and messages come from the source of the package. Causes and remedies are in `tools/error_texts.toml`.
`collect()` raises for a code that has no text there, and for a text whose code is gone.
"""

import ast
import importlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import ModuleType

from typing_extensions import TypeIs

from frontdesk import errors
from frontdesk.channels.telegram import client as telegram
from frontdesk.delivery import routing
from frontdesk.models.run import RunFailure

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/frontdesk"
PAGE = ROOT / "docs/reference/errors.md"
TEXTS = ROOT / "tools/error_texts.toml"

GROUPS = {
    "request": "Requests",
    "run": "Failed runs",
    "delivery": "Deliveries",
    "operator": "Operator commands",
}
_MAX_MESSAGES = 2
"""The messages of a code that are listed. A code with more of them needs a `message` among its texts."""

MORE_CODES: tuple[tuple[str, str, int | None], ...] = (
    *(("delivery", code, None) for code in (*telegram._REFUSED, *telegram._NOT_EDITABLE)),
    *(("delivery", code, None) for code in (telegram.CONFLICT, telegram.WEBHOOK_ACTIVE, *routing.CODES.values())),
    ("delivery", "interrupted", None),
    ("delivery", "status_...", None),
    ("operator", "error", 500),
    ("operator", "http_required", None),
    ("request", "previous_response_not_found", 400),
    ("run", "invalid_prompt", None),
)
"""Codes that no call has as a literal: they are keys of a table, part of a text, or chosen for a protocol."""

DYNAMIC_CODES = {
    ("activity/client.py", "_stream_code(problem)"),
    ("activity/client.py", "code"),
    ("admin/client.py", "code"),
    ("channels/telegram/client.py", "code"),
    ("delivery/watchers.py", "code"),
    ("outbound/platform.py", "named"),
    ("outbound/platform_socket.py", "code"),
}
"""The calls whose code is a variable, with one of `MORE_CODES`. `error.code` repeats the code of another error."""


class TextsError(Exception):
    """A code has no cause or remedy, or a text has no code."""


@dataclass
class Code:
    statuses: set[int] = field(default_factory=set[int])
    default: str = ""
    messages: list[str] = field(default_factory=list[str])


Row = tuple[str, Code, Mapping[str, str]]
"""A code, what the source has of it, and its texts."""


@dataclass(frozen=True)
class Raise:
    """A call in the source that creates an error or a failed run."""

    file: str
    kind: type
    code: ast.expr | None
    message: ast.expr | None
    module: ModuleType


def find_raises() -> Iterator[Raise]:
    for path in sorted(SOURCE.rglob("*.py")):
        nodes = [node for node in ast.walk(ast.parse(path.read_bytes())) if _has_code(node)]
        if not nodes:
            continue
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        module, file = importlib.import_module(name), path.relative_to(SOURCE).as_posix()
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                yield Raise(file, vars(module)[node.name], ast.Constant(vars(module)[node.name].code), None, module)
            elif isinstance(node, ast.Call) and (kind := _kind(node.func, module)) is not None:
                yield Raise(file, kind, _keyword(node), node.args[0] if node.args else None, module)


def _has_code(node: ast.AST) -> bool:
    """Return True for the definition of an error with a code, and for a call that may create one."""
    if isinstance(node, ast.ClassDef):
        targets = [target for one in node.body if isinstance(one, ast.Assign) for target in one.targets]
        return node.name.endswith("Error") and any(ast.unparse(target) == "code" for target in targets)
    return isinstance(node, ast.Call) and (_keyword(node) is not None or _get_name(node) in CODED)


CODED = {name for name, one in vars(errors).items() if hasattr(one, "code")} | {"OperatorError", "RunFailure"}


def _get_name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _keyword(call: ast.Call) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == "code"), None)


def _kind(func: ast.expr, module: ModuleType) -> type | None:
    """Return the class of the error or failure that a call creates. Its code is None if the class has none."""
    found = vars(module).get(func.id) if isinstance(func, ast.Name) else None
    kinds = (errors.RequestError, errors.PushError, errors.OperatorError, RunFailure)
    if isinstance(found, type):
        return found if issubclass(found, kinds) else None
    return ERROR_FACTORIES.get(ast.unparse(func))


ERROR_FACTORIES: Mapping[str, type] = {"type(error)": errors.RequestError}
"""Calls of something else than a class that create an error."""


def resolve(node: ast.expr | None, module: ModuleType) -> list[str]:
    """Return the strings that an expression can be, as far as the module alone defines them."""
    names = vars(module)
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp():
            return [*resolve(node.body, module), *resolve(node.orelse, module)]
        case ast.JoinedStr():
            parts = [one.value if isinstance(one, ast.Constant) else f"{{{_name(one)}}}" for one in node.values]
            return ["".join(str(part) for part in parts)]
        case ast.Name():
            value = names.get(node.id)
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            value = getattr(names.get(owner), attribute, None)
        case _:
            value = None
    return [value] if isinstance(value, str) else []


def _name(node: ast.expr) -> str:
    """Return the first name in an expression of an f-string that is no function, as a placeholder."""
    found = [one.attr if isinstance(one, ast.Attribute) else one.id for one in ast.walk(node) if _is_name(one)]
    words = [word for word in found if word not in ("self", "format_size", "type", "join", "decode", "__name__")]
    return words[0].strip("_") if words else "value"


def _is_name(node: ast.AST) -> TypeIs[ast.Attribute | ast.Name]:
    return isinstance(node, (ast.Attribute, ast.Name))


def find_codes() -> dict[str, dict[str, Code]]:
    """Return the codes of each group."""
    found: dict[str, dict[str, Code]] = {group: {} for group in GROUPS}
    dynamic: set[tuple[str, str]] = set()
    for each in find_raises():
        codes = resolve(each.code, each.module)
        if each.code is None:
            codes = [one for one in [getattr(each.kind, "code", None)] if isinstance(one, str)]
        elif not codes and not ast.unparse(each.code).endswith(".code"):
            dynamic.add((each.file, ast.unparse(each.code)))
        for code in codes:
            for message in resolve(each.message, each.module) or [""]:
                _add(found, each.kind, code, each.file, message)
    if dynamic != DYNAMIC_CODES:
        raise TextsError(f"tools/error_reference.py: correct DYNAMIC_CODES and MORE_CODES: {dynamic ^ DYNAMIC_CODES}")
    for code in found["operator"].keys() & found["request"].keys():
        del found["operator"][code]
    for group, code, status in MORE_CODES:
        found[group].setdefault(code, Code()).statuses |= set() if status is None else {status}
    return found


def _add(found: Mapping[str, dict[str, Code]], kind: type, code: str, file: str, message: str) -> None:
    group = "run"
    if issubclass(kind, errors.OperatorError) or file.startswith("admin/"):
        group = "operator"
    elif issubclass(kind, errors.PushError):
        group = "delivery"
    elif issubclass(kind, errors.RequestError):
        group = "request"
    if kind is errors.RequestError:
        return
    one = found[group].setdefault(code, Code())
    one.statuses |= {kind.status} if issubclass(kind, errors.RequestError) else set()
    if vars(kind).get("code") == code:
        one.default = _first_line(kind)
    if message and message not in one.messages:
        one.messages.append(message)


def _first_line(kind: type) -> str:
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())


def collect() -> dict[str, list[Row]]:
    """Return the rows of each group. Raise `TextsError` if codes and texts differ."""
    found, texts = find_codes(), tomllib.loads(TEXTS.read_text("utf-8"))
    wrong = [f"[{group}] has no text for {code}" for group in found for code in found[group].keys() - texts[group]]
    wrong += [
        f"[{group}] has a text for {code}, which is gone"
        for group in found
        for code in texts[group].keys() - found[group]
    ]
    wrong += [
        f"[{group}] {code} lacks {name}"
        for group in found
        for code, given in texts[group].items()
        for name in ("cause", "remedy")
        if not given.get(name)
    ]
    if wrong:
        raise TextsError("tools/error_texts.toml:\n" + "\n".join(sorted(wrong)))
    return {group: [(code, found[group][code], texts[group][code]) for code in sorted(found[group])] for group in found}


def _message(code: str, one: Code, text: Mapping[str, str]) -> str:
    if "message" in text:
        return text["message"]
    if one.default:
        return one.default
    if len(one.messages) > _MAX_MESSAGES:
        raise TextsError(f"tools/error_texts.toml: {code} has {len(one.messages)} messages; add a message")
    return " / ".join(one.messages)


def render(page: str) -> str:
    """Return the page with its tables written anew."""
    for group, rows in collect().items():
        page = _replace(page, group, _tables(group, rows))
    return page


def _replace(page: str, group: str, text: str) -> str:
    begin, end = f"<!-- errors: {group} -->\n", "<!-- end -->"
    before, marker, rest = page.partition(begin)
    if not marker or end not in rest:
        raise TextsError(f"{PAGE.name} has no {begin.strip()} ... {end}")
    return before + begin + "\n" + text + "\n" + end + rest.partition(end)[2]


def _tables(group: str, rows: list[Row]) -> str:
    if group != "request":
        return _table(group, rows)
    statuses = sorted({min(one.statuses) for _, one, _ in rows})
    return "\n".join(
        f"### {status} {HTTPStatus(status).phrase}\n\n"
        + _table(group, [row for row in rows if min(row[1].statuses) == status])
        for status in statuses
    )


def _table(group: str, rows: list[Row]) -> str:
    """Return a table. Runs and deliveries have no column of messages, because callers don't receive them."""
    shows_message = group in ("request", "operator")
    names = ["code", *(["message"] if shows_message else []), "cause and remedy"]
    lines = []
    for code, one, text in rows:
        others = ", ".join(map(str, sorted(one.statuses)[1:]))
        message = [_message(code, one, text).replace("|", "\\|")] if shows_message else []
        why = f"{text['cause']} {text['remedy'].removeprefix('None.').lstrip()}".rstrip()
        lines.append([f"`{code}`{f' ({others})' if others else ''}", *message, why])
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n"
    return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    PAGE.write_text(render(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
