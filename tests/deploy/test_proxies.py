"""A host behind a real nginx and a real Caddy, with the files in deploy/: TLS, streams, WebSockets, and who calls."""

import asyncio
import datetime
import ipaddress
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.asyncio.client import connect

from frontdesk_testing import parse_sse
from tests.cli.processes import Running, frontdesk
from tests.docs.pages import ROOT, blocks

DEPLOY = ROOT / "deploy"
HOST = """
import asyncio
import collections

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel

GATES = collections.defaultdict(asyncio.Event)


async def answer(text: str):
    word, _, gate = text.partition(" ")
    if word == "go":
        GATES[gate].set()
    yield "first "
    if word == "wait":
        await GATES[gate].wait()
    yield "last"


auth = ApiKeyAuth({"ada": "a-key-that-is-long"})
host = AgentFrameworkHost(answer, channels=[ResponsesChannel(auth=auth), WebChatChannel()], allow_anonymous=True)
"""
KEY = {"authorization": "Bearer a-key-that-is-long"}
ELSEWHERE = "127.0.0.2"
"""The address from which the caller connects: another one than that of the proxy."""


class Site(NamedTuple):
    """A proxy that runs, and the host behind it."""

    url: str
    trust: ssl.SSLContext
    host: Running

    def client(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(verify=self.trust, local_address=ELSEWHERE)
        return httpx.AsyncClient(base_url=self.url, transport=transport, timeout=60)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("host")
    (place / "app.py").write_text(HOST, "utf-8")
    with Running(
        "serve", "app:host", "--port", "0", "--proxy", "127.0.0.1", "--log-level", "debug", cwd=place
    ) as running:
        running.url()
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate of the loopback address; its key is beside it."""
    place = tmp_path_factory.mktemp("tls") / "fullchain.pem"
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "desk")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    place.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    place.with_name("privkey.pem").write_bytes(encoded)
    return place


def nginx(place: Path, port: int, hosts: Sequence[str], certificate: Path) -> list[str]:
    """Write the configuration of nginx: our file, in the place of a server of Debian's."""
    ours = (DEPLOY / "nginx.conf").read_text("utf-8")
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("server 127.0.0.1:8000;", "".join(f"server {host};\n" for host in hosts)),
        ("/etc/ssl/hotel", str(certificate.parent)),
        ("desk.example.com", "127.0.0.1"),
    ):
        assert old in ours
        ours = ours.replace(old, new)
    (place / "hotel.conf").write_text(ours, "utf-8")
    paths = "".join(
        f"{name}_temp_path {place}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    main = f"{user}daemon off;\npid {place}/pid;\nerror_log stderr;\nevents {{}}\n"
    (place / "nginx.conf").write_text(f"{main}http {{\naccess_log off;\n{paths}include hotel.conf;\n}}\n", "utf-8")
    return ["-p", str(place), "-c", "nginx.conf"]


def caddy(place: Path, port: int, hosts: Sequence[str], certificate: Path) -> list[str]:
    """Write the configuration of Caddy: our file, with a certificate that nobody has to be asked for."""
    ours = (DEPLOY / "Caddyfile").read_text("utf-8")
    tls = f"tls {certificate} {certificate.with_name('privkey.pem')}"
    for old, new in (
        ("desk.example.com {", f"https://127.0.0.1:{port} {{\n{tls}"),
        ("127.0.0.1:8000", " ".join(hosts)),
    ):
        assert old in ours
        ours = ours.replace(old, new)
    (place / "Caddyfile").write_text(f"{{\nadmin off\nauto_https disable_redirects\n}}\n{ours}", "utf-8")
    return ["run", "--config", str(place / "Caddyfile")]


Writes = Callable[[Path, int, Sequence[str], Path], list[str]]


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def site(
    request: pytest.FixtureRequest, host: Running, certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("proxy")
    with in_front_of(request.param, place, certificate, host.url()) as url:
        yield Site(url, ssl.create_default_context(cafile=str(certificate)), host)


@contextmanager
def in_front_of(write: Writes, place: Path, certificate: Path, *hosts: str) -> Iterator[str]:
    """Run a proxy in front of some hosts; yield its address."""
    name = write.__name__
    program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"NOT TESTED: a host behind {name}: it is not installed (make test does it, when run as root)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = write(place, port, [host.removeprefix("http://") for host in hosts], certificate)
    environment = {**os.environ, "HOME": str(place), "XDG_DATA_HOME": str(place), "XDG_CONFIG_HOME": str(place)}
    with (place / "log").open("wb") as log:
        running = subprocess.Popen([program, *command], env=environment, stdout=log, stderr=log)
        try:
            wait_for_port(port, running, place / "log")
            yield f"https://127.0.0.1:{port}"
        finally:
            running.terminate()
            running.wait(timeout=60)


def wait_for_port(port: int, running: subprocess.Popen[Any], log: Path) -> None:
    """Wait until a program listens; it does not tell, so that it is tried again and again."""
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            assert running.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.02)


async def test_a_host_can_have_the_certificate_itself(certificate: Path, tmp_path: Path) -> None:
    """Run the program of the page, at a free port."""
    page = ROOT / "docs/guides/deploy.md"
    (block,) = [block for block in blocks("python") if block.page == page and "ssl_certfile" in block.text]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = block.text.replace("8443", str(port)).replace('"0.0.0.0"', '"127.0.0.1"')
    (tmp_path / "app.py").write_text(program, "utf-8")
    for name in ("fullchain.pem", "privkey.pem"):
        shutil.copy(certificate.with_name(name), tmp_path)
    with Running("app.py", cwd=tmp_path, command=(sys.executable,)) as running:
        wait_for_port(port, running.process, tmp_path / "app.py")
        trust = ssl.create_default_context(cafile=str(certificate))
        async with httpx.AsyncClient(verify=trust, trust_env=False) as client:
            key = {"authorization": "Bearer a-key-of-16-or-more"}
            answer = await client.post(f"https://127.0.0.1:{port}/v1/responses", json={"input": "hi"}, headers=key)
        assert answer.json()["status"] == "completed"


async def test_the_caller_is_known_by_their_own_address_and_a_made_up_one_is_dropped(site: Site) -> None:
    async with site.client() as client:
        made_up = {"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http"}
        answer = await client.post("/v1/responses", json={"input": "hi"}, headers={**KEY, **made_up})
        assert (answer.status_code, answer.json()["output"][0]["content"][0]["text"]) == (200, "first last")
        assert (await client.post("/v1/responses", json={"input": "hi"}, headers=made_up)).status_code == 401
    site.host.read_errors_until(f'{ELSEWHERE}:0 - "POST /v1/responses HTTP/1.1" 200')


async def test_a_stream_is_passed_on_while_it_is_written(site: Site) -> None:
    async with asyncio.timeout(60), site.client() as client, site.client() as other:
        body = {"input": f"wait {site.url}", "stream": True}
        seen, asked = b"", False
        async with client.stream("POST", "/v1/responses", json=body, headers=KEY) as stream:
            async for chunk in stream.aiter_bytes():
                seen += chunk
                if b"first" in seen and not asked:
                    # The rest is written only after this: a proxy that collects would wait for ever.
                    asked, go = True, {"input": f"go {site.url}"}
                    assert (await other.post("/v1/responses", json=go, headers=KEY)).status_code == 200
        assert list(parse_sse(seen))[-1].event == "response.completed"


async def test_a_websocket_is_passed_on(site: Site) -> None:
    url = site.url.replace("https", "wss") + "/v1/responses"
    async with asyncio.timeout(60), connect(url, additional_headers=KEY, ssl=site.trust, proxy=None) as wire:
        await wire.send(json.dumps({"type": "response.create", "input": "hi"}))
        events: list[Any] = []
        while not events or events[-1]["type"] != "response.completed":
            events.append(json.loads(await wire.recv()))
    assert events[-1]["response"]["status"] == "completed"


async def test_a_visitor_of_the_page_has_a_cookie_for_tls_alone(site: Site) -> None:
    async with site.client() as client:
        page = await client.get("/chat")
        assert page.status_code == 200
        me = await client.get("/chat/api/me")
    cookies = [header for answer in (page, me) for header in answer.headers.get_list("set-cookie")]
    assert cookies
    assert all(cookie.startswith("__Host-") and "; Secure" in cookie for cookie in cookies)


async def test_the_page_sends_a_message_on_a_port_other_than_443(site: Site) -> None:
    """The port is one that was free. A page of another port, or without one, is another site."""
    async with asyncio.timeout(60), site.client() as client:
        assert (await client.get("/chat")).status_code == 200
        path, body = "/chat/api/conversations/main/messages", {"client_id": "c1", "text": "hello"}
        for other in ("https://127.0.0.1", "https://127.0.0.1:1"):
            refused = await client.post(path, json=body, headers={"origin": other})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_refused")
        sent = await client.post(path, json=body, headers={"origin": site.url})
        assert sent.status_code == 200, sent.text
        answer = await client.post("/v1/responses", json={"input": "hi"}, headers={**KEY, "origin": site.url})
        assert answer.status_code == 200, answer.text
    site.host.read_errors_until("origin refused: origin='https://127.0.0.1:1'")


def test_hosts_that_share_a_database_are_one_and_one_of_them_may_stop(
    certificate: Path, tmp_path: Path, postgres: str
) -> None:
    """Run the host of deploy/ twice behind nginx, on Postgres."""
    shutil.copy(DEPLOY / "host.py", tmp_path)
    key = frontdesk("keys", "create", "ada", "--file", "keys.jsonl", cwd=tmp_path).stdout.strip()
    command = ("serve", "host.py:build_host", "--port", "0", "--proxy", "127.0.0.1")
    with ExitStack() as stack:
        hosts = [stack.enter_context(Running(*command, cwd=tmp_path, env={"DATABASE_URL": postgres})) for _ in range(2)]
        url = stack.enter_context(in_front_of(nginx, tmp_path, certificate, *(host.url() for host in hosts)))
        trust = ssl.create_default_context(cafile=str(certificate))
        headers = {"x-api-key": key}
        client = stack.enter_context(httpx.Client(base_url=url, verify=trust, headers=headers, timeout=60))
        last: dict[str, Any] = {}
        for number in range(6):
            if number == 4:
                # Its connections are refused from then on, and the other one has the whole conversation.
                assert hosts[0].stop() == 0
            body = {"input": f"message {number}", **({"previous_response_id": last["id"]} if last else {})}
            last = client.post("/v1/responses", json=body).raise_for_status().json()
            assert last["status"] == "completed"
        items = client.get(f"/v1/responses/{last['id']}/input_items", params={"limit": 100}).raise_for_status().json()
        assert items["data"]
