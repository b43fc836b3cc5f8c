"""The sentences of the host's own commands and notices, by language. Pure."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

from frontdesk.abc.commands import CommandLocale
from frontdesk.kit.chat.texts_de import GERMAN

ENGLISH: Mapping[str, str] = {
    "command.start": "Say hello",
    "start.hello": "Hello! Write to me; /help shows what I understand.",
    "command.new": "Start a new conversation",
    "command.sessions": "List our conversations",
    "command.resume": "Go on with an earlier conversation",
    "command.name": "Give this conversation a title",
    "command.cancel": "Stop what I work on",
    "command.help": "Show what I understand",
    "command.link": "Link this account with another one of yours",
    "command.connect": "The same as link",
    "command.unlink": "Separate this account again",
    "command.whoami": "Show how I know you",
    "command.unknown": "I don't know /{name}. /help tells what I understand.",
    "scope.groups": "/{name} is for groups.",
    "scope.admins": "In a group, /{name} is for its administrators.",
    "scope.direct": "Please use /{name} in our direct chat.",
    "sessions.anew": "We start anew.",
    "sessions.none": "There is no conversation yet.",
    "sessions.line": "{number} - {at} UTC, {messages} messages",
    "sessions.line_about": "{number} - “{words}”, {at} UTC, {messages} messages",
    "sessions.line_current": "{line}, this one",
    "sessions.which": "Say which one, such as /resume 2. /sessions lists them.",
    "sessions.unknown": "I don't know that conversation. /sessions lists those that there are.",
    "sessions.back": "We go on where we were, after {messages} messages.",
    "sessions.which_title": "Say the title, such as /name Holiday plans; /name - removes it.",
    "sessions.long_title": "A title has {most} characters at most.",
    "sessions.named": "This conversation is called “{title}” now.",
    "sessions.unnamed": "This conversation has no title now.",
    "cancel.stopped": "I have stopped.",
    "cancel.stopped_elsewhere": "I have stopped what you asked {places}.",
    "cancel.here": "here",
    "cancel.on": "on {channel}",
    "cancel.and": "{first} and {second}",
    "cancel.dropped": "I have dropped my question.",
    "cancel.dropped_many": "I have dropped my {questions} questions.",
    "cancel.nothing": "There is nothing to stop.",
    "link.in_private": "Please ask me that in a direct chat.",
    "link.answered": "I have answered you in our direct chat.",
    "link.linked": "Done: your accounts share one conversation now.",
    "link.given_up": "Nothing was linked.",
    "link.alone": "This account is not linked.",
    "link.parted": "This account is no longer linked. It has a conversation of its own again.",
    "link.whoami": "You are {person}. Not linked.",
    "link.whoami_linked": "You are {person}. Linked.",
    "link.whoami_linked_with": "You are {person}. Linked with {channels}.",
    "link.too_many": "Too many attempts. Try again in {minutes} minutes.",
    "link.too_many_now": "Too many attempts. Try again in 1 minute.",
    "limits.too_many": "You send more than I can take. I have not read your last messages; please wait a little.",
    "background.works": "I am working on it; this may take a while.",
    "background.cancel": "/{command} stops it.",
}
"""Every sentence, by its key."""
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
        """Return a sentence in a language; `pt-BR` falls back to `pt`, and then to English."""
        return self._template(key, locale).format(**values)

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
