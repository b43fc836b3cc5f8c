"""The texts of the host by language, and their validation. Pure."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

from frontdesk.chat.i18n.de import GERMAN
from frontdesk.chat.i18n.en import ENGLISH
from frontdesk.display.escaping import escape_line
from frontdesk.errors import Phrase
from frontdesk.interfaces.context import CommandLocale

SHIPPED: Mapping[str, Mapping[str, str]] = {"de": GERMAN}
"""The languages that come with the host."""


class Texts:
    """The texts in all languages: English, the built-in translations, and those of the operator."""

    def __init__(self, given: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """`given` has the operator's texts by language and key. They override the built-in ones."""
        own = {_tag(locale): sentences for locale, sentences in (given or {}).items()}
        self._by_locale = {
            locale: {**SHIPPED.get(locale, {}), **own.get(locale, {})} for locale in dict.fromkeys((*SHIPPED, *own))
        }
        self._default = {**ENGLISH, **self._by_locale.get("en", {})}

    def say(self, key: str, locale: str | None = None, /, **values: Any) -> str:
        """Return a text in a language. `pt-BR` falls back to `pt`, and then to English.

        Values that are phrases are translated too. In other values, which may be untrusted, invisible characters are
        escaped.
        """
        said = {name: self._display(value, locale) for name, value in values.items()}
        return self._template(key, locale).format(**said)

    def _display(self, value: Any, locale: str | None) -> Any:
        if isinstance(value, Phrase):
            return self.say_phrase(value, locale)
        return escape_line(value) if isinstance(value, str) else value

    def say_phrase(self, phrase: Phrase, locale: str | None = None) -> str:
        return self.say(phrase.key, locale, **phrase.values)

    def _template(self, key: str, locale: str | None) -> str:
        tag = "" if locale is None else _tag(locale)
        while tag:
            sentence = self._by_locale.get(tag, {}).get(key)
            if sentence is not None:
                return sentence
            tag = tag.rpartition("-")[0]
        return self._default[key]

    def described(self, key: str) -> tuple[str, dict[str, CommandLocale]]:
        """Return the description of a command, and its translations."""
        default = self.say(key)
        others = {locale: self.say(key, locale) for locale in self._by_locale}
        return default, {locale: CommandLocale(description=text) for locale, text in others.items() if text != default}


def text_findings(given: Any) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, Mapping) or not all(isinstance(texts, Mapping) for texts in _values(given)):
        return ["texts must have a mapping of keys to sentences for each language"]
    wrong: list[str] = []
    for locale, sentences in _items(given):
        for key, sentence in _items(sentences):
            wrong += [f"texts[{locale!r}]: {finding}" for finding in _sentence_findings(key, sentence)]
    return wrong


def _sentence_findings(key: Any, sentence: Any) -> list[str]:
    if key not in ENGLISH:
        return [f"there is no text {key!r}"]
    if not isinstance(sentence, str) or not sentence.strip():
        return [f"{key!r} must be a sentence, and is {sentence!r}"]
    try:
        used = placeholders(sentence)
    except ValueError as error:
        return [f"{key!r} can't be read: {error}"]
    wanted = placeholders(ENGLISH[key])
    if used == wanted:
        return []
    shown = ", ".join(f"{{{name}}}" for name in sorted(wanted)) or "none"
    return [f"{key!r} must have the placeholders of the English text: {shown}"]


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def _tag(locale: str) -> str:
    return locale.replace("_", "-").lower()


def _values(given: Any) -> list[Any]:
    return list(given.values())


def _items(given: Any) -> list[tuple[Any, Any]]:
    return list(given.items())
