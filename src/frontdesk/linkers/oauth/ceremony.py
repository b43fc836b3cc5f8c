"""The steps of an OAuth link. Each step uses up the grant of the previous one, so none can be repeated.

begin    the person requests a link in a chat, and gets the URL of a page of this host
ask      the person presses its button: the browser gets a cookie and is sent to the provider
prove    the browser returns with a code: same browser, same state, valid token
link     the person sees both accounts and confirms: the host links them
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from frontdesk.asgi.messages import Headers
from frontdesk.chat.i18n.wording import describe_person
from frontdesk.display.escaping import escape_line
from frontdesk.interfaces.linker import LinkerContext
from frontdesk.linkers.attempts import take_attempt
from frontdesk.linkers.oauth.provider import Account, CodeClient, Provider
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import Grant, LinkProof, LinkRecord

_MAX_SIGNED_LENGTH = 200


class Seal:
    """Signs ids with a secret of the host, each for one purpose."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def close(self, purpose: str, value: str) -> str:
        return f"{value}.{self.derive(purpose, value)}"

    def open(self, purpose: str, text: str) -> str | None:
        """Return the id if the signature is valid for this purpose, otherwise `None`."""
        value, _, signature = text.rpartition(".")
        if len(text) > _MAX_SIGNED_LENGTH or not text.isascii() or not value:
            return None
        return value if hmac.compare_digest(signature, self.derive(purpose, value)) else None

    def derive(self, purpose: str, value: str) -> str:
        """Return a keyed hash of an id for a purpose: 256 bits in URL-safe base64."""
        signed = hmac.digest(self._secret, f"{purpose}\n{value}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def digest(value: str) -> str:
    """Return the stored hash of a value that only the browser keeps."""
    return hashlib.sha256(value.encode()).hexdigest()


START: Final = "start"
STATE: Final = "state"
CONFIRM: Final = "confirm"
RETURN: Final = "return_to"
_MAX_CODE_LENGTH: Final = 4096


class StoppedError(Exception):
    """Raised when the ceremony cannot continue. The message is shown to the person."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(text)
        self.status, self.title, self.text = status, title, text


@dataclass(frozen=True, slots=True)
class ProviderRedirect:
    """A redirect to the provider, with the cookie that identifies the returning browser."""

    url: str
    state: str
    mark: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class Proved:
    """Two proved identities, before they are linked."""

    grant: Grant
    label: str

    @property
    def return_to(self) -> str:
        """Return the path of the page where the ceremony began, or an empty string if it began in a chat."""
        return str(self.grant.data.get(RETURN, ""))


class Ceremony:
    """The steps of an OAuth link, from the request to the stored link."""

    def __init__(self, host: LinkerContext, provider: Provider, client: CodeClient, linker: str) -> None:
        self._host, self._provider, self._client, self._linker = host, provider, client, linker
        self._sealed: Seal | None = None

    async def _seal(self) -> Seal:
        if self._sealed is None:
            self._sealed = Seal(await self._host.secret("oauth"))
        return self._sealed

    async def begin(
        self, identity: ChannelIdentity, expires_in: float, most: int, return_to: str = ""
    ) -> tuple[Grant, str]:
        """Begin a ceremony. Return its grant and its signed id. Raise `TooManyRequestsError` beyond `most`."""
        seal = await self._seal()
        place = f"oauth-begun:{seal.derive('begun', repr(identity.key))}"
        await take_attempt(self._host, place, identity, most=most, seconds=expires_in)
        expires_at = self._host.now() + expires_in
        data = {"step": START, RETURN: return_to}
        grant = Grant(grant_id=self._host.new_id("lnk"), identity=identity, expires_at=expires_at, data=data)
        await self._host.keep(grant)
        return grant, seal.close(START, grant.grant_id)

    async def get_begun(self, challenge: str) -> Grant:
        """Return the grant of an opened link. Change nothing, because chat apps prefetch links."""
        return await self._get_kept(START, challenge)

    async def ask(self, challenge: str) -> ProviderRedirect:
        """Use up the link and return the redirect for the browser."""
        grant = await self._get_kept(START, challenge)
        seal = await self._seal()
        state, mark = self._host.new_id("sta"), self._host.new_id("brw")
        url = await self._client.sign_in_url(
            state=seal.close(STATE, state), nonce=seal.derive("nonce", state), verifier=seal.derive("pkce", state)
        )
        mark = seal.close("browser", mark)
        asked = grant.replace(grant_id=state, data={**grant.data, "step": STATE, "browser": digest(mark)})
        if not await self._host.exchange(grant.grant_id, asked):
            raise _used()
        return ProviderRedirect(url=url, state=state, mark=mark, expires_at=grant.expires_at)

    async def prove(self, answer: Mapping[str, str], cookies: Headers) -> tuple[str, Grant]:
        """Verify the provider's answer and store the account. The state is used up in any case."""
        grant = await self._get_kept(STATE, answer.get("state", ""))
        same_browser(grant, cookie_name(grant.grant_id), cookies)
        if not await self._host.exchange(grant.grant_id):
            raise _used()
        await self._check_sender(answer)
        account = await self._account(answer, grant.grant_id)
        data = {
            "step": CONFIRM,
            "browser": grant.data["browser"],
            # A host of an earlier version has written none.
            RETURN: grant.data.get(RETURN, ""),
            "cookie": cookie_name(grant.grant_id),
            "subject": account.subject,
            "label": account.label,
            "claims": dict(account.claims),
        }
        proved = grant.replace(grant_id=self._host.new_id("cfm"), data=data)
        await self._host.keep(proved)
        return (await self._seal()).close(CONFIRM, proved.grant_id), proved

    async def _check_sender(self, answer: Mapping[str, str]) -> None:
        # Against mix-up attacks: the answer must come from the provider to which the browser was sent.
        endpoints = await self._provider.endpoints()
        sender = answer.get("iss")
        if (sender is None and endpoints.names_itself) or (
            sender is not None and endpoints.issuers and sender not in endpoints.issuers
        ):
            raise StoppedError(400, "Wrong sign-in provider", "The response is not from the provider that you chose.")

    async def _account(self, answer: Mapping[str, str], state: str) -> Account:
        error, code = answer.get("error"), answer.get("code", "")
        if error == "access_denied":
            raise StoppedError(403, "Nothing was linked", "You did not agree to sign in, so nothing was linked.")
        if error is not None or not 0 < len(code) <= _MAX_CODE_LENGTH:
            raise StoppedError(
                403, "Sign-in failed", "The provider could not sign you in. Ask for a new link to try again."
            )
        seal = await self._seal()
        tokens = await self._client.tokens(code, seal.derive("pkce", state))
        return await self._provider.account(tokens, seal.derive("nonce", state))

    async def get_proved(self, text: str, cookies: Headers) -> Proved:
        """Return both sides. Requires the browser that proved them."""
        grant = await self._get_kept(CONFIRM, text)
        same_browser(grant, str(grant.data["cookie"]), cookies)
        return Proved(grant, str(grant.data["label"]))

    async def link(self, proved: Proved) -> LinkRecord:
        grant = proved.grant
        claims: Mapping[str, Any] = grant.data["claims"]
        proof = LinkProof(
            grant_id=grant.grant_id,
            linker=self._linker,
            identity=grant.identity,
            subject=str(grant.data["subject"]),
            claims=claims,
        )
        return await self._host.join(proof)

    async def give_up(self, proved: Proved) -> None:
        await self._host.exchange(proved.grant.grant_id)

    async def _get_kept(self, step: str, text: str) -> Grant:
        grant_id = (await self._seal()).open(step, text)
        if grant_id is None:
            raise StoppedError(400, "Invalid link", "The link is incomplete, or was not created by this host.")
        grant = await self._host.kept(grant_id)
        if grant is None or grant.data.get("step") != step:
            raise _used()
        return grant


def cookie_name(state: str) -> str:
    """Return the cookie name of one ceremony, so that two in one browser do not interfere."""
    return f"frontdesk_link_{digest(state)[:16]}"


def same_browser(grant: Grant, name: str, cookies: Headers) -> None:
    """Reject any browser but the one that began the ceremony."""
    mark = cookies.get(name.encode("ascii"), b"").decode("latin-1")
    if not hmac.compare_digest(digest(mark), str(grant.data["browser"])):
        raise StoppedError(
            403,
            "Different browser",
            "Continue in the browser in which you started, or ask for a new link and open it here.",
        )


def _used() -> StoppedError:
    return StoppedError(410, "This link has expired", "It was used before or has expired. Ask for a new one.")


MAX_NAME_LENGTH: Final = 80

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
    body: str = field(repr=False)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def start_page(identity: ChannelIdentity, title: str, action: str) -> Page:
    sides = _sides(("In the chat", describe_person(identity)), ("In this browser", f"your {plain(title)} account"))
    return _page(
        "Link your account",
        "<p>You are about to link two accounts, so that the assistant knows that both are you.</p>",
        sides,
        "<p>Go on only if both are you, and you asked for this link yourself. "
        "Whoever else sent it to you wants to read your conversations.</p>",
        _button(action, f"Continue to {plain(title)}"),
    )


def build_leaving_page(title: str, url: str) -> Page:
    """Return the page that leads to the provider.

    It is not a redirect, because `form-action 'self'` also blocks form redirects to another host.
    """
    return _page(
        f"On to {plain(title)}",
        f'<p><a href="{escape(url)}" rel="noreferrer">Continue to {escape(plain(title))}</a></p>',
        head=f'<meta http-equiv="refresh" content="0;url={escape(url)}">',
    )


def confirm_page(identity: ChannelIdentity, title: str, account: str, *, link: str, cancel: str) -> Page:
    sides = _sides(("In the chat", describe_person(identity)), (f"Your {plain(title)} account", plain(account)))
    return _page(
        "Are both of these you?",
        sides,
        "<p>If you link them, whoever uses the one continues the conversations of the other.</p>",
        _button(link, "Yes, link them"),
        _button(cancel, "No, leave them apart", quiet=True),
    )


def build_done_page(identity: ChannelIdentity, title: str) -> Page:
    text = f"Your {plain(title)} account and your account on {plain(identity.channel)} are linked."
    return message_page("Linked", f"{text} You can close this page.")


def message_page(title: str, text: str, status: int = 200) -> Page:
    return _page(title, f"<p>{escape(text)}</p>", status=status)


def plain(text: str) -> str:
    """Return a name that cannot be disguised: without invisible characters, and of limited length."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * MAX_NAME_LENGTH])
    # Escapes are longer than what they stand for, so the limit counts them.
    visible = escape_line(" ".join(printable.split()))
    return visible if len(visible) <= MAX_NAME_LENGTH else visible[: MAX_NAME_LENGTH - 1] + "…"


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
