"""`frontdesk init`: writes a project of the user's own, and overwrites nothing."""

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from frontdesk.cli.mistakes import CommandError
from frontdesk.cli.project import DOORS, MODELS, files_of
from frontdesk.cli.terminal import Terminal, visible

_NEXT = """\
Next, in {place}:
  make install   # the client of the model
  make test      # with a script in place of the model
  make run       # writes .env the first time, and says what to fill in there; then it serves"""


def run(arguments: Namespace) -> int:
    """Write the files of a project; ask for what the command line does not say."""
    terminal = Terminal()
    model: str = arguments.model or _ask_model(terminal)
    doors: list[str] = arguments.doors or _ask_doors(terminal)
    place = Path(arguments.directory)
    files = files_of(model, doors)
    taken = sorted(name for name in files if os.path.lexists(place / name))
    if taken:
        raise CommandError(
            f"{place} has {', '.join(taken)} already, and nothing is overwritten; name another directory"
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            _write(place / name, text)
    except OSError as error:
        raise CommandError(f"{place} can't be written: {error.strerror}") from None
    print(*(f"wrote {place / name}" for name in files), _NEXT.format(place=place), sep="\n")
    return 0


def _write(path: Path, text: str) -> None:
    # A file that has appeared meanwhile is not overwritten either.
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _ask_model(terminal: Terminal) -> str:
    """Ask for the model; an empty line, or the end of the input, is the first."""
    _offer("Which model?", {name: model.title for name, model in MODELS.items()})
    first = next(iter(MODELS))
    while name := terminal.read(f"model [{first}]: "):
        if name in MODELS:
            return name
        print(f"There is no {visible(name)!r} among them.")
    return first


def _ask_doors(terminal: Terminal) -> list[str]:
    _offer("Which doors, separated by commas?", {name: door.title for name, door in DOORS.items()})
    while line := terminal.read("doors [web,responses]: "):
        names = [name for name in line.replace(",", " ").split() if name]
        if names and set(names) <= set(DOORS):
            return [name for name in DOORS if name in names]
        print(f"There is no {visible(', '.join(sorted(set(names) - set(DOORS))))!r} among them.")
    return ["web", "responses"]


def _offer(question: str, choices: Mapping[str, str]) -> None:
    print(question, *(f"  {name:12} {title}" for name, title in choices.items()), sep="\n", flush=True)
