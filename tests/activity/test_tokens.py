"""The bot's own tokens: each credential, one request at a time, renewed once, sent to no other server, never logged."""

import asyncio
import datetime
import logging
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from joserfc.jwk import RSAKey

from frontdesk.activity.client import ConnectorClient
from frontdesk.activity.clouds import CLOUDS, ServiceHosts
from frontdesk.activity.credentials import (
    EXCHANGE_SCOPE,
    BotCredential,
    Certificate,
    ClientSecret,
    FederatedIdentity,
    ManagedIdentity,
)
from frontdesk.activity.schema import Reference
from frontdesk.activity.tokens import BotTokens
from frontdesk.auth.oidc import ProviderHttp
from frontdesk.clock import Clock, SystemClock
from frontdesk.errors import PushError, PushRefusedError
from frontdesk_testing.activity import APP_ID, APP_SECRET, FakeActivity, fake_activity
from frontdesk_testing.clock import FakeClock

OWN_TENANT = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


def _tokens(fake: FakeActivity, credential: BotCredential, clock: Clock | None = None) -> BotTokens:
    cloud = CLOUDS["public"].on_loopback(fake.url)
    return BotTokens(APP_ID, credential, cloud, http=ProviderHttp(), clock=clock or SystemClock())


def _client(fake: FakeActivity, tokens: BotTokens) -> ConnectorClient:
    return ConnectorClient(tokens, ServiceHosts(CLOUDS["public"], loopback=fake.url))


def _certificate() -> tuple[str, str, RSAKey]:
    """Return a certificate and its key as PEM, and the public key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bot")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return certificate, private, RSAKey.import_key(private)


async def test_a_client_secret_is_exchanged_for_a_token_that_the_connector_accepts() -> None:
    async with fake_activity() as fake:
        ada = fake.person("Ada")
        tokens = _tokens(fake, ClientSecret(APP_SECRET))
        client = _client(fake, tokens)
        reference = Reference(url=fake.service_url(), channel="msteams", conversation=ada.chat.id, bot=fake.bot_id)
        activity = {"type": "message", "text": "hello", "from": {"id": fake.bot_id}}
        for _ in range(3):
            await client.send(reference, activity)
        assert [message.text for message in ada.chat.shown()] == ["hello"] * 3
        assert len(fake.login.requests) == 1
        await client.close()


async def test_a_certificate_signs_for_its_bot_and_sends_its_chain() -> None:
    certificate, private, key = _certificate()
    async with fake_activity() as fake:
        fake.login.certificate_key = key
        credential = Certificate(certificate=certificate, private_key=private)
        assert credential.findings() == []
        await _tokens(fake, credential).get()
        other = _certificate()
        with pytest.raises(PushError) as refused:
            await _tokens(fake, Certificate(certificate=other[0], private_key=other[1])).get()
        assert refused.value.code == "credential_refused"


async def test_a_managed_identity_asks_for_the_resource_and_a_federated_one_is_exchanged() -> None:
    asked: list[str] = []

    def get_token(scope: str) -> tuple[str, float]:
        asked.append(scope)
        return "token-of-the-machine", SystemClock().now() + 3600

    async with fake_activity(FakeActivity(token_tenant=OWN_TENANT)) as fake:
        fake.login.federated.add("token-of-the-machine")
        managed = _tokens(fake, ManagedIdentity(tenant=OWN_TENANT, get_token=get_token))
        assert (await managed.get()).reveal() == "token-of-the-machine"
        federated = _tokens(fake, FederatedIdentity(tenant=OWN_TENANT, get_token=get_token))
        assert (await federated.get()).reveal().startswith("token-")
        assert asked == ["https://api.botframework.com", EXCHANGE_SCOPE]

        async def assertion() -> str:
            return "token-of-the-machine"

        await _tokens(fake, FederatedIdentity(tenant=OWN_TENANT, assertion=assertion)).get()


async def test_a_single_tenant_bot_gets_its_token_from_its_own_tenant() -> None:
    async with fake_activity(FakeActivity(token_tenant=OWN_TENANT)) as fake:
        await _tokens(fake, ClientSecret(APP_SECRET, tenant=OWN_TENANT)).get()
        with pytest.raises(PushError) as refused:
            await _tokens(fake, ClientSecret(APP_SECRET)).get()
        assert "AADSTS90002" in str(refused.value)


async def test_many_calls_ask_for_one_token() -> None:
    async with fake_activity() as fake:
        tokens = _tokens(fake, ClientSecret(APP_SECRET))
        hold = fake.hold_next("LOGIN")
        calls = [asyncio.ensure_future(tokens.get()) for _ in range(20)]
        await hold.reached.wait()
        # One who leaves takes the token from nobody.
        calls[0].cancel()
        hold.release()
        given = await asyncio.gather(*calls[1:])
        assert len({token.reveal() for token in given}) == 1
        assert len(fake.login.requests) == 1


async def test_a_token_is_renewed_before_its_end_and_used_while_the_login_server_is_away() -> None:
    clock = FakeClock()
    async with fake_activity() as fake:
        tokens = _tokens(fake, ClientSecret(APP_SECRET), clock)
        first = await tokens.get()
        clock.advance(3600 - 301)
        assert await tokens.get() is first
        clock.advance(2)
        fake.fail_next("LOGIN", 503, "ServiceUnavailable")
        assert await tokens.get() is first
        second = await tokens.get()
        assert second is not first


async def test_a_refused_token_is_renewed_once() -> None:
    async with fake_activity() as fake:
        ada = fake.person("Ada")
        tokens = _tokens(fake, ClientSecret(APP_SECRET))
        client = _client(fake, tokens)
        reference = Reference(url=fake.service_url(), channel="msteams", conversation=ada.chat.id, bot=fake.bot_id)
        activity = {"type": "message", "text": "hello", "from": {"id": fake.bot_id}}
        await client.send(reference, activity)
        fake.login.revoke()
        await asyncio.gather(*(client.send(reference, activity) for _ in range(4)))
        assert len(fake.login.requests) == 2
        fake.fail_next("POST", 401, "Unauthorized", times=2)
        with pytest.raises(PushError) as refused:
            await client.send(reference, activity)
        assert (refused.value.code, refused.value.permanent, refused.value.everywhere) == ("unauthorized", False, True)
        assert len(ada.chat.shown()) == 5
        await client.close()


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/",
        "http://127.0.0.1:1/",
        "https://smba.trafficmanager.net/",
        "http://localhost/",
        "http://user@127.0.0.1/",
    ],
)
async def test_a_stored_service_url_of_another_server_gets_no_token(url: str) -> None:
    async with fake_activity() as fake:
        client = _client(fake, _tokens(fake, ClientSecret(APP_SECRET)))
        reference = Reference(url=url, channel="msteams", conversation="a:1", bot=fake.bot_id)
        calls: list[Callable[[], Any]] = [
            lambda: client.send(reference, {}),
            lambda: client.update(reference, "1", {}),
            lambda: client.delete(reference, "1"),
            lambda: client.create_direct(reference),
            lambda: client.download(f"{url}v3/attachments/1/views/original", max_bytes=9),
        ]
        for call in calls:
            with pytest.raises(PushRefusedError) as refused:
                await call()
            assert refused.value.code == "host_refused"
        assert fake.login.requests == []


async def test_a_file_of_the_connector_that_is_no_attachment_is_not_read_with_the_token() -> None:
    async with fake_activity() as fake:
        client = _client(fake, _tokens(fake, ClientSecret(APP_SECRET)))
        for path in ("teams/v3/conversations/a:1/pagedmembers", "teams/v3/attachments/../conversations/a:1"):
            with pytest.raises(PushRefusedError) as refused:
                await client.download(f"{fake.url}/{path}", max_bytes=9_999)
            assert refused.value.code == "host_refused"


async def test_neither_secret_nor_token_is_in_a_log_or_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    certificate, private, _ = _certificate()
    async with fake_activity() as fake:
        shown: list[str] = []
        wrong = "a-wrong-client-secret-that-is-long"
        for credential in (ClientSecret(wrong), Certificate(certificate=certificate, private_key=private)):
            shown.append(repr(credential))
            with pytest.raises(PushError) as refused:
                await _tokens(fake, credential).get()
            shown += [str(refused.value), repr(refused.value)]
        tokens = _tokens(fake, ClientSecret(APP_SECRET))
        token = (await tokens.get()).reveal()
        fake.fail_next("POST", 500, "InternalError")
        client = _client(fake, tokens)
        with pytest.raises(PushError) as failed:
            await client.send(
                Reference(url=fake.service_url(), channel="msteams", conversation="a:1", bot=fake.bot_id), {}
            )
        shown += [str(failed.value), caplog.text]
        for secret in (wrong, APP_SECRET, token, private.splitlines()[3], "client_assertion"):
            assert not any(secret in text for text in shown), secret
        await client.close()


@pytest.mark.parametrize(
    ("credential", "finding"),
    [
        (ClientSecret(""), "the secret must not be empty"),
        (ClientSecret("x", tenant="a b"), "tenant must be"),
        (Certificate(certificate="nothing", private_key="nothing"), "must be PEM"),
        (FederatedIdentity(client_id="x", assertion=lambda: "y"), "client_id has no effect"),
    ],
)
def test_a_credential_that_cannot_work_is_a_finding(credential: BotCredential, finding: str) -> None:
    assert any(finding in line for line in credential.findings())
