"""Our own tokens for calls to Bot Service: cached for each tenant, and requested once at a time."""

import asyncio

from frontdesk import loggers
from frontdesk.activity.clouds import Cloud
from frontdesk.activity.credentials import BotCredential, IssuedToken, TokenRequest
from frontdesk.auth.oidc import ProviderHttp
from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import PushError, UnavailableError
from frontdesk.secret import Secret

RENEW_SECONDS = 300.0
"""The seconds before its end at which a token is renewed."""
MAX_TOKENS = 64
"""The number of scopes of which the tokens are kept: that of Bot Service, and those of bots that call this one."""

_Key = tuple[str, str]


class BotTokens:
    """The tokens of one bot, in the memory of this process."""

    def __init__(
        self, app_id: str, credential: BotCredential, cloud: Cloud, *, http: ProviderHttp, clock: Clock
    ) -> None:
        self._app_id, self._credential, self._cloud = app_id, credential, cloud
        self._http, self._clock = http, clock
        self._tokens: dict[_Key, IssuedToken] = {}
        self._asking: dict[_Key, asyncio.Task[IssuedToken | PushError]] = {}
        self._refused: dict[_Key, tuple[float, PushError]] = {}

    async def get(self, audience: str = "", *, stale: Secret | None = None) -> Secret:
        """Return a token for Bot Service, or for a bot that has called this one.

        `stale` is a token that was refused. It is renewed once, however many calls have met it.
        """
        key = (self._credential.tenant or self._cloud.token_tenant, f"{audience or self._cloud.audience}/.default")
        known = self._tokens.get(key)
        if known is not None and known.token is not stale and self._clock.now() < known.expires_at - RENEW_SECONDS:
            return known.token
        self._raise_refusal(key)
        # A caller who leaves must not take the token from the others who wait for it.
        issued = await asyncio.shield(self._ask(key))
        if isinstance(issued, IssuedToken):
            return issued.token
        # A token that has not ended yet is good enough until the login server is back.
        if known is not None and known.token is not stale and self._clock.now() < known.expires_at:
            return known.token
        raise issued

    def _raise_refusal(self, key: _Key) -> None:
        """Raise the last refusal again for a while, so that calls in a row do not all ask the login server."""
        until, error = self._refused.get(key, (0.0, None))
        left = until - self._clock.steady()
        if error is not None and left > 0:
            raise PushError(str(error), code=error.code, retry_after=left, everywhere=True)

    def _ask(self, key: _Key) -> "asyncio.Task[IssuedToken | PushError]":
        task = self._asking.get(key)
        if task is None or task.done():
            task = self._asking[key] = spawn_clean(self._acquire(key))
        return task

    async def _acquire(self, key: _Key) -> IssuedToken | PushError:
        """Return a new token, or the error: several calls may wait for it, or none any more."""
        tenant, scope = key
        url = self._cloud.token_url(tenant)
        request = TokenRequest(self._app_id, url, scope, http=self._http, now=self._clock.now())
        try:
            issued = await self._credential.acquire(request)
        except UnavailableError:
            return PushError(
                "The login server can't be reached at the moment.", code="login_unavailable", everywhere=True
            )
        except PushError as error:
            if error.retry_after is not None:
                loggers.http.error("no token for the bot: tenant=%s: %s", tenant, error)
                self._refused[key] = (self._clock.steady() + error.retry_after, error)
            return error
        finally:
            self._asking.pop(key, None)
        while len(self._tokens) >= MAX_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[key] = issued
        self._refused.pop(key, None)
        return issued

    async def close(self) -> None:
        """End requests that are under way."""
        await cancel_and_wait(*self._asking.values())
