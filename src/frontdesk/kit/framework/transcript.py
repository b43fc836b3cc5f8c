"""A conversation as plain text, for somebody who is to read it and not to take part. Pure."""

from collections.abc import Iterable

from agent_framework import Content, Message

from frontdesk.kit.framework.contents import call_arguments, call_outcome


def transcript(messages: Iterable[Message]) -> str:
    """Return the messages as text: a paragraph each, which begins with the role."""
    paragraphs = ((message.role, "\n".join(filter(None, map(_text, message.contents)))) for message in messages)
    return "\n\n".join(f"{role}: {text}" for role, text in paragraphs if text)


def _text(content: Content) -> str:
    if content.type == "text":
        return content.text or ""
    if content.type == "function_call":
        return f"[calls {content.name} with {call_arguments(content)}]"
    if content.type == "function_result":
        return f"[result: {call_outcome(content)}]"
    if content.type in ("data", "uri"):
        return f"[{content.media_type or 'a file'}]"
    return ""
