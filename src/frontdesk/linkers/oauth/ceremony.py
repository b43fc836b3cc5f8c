"""The ceremony, step by step. Each step uses up the grant of the one before, so that none can be done twice.

begin    the person asks in a chat, and gets a link to a page of ours
ask      they press its button: the browser is marked, and sent to the provider
prove    it comes back with a code: the same browser, the same state, a good token
link     they see both sides and agree: now the host links them
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant, LinkProof, LinkRecord
from frontdesk.kit.http.asgi import Headers
from frontdesk.linkers.attempts import take_attempt
from frontdesk.linkers.oauth.client import CodeClient
from frontdesk.linkers.oauth.provider import Account, Provider
from frontdesk.linkers.oauth.seal import Seal, digest

START: Final = "start"
STATE: Final = "state"
CONFIRM: Final = "confirm"
RETURN: Final = "return_to"
_LONGEST_CODE: Final = 4096


class StoppedError(Exception):
    """The ceremony can't go on; the text is shown to the person."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(text)
        self.status, self.title, self.text = status, title, text


@dataclass(frozen=True, slots=True)
class Leaving:
    """A browser on its way to the provider, with the mark by which it is recognised when it comes back."""

    url: str
    state: str
    mark: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class Proved:
    """Both sides, before they are linked."""

    grant: Grant
    label: str

    @property
    def return_to(self) -> str:
        """Return the path of the page where the person began; empty if that was in a chat."""
        return str(self.grant.data.get(RETURN, ""))


class Ceremony:
    """The steps from the request for a link to the link."""

    def __init__(self, desk: LinkDesk, provider: Provider, client: CodeClient, linker: str) -> None:
        self._desk, self._provider, self._client, self._linker = desk, provider, client, linker
        self._sealed: Seal | None = None

    async def _seal(self) -> Seal:
        if self._sealed is None:
            self._sealed = Seal(await self._desk.secret("oauth"))
        return self._sealed

    async def begin(
        self, identity: ChannelIdentity, expires_in: float, most: int, return_to: str = ""
    ) -> tuple[Grant, str]:
        """Begin a ceremony; return its grant and its signed id. Raise `TooManyRequestsError` beyond `most`."""
        seal = await self._seal()
        place = f"oauth-begun:{seal.derive('begun', repr(identity.key))}"
        await take_attempt(self._desk, place, identity, most=most, seconds=expires_in)
        expires_at = self._desk.now() + expires_in
        data = {"step": START, RETURN: return_to}
        grant = Grant(grant_id=self._desk.new_id("lnk"), identity=identity, expires_at=expires_at, data=data)
        await self._desk.keep(grant)
        return grant, seal.close(START, grant.grant_id)

    async def begun(self, challenge: str) -> Grant:
        """Return the grant of a link that was opened; change nothing, because chat apps open links too."""
        return await self._kept(START, challenge)

    async def ask(self, challenge: str) -> Leaving:
        """Use up the link, and return where to send the browser."""
        grant = await self._kept(START, challenge)
        seal = await self._seal()
        state, mark = self._desk.new_id("sta"), self._desk.new_id("brw")
        url = await self._client.sign_in_url(
            state=seal.close(STATE, state), nonce=seal.derive("nonce", state), verifier=seal.derive("pkce", state)
        )
        mark = seal.close("browser", mark)
        asked = grant.replace(grant_id=state, data={**grant.data, "step": STATE, "browser": digest(mark)})
        if not await self._desk.exchange(grant.grant_id, asked):
            raise _used()
        return Leaving(url=url, state=state, mark=mark, expires_at=grant.expires_at)

    async def prove(self, answer: Mapping[str, str], cookies: Headers) -> tuple[str, Grant]:
        """Check the answer of the provider, and keep the account that it proves; the state is used up in any case."""
        grant = await self._kept(STATE, answer.get("state", ""))
        same_browser(grant, cookie_name(grant.grant_id), cookies)
        if not await self._desk.exchange(grant.grant_id):
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
        proved = grant.replace(grant_id=self._desk.new_id("cfm"), data=data)
        await self._desk.keep(proved)
        return (await self._seal()).close(CONFIRM, proved.grant_id), proved

    async def _check_sender(self, answer: Mapping[str, str]) -> None:
        # Against mix-up attacks: the answer must come from the provider to which the browser was sent.
        endpoints = await self._provider.endpoints()
        sender = answer.get("iss")
        if (sender is None and endpoints.names_itself) or (
            sender is not None and endpoints.issuers and sender not in endpoints.issuers
        ):
            raise StoppedError(400, "Not from the right place", "This answer did not come from the provider you chose.")

    async def _account(self, answer: Mapping[str, str], state: str) -> Account:
        error, code = answer.get("error"), answer.get("code", "")
        if error == "access_denied":
            raise StoppedError(403, "Nothing was linked", "You did not agree to sign in, so nothing was linked.")
        if error is not None or not 0 < len(code) <= _LONGEST_CODE:
            raise StoppedError(
                403, "The sign-in did not work", "The provider could not sign you in. Ask for a new link to try again."
            )
        seal = await self._seal()
        tokens = await self._client.tokens(code, seal.derive("pkce", state))
        return await self._provider.account(tokens, seal.derive("nonce", state))

    async def proved(self, text: str, cookies: Headers) -> Proved:
        """Return both sides, for the browser in which they were proved."""
        grant = await self._kept(CONFIRM, text)
        same_browser(grant, str(grant.data["cookie"]), cookies)
        return Proved(grant, str(grant.data["label"]))

    async def link(self, proved: Proved) -> LinkRecord:
        """Link both sides, which the person has confirmed."""
        grant = proved.grant
        claims: Mapping[str, Any] = grant.data["claims"]
        proof = LinkProof(
            grant_id=grant.grant_id,
            linker=self._linker,
            identity=grant.identity,
            subject=str(grant.data["subject"]),
            claims=claims,
        )
        return await self._desk.join(proof)

    async def give_up(self, proved: Proved) -> None:
        """Drop the grant, because the person has declined."""
        await self._desk.exchange(proved.grant.grant_id)

    async def _kept(self, step: str, text: str) -> Grant:
        grant_id = (await self._seal()).open(step, text)
        if grant_id is None:
            raise StoppedError(400, "Not a link of ours", "This link is not complete, or it was not made here.")
        grant = await self._desk.kept(grant_id)
        if grant is None or grant.data.get("step") != step:
            raise _used()
        return grant


def cookie_name(state: str) -> str:
    """Return the name of the cookie of one ceremony, so that two in one browser don't disturb each other."""
    return f"frontdesk_link_{digest(state)[:16]}"


def same_browser(grant: Grant, name: str, cookies: Headers) -> None:
    """Refuse a browser other than the one that began the ceremony."""
    mark = cookies.get(name.encode("ascii"), b"").decode("latin-1")
    if not hmac.compare_digest(digest(mark), str(grant.data["browser"])):
        raise StoppedError(
            403, "Another browser", "Go on in the browser in which you began, or ask for a new link and open it here."
        )


def _used() -> StoppedError:
    return StoppedError(410, "This link has ended", "It was used already, or it is too old. Ask for a new one.")
