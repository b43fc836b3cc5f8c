"""The sentences that the host itself says to people, by language. Pure."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

from frontdesk.abc.commands import CommandLocale
from frontdesk.errors import Phrase
from frontdesk.kit.chat.texts_de import GERMAN
from frontdesk.kit.chat.texts_en import ENGLISH

SHIPPED: Mapping[str, Mapping[str, str]] = {"de": GERMAN}
"""The languages that come with the host."""


class Texts:
    """The sentences in all languages: English, those that come with the host, and those of the operator."""

    def __init__(self, given: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Take the operator's sentences, by language and key; they count before those that come with the host."""
        own = {_tag(locale): sentences for locale, sentences in (given or {}).items()}
        self._by_locale = {
            locale: {**SHIPPED.get(locale, {}), **own.get(locale, {})} for locale in dict.fromkeys((*SHIPPED, *own))
        }
        self._default = {**ENGLISH, **self._by_locale.get("en", {})}

    def say(self, key: str, locale: str | None = None, /, **values: Any) -> str:
        """Return a sentence in a language; `pt-BR` falls back to `pt`, and then to English.

        A value that is a phrase is said in the same language.
        """
        said = {name: self.say_phrase(v, locale) if isinstance(v, Phrase) else v for name, v in values.items()}
        return self._template(key, locale).format(**said)

    def say_phrase(self, phrase: Phrase, locale: str | None = None) -> str:
        """Return a phrase in a language."""
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
        """Return the description of a command, and those in other languages."""
        default = self.say(key)
        others = {locale: self.say(key, locale) for locale in self._by_locale}
        return default, {locale: CommandLocale(description=text) for locale, text in others.items() if text != default}


def text_findings(given: Any) -> list[str]:
    """List what is wrong with the sentences of an operator, a line each."""
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
    """Return the names between braces in a sentence."""
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def _tag(locale: str) -> str:
    return locale.replace("_", "-").lower()


def _values(given: Any) -> list[Any]:
    return list(given.values())


def _items(given: Any) -> list[tuple[Any, Any]]:
    return list(given.items())
