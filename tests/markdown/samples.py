"""Texts for the properties of Markdown: words that can be told apart, in all that Markdown has."""

import re

from hypothesis import strategies as st

from frontdesk.markdown import Dialect, Entities, Mrkdwn, Plain

WORD = re.compile("w[a-y]+z")
FRAGMENTS = [
    *("WORD", "WORD ", " WORD", "WORD. ", "WORD! ", "WORD, WORD", " ", "\n", "\n\n", "\n\n\n", "  \n", "\\\n", "\t"),
    *("**", "*", "_", "__", "~~", "~", "`", "``", "```", "**WORD**", "*WORD*", "~~WORD~~", "`WORD`", "***WORD***"),
    *("# WORD\n", "## WORD\n\n", "WORD\n===\n", "WORD\n---\n", "---\n\n", "- WORD\n", "- [x] WORD\n", "  - WORD\n"),
    *("1. WORD\n", "7) WORD\n", "> WORD\n", "> > WORD\n", ">\n", "    WORD\n", "- > WORD\n", "- ```\n  WORD\n  ```\n"),
    *("```py\nWORD\n\n  WORD\n```\n\n", "~~~\nWORD WORD\n~~~\n\n", "```\nWORD\n", "> ```\n> WORD\n> ```\n"),
    *("|WORD|WORD|\n|-|:-:|\n|WORD|WORD|\n|WORD|\n\n", "|WORD|\n|-:|\n|WORD|WORD|WORD|\n", "|", "|-|\n", "|-|-|\n"),
    *("[WORD](https://a.b/c)", "[WORD WORD](d/e)", "[WORD", "](https://a.b)", "![WORD](https://a.b/c.png)", "]", "]("),
    *("https://a.b/c?d=e&f=(g).", "<https://a.b>", "<b>WORD</b>", "<!-- WORD -->", "&amp;", "&lt;", "&", "<", ">"),
    *("[WORD]: https://a.b\n\n", "\\*", "\\", "@here", "<@U1>", ":", "!", "(", ")", "$5", "\\|"),
    *(
        "\u200d",
        "👩\u200d👧",
        "🇩🇪",
        "e\u0301",
        "👍🏽",
        "\x00",
        "\u202e",
        "שלום",
        "مرحبا",
        "\ud800",
        "\U0001d4b3",
        "\u3000",
        "。",
        "字",
    ),
]


def number_words(fragments: list[str]) -> str:
    """Join fragments, with a word of its own wherever one of them has a word."""
    count = 0

    def word(_: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return "w" + "".join(chr(ord("a") + int(digit)) for digit in str(count)) + "z"

    return re.sub("WORD", word, "".join(fragments))


TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(number_words)
ANY_TEXTS = st.one_of(TEXTS, st.text())
DIALECTS: list[Dialect] = [Plain(), Mrkdwn(), Entities()]


def words(text: str) -> list[str]:
    """Return the words of a text that `number_words` has put there."""
    return WORD.findall(text)


def list_shown_words(text: str) -> list[str]:
    """Return the words that have to be shown: what is behind a fence in its line may be the name of a language."""
    return words("\n".join(line for line in text.splitlines() if "```" not in line and "~~~" not in line))
