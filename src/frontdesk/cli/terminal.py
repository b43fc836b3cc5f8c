"""The user's side: a terminal, or a pipe."""

import sys


class Terminal:
    """Reads lines and writes text. A pipe gets no prompts, and answers are plain lines."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        self._in_line = False
        if self.interactive:
            try:
                # With it, `input` keeps what was typed before and moves the cursor.
                import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]
            except ImportError:
                return

    def read(self, prompt: str) -> str | None:
        """The next line; `None` at the end."""
        if self.interactive:
            try:
                return input(prompt).strip()
            except EOFError:
                print()
                return None
        line = sys.stdin.readline()
        return line.strip() if line else None

    def write(self, text: str) -> None:
        """A piece of an answer."""
        shown = printable(text)
        print(shown, end="", flush=True)
        if shown:
            self._in_line = not shown.endswith("\n")

    def end_line(self) -> None:
        """Nothing more comes in this line."""
        if self._in_line:
            print(flush=True)
        self._in_line = False

    def tell(self, text: str) -> None:
        """A line of our own."""
        self.end_line()
        print(printable(text), flush=True)

    def complain(self, text: str) -> None:
        """One line about something that went wrong."""
        self.end_line()
        print(f"error: {' '.join(printable(text).split())}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """The text without the characters by which a server could steer the terminal."""
    return "".join(one for one in text if one in "\n\t" or not (one < " " or "\x7f" <= one < "\xa0"))


def visible(text: str) -> str:
    """The text with all that can't be seen written out, for what a human decides about."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
