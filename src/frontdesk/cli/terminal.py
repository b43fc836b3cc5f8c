"""Input and output of the user: a terminal, or a pipe."""

import sys


class Terminal:
    """Reads lines and writes text. A pipe gets no prompts, and answers are plain lines."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        self._in_line = False
        if self.interactive:
            try:
                # With it, `input` has a history and can move the cursor.
                import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]
            except ImportError:
                return

    def read(self, prompt: str) -> str | None:
        """Return the next line; `None` at the end."""
        if self.interactive:
            try:
                return input(prompt).strip()
            except EOFError:
                print()
                return None
        line = sys.stdin.readline()
        return line.strip() if line else None

    def write(self, text: str) -> None:
        """Print a piece of an answer."""
        shown = printable(text)
        print(shown, end="", flush=True)
        if shown:
            self._in_line = not shown.endswith("\n")

    def end_line(self) -> None:
        """End the current line, if there is one."""
        if self._in_line:
            print(flush=True)
        self._in_line = False

    def tell(self, text: str) -> None:
        """Print a line of the program itself."""
        self.end_line()
        print(printable(text), flush=True)

    def complain(self, text: str) -> None:
        """Print an error as one line."""
        self.end_line()
        print(f"error: {' '.join(printable(text).split())}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Remove the characters by which a server could control the terminal."""
    return "".join(char for char in text if char in "\n\t" or not (char < " " or "\x7f" <= char < "\xa0"))


def visible(text: str) -> str:
    """Escape all characters that can't be seen, in a text on which a human decides."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
