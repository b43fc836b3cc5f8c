"""All that the host itself says in a chat is in the catalogue of texts, so that it is said in the person's language."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import frontdesk
import frontdesk_testing
from frontdesk import errors
from frontdesk.chat.i18n.en import ENGLISH
from frontdesk.errors import ForbiddenError, RequestError
from frontdesk.interfaces.access import Denied

SOURCE = Path(frontdesk.__file__).parent
TESTING = Path(frontdesk_testing.__file__).parent
KINDS = {name: kind for name in errors.__all__ if issubclass(kind := getattr(errors, name), RequestError)}
ON_THE_WAY_OF_CHATS = (
    "access",
    "approvals",
    "delivery",
    "chat",
    "chat/i18n",
    "linkers/**",
    "runs",
    "sessions",
    "stores/**",
    "targets",
)
SPEAKING = (
    "approvals/message_updates.py",
    "delivery/proactive.py",
    "delivery/reply_rows.py",
    "inbox/*.py",
    "host/links/*.py",
    "chat/*.py",
    "linkers/*.py",
    "linkers/oauth/linker.py",
    "messages/*.py",
)
CATALOGUE = re.compile(r"(error_)?texts(_[a-z]+)?\.py")
OF_HTTP = {
    "BodyTimeoutError",
    "BodyTooLargeError",
    "KeyReusedError",
    "MethodNotAllowedError",
    "RequestError",
    "UnauthenticatedError",
    "UnsupportedMediaError",
}
"""Errors that only a caller over HTTP can make."""
FOR_INTEGRATORS = {
    "A request can't set the owner of its session.",
    "A request can't set isolation keys.",
    "Run to continue not found.",
    "operation must be one of {known}, got {request.operation}",
    "A response target can only list identities of the caller.",
    "An approval answer requires the session of the approval.",
    "An approval can be answered only once per request.",
    "Conversation not found.",
    "A waiting workflow accepts answers only. Send the message later.",
    "This target does not support checkpoints.",
    "Checkpoint not found.",
    "The run of this checkpoint has ended. Send a message to continue.",
    "The run of this checkpoint has not ended. Continue it without a message.",
    "`checkpoint_id` requires the session of the checkpoint.",
    "The approval at this checkpoint was already used. It can be used only once.",
    "Invalid cursor for runs. Use the cursor of the previous page.",
    "The client state can't be used: {error}",
    "The metadata of a watcher must be JSON.",
    "There is no such watcher.",
    "Link your account first. This request runs then. Repeat it to get its answer.",
    "Link your account first. This request runs then, as {run_id}.",
}
"""Mistakes of a program that calls the host, or of whoever has built it; no person can cause them in a chat."""
ABOUT_TARGETS = {"agent.py", "branches.py", "extras.py", "own_history.py", "extraction.py", "typed_input.py"}
"""The files whose errors say what a target can't do, to whoever has built it."""
TO_PROGRAMS = {"proactive.py", "recipients.py"}
"""The files whose errors are for the program or operator that sends a message by itself."""
TO_OPERATORS = {
    "This state has no principal rule. Start a host whose channels share an auth on it first.",
    "The principal rule was changed concurrently. Try again.",
}
"""Errors of `frontdesk people join-principals`, which no chat command calls."""
TO_PLATFORMS = {"webhook.py"}
"""The files whose errors are responses to a platform."""
NOT_IN_CHATS = {
    "The link has changed since it was read. Read it again.",
    "The reply to this event is being written.",
    "The event is invalid: {error}.",
    "The platform has not sent the bot's identity yet.",
    "The channel is not part of a host.",
    "No channel can send messages to this person.",
    "Your identity could not be verified. Ask for a new link.",
    "The accounts were not linked. You can close this page.",
    "An answer to another person's approval can't be combined with a session or other input.",
    "Send answers to your own approvals and to those of others in separate requests.",
}
"""Sentences for a platform or a program, and on the pages on which people sign in."""
SENTENCE = re.compile(r"[A-Z“{][^\n]* [^\n]*[.?!]")


def error_calls(tree: ast.Module) -> Iterator[ast.expr]:
    """Return the messages with which errors for callers are made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            kind = KINDS.get(node.func.id)
            # What these take is for the log, or a number.
            if kind is not None and not issubclass(kind, (errors.UnreadableRecordError, errors.FileTooLargeError)):
                yield node.args[0]


def constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts that a module has names for."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def messages(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"))
    named = constants(tree)
    for argument in error_calls(tree):
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value
        elif isinstance(argument, ast.Name) and argument.id in named:
            yield named[argument.id]
        elif isinstance(argument, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                for part in argument.values
                if isinstance(part, (ast.Constant, ast.FormattedValue))
            )


def shape(sentence: str) -> str:
    """Return a sentence whose values have no names."""
    return re.sub(r"\{[^}]*\}", "{}", sentence)


def list_spoken(tree: ast.Module) -> Iterator[str]:
    """Return the texts in a module that are neither docstrings nor parts of an error or a log line."""
    silent: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_log = isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("log.", "audit."))
        if is_docstring or is_log or isinstance(node, ast.Raise):
            silent.update(ast.walk(node))
    for node in ast.walk(tree):
        if node not in silent and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_errors_that_a_chat_can_show_are_in_the_catalogue() -> None:
    known = set(ENGLISH.values())
    missing = {name: kind.__doc__ for name, kind in KINDS.items() if name not in OF_HTTP and kind.__doc__ not in known}
    groups = {kind.group_message for kind in KINDS.values() if issubclass(kind, ForbiddenError)}
    denied = Denied(reason_code="x")
    assert missing == {}
    assert {*groups, denied.user_message, denied.group_message} <= known


def test_what_errors_say_on_the_way_of_a_chat_is_in_the_catalogue() -> None:
    known = {shape(sentence) for sentence in ENGLISH.values()}
    said = {
        f"{path.name}: {message}"
        for place in ON_THE_WAY_OF_CHATS
        for path in SOURCE.glob(f"{place}/*.py")
        if path.name not in ABOUT_TARGETS | TO_PLATFORMS | TO_PROGRAMS
        and (path.parent.name != "oauth" or path.name == "linker.py")
        for message in messages(path)
        if shape(message) not in known and message not in FOR_INTEGRATORS | NOT_IN_CHATS | TO_OPERATORS
    }
    # It is built from two sentences that are there.
    assert said == {"resume.py: The checkpoint of this session {why}."}


@pytest.mark.parametrize("place", SPEAKING)
def test_whatever_speaks_in_a_chat_takes_its_sentences_from_the_catalogue(place: str) -> None:
    known = set(ENGLISH.values())
    said = {
        f"{path.name}: {text}"
        for path in [*SOURCE.glob(place), *TESTING.glob(place)]
        if CATALOGUE.fullmatch(path.name) is None
        for text in list_spoken(ast.parse(path.read_text("utf-8")))
        if SENTENCE.fullmatch(text) and text not in known | NOT_IN_CHATS
    }
    assert said == set()


def test_a_sentence_that_is_not_in_the_catalogue_is_noticed() -> None:
    planted = ast.parse('"""Doc one."""\nlog.info("A log line.")\nreply("Something new is said.")\n')
    assert [text for text in list_spoken(planted) if SENTENCE.fullmatch(text)] == ["Something new is said."]
    raised = ast.parse('_NO = "Never do that."\nraise NotFoundError(_NO)\n')
    assert [ast.unparse(argument) for argument in error_calls(raised)] == ["_NO"]
    assert constants(raised) == {"_NO": "Never do that."}
