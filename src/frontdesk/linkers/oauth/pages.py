"""The pages of the ceremony: plain HTML without scripts, with all input escaped."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Final

from frontdesk.data.identity import ChannelIdentity
from frontdesk.kit.chat.people import told_as

LONGEST_NAME: Final = 80

_STYLE: Final = (
    "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}h1{font-size:1.4rem}dt{font-weight:600;margin-top:.8rem}"
    "dd{margin:0;overflow-wrap:anywhere}form{margin:1.2rem 0}"
    "button{font:inherit;width:100%;padding:.8rem;border:1px solid #1b1b1b;border-radius:.4rem;"
    "background:#1b1b1b;color:#fff}.no button{background:#fff;color:#1b1b1b}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#16181c}"
    "button{background:#eee;color:#16181c}.no button{background:#16181c;color:#eee;border-color:#eee}}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to a browser."""

    body: str = field(repr=False)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def start_page(identity: ChannelIdentity, title: str, action: str) -> Page:
    """Return the page that says what is about to happen, before anything does."""
    sides = _sides(("In the chat", told_as(identity)), ("In this browser", f"your {plain(title)} account"))
    return _page(
        "Link your account",
        "<p>You are about to link two accounts, so that the assistant knows that both are you.</p>",
        sides,
        "<p>Go on only if both are you, and you asked for this link yourself. "
        "Whoever else sent it to you wants to read your conversations.</p>",
        _button(action, f"Continue to {plain(title)}"),
    )


def leaving_page(title: str, url: str) -> Page:
    """Return the page that leads to the provider.

    A page and not a redirect: `form-action 'self'` also stops redirects of a form to another host.
    """
    return _page(
        f"On to {plain(title)}",
        f'<p><a href="{escape(url)}" rel="noreferrer">Continue to {escape(plain(title))}</a></p>',
        head=f'<meta http-equiv="refresh" content="0;url={escape(url)}">',
    )


def confirm_page(identity: ChannelIdentity, title: str, account: str, *, link: str, cancel: str) -> Page:
    """Return the page that names both sides and asks for confirmation."""
    sides = _sides(("In the chat", told_as(identity)), (f"Your {plain(title)} account", plain(account)))
    return _page(
        "Are both of these you?",
        sides,
        "<p>If you link them, whoever uses the one continues the conversations of the other.</p>",
        _button(link, "Yes, link them"),
        _button(cancel, "No, leave them apart", quiet=True),
    )


def done_page(identity: ChannelIdentity, title: str) -> Page:
    """Return the page that says that the accounts are linked."""
    text = f"Your {plain(title)} account and your account on {plain(identity.channel)} are linked."
    return message_page("Linked", f"{text} You can close this page.")


def message_page(title: str, text: str, status: int = 200) -> Page:
    """Return a page with a message."""
    return _page(title, f"<p>{escape(text)}</p>", status=status)


def plain(text: str) -> str:
    """Return a name that can't be disguised: without invisible characters, and not too long."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * LONGEST_NAME])
    visible = " ".join(printable.split())
    return visible if len(visible) <= LONGEST_NAME else visible[: LONGEST_NAME - 1] + "…"


def _sides(*sides: tuple[str, str]) -> str:
    rows = "".join(f"<dt>{escape(side)}</dt><dd><bdi>{escape(name)}</bdi></dd>" for side, name in sides)
    return f"<dl>{rows}</dl>"


def _button(action: str, text: str, *, quiet: bool = False) -> str:
    kind = ' class="no"' if quiet else ""
    return f'<form method="post" action="{escape(action)}"{kind}><button>{escape(text)}</button></form>'


def _page(title: str, *parts: str, head: str = "", status: int = 200) -> Page:
    body = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"{head}<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{''.join(parts)}</main></body></html>"
    )
    return Page(body=body, status=status)
