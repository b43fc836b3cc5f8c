"""The records of what goes out. Another record here is another format: a new version, and a reader for the old."""

from typing import Any

import pytest

from frontdesk.models.delivery import Attempt, Delivery, Route, Skipped
from frontdesk.models.identity import ChannelIdentity, PushGroup
from frontdesk.models.reply import Address, ResponseTarget
from frontdesk.serialization import codec

GOLDEN: tuple[tuple[Any, str], ...] = (
    (
        ResponseTarget.identity(ChannelIdentity(channel="c", native_id="n")),
        '{"$":"ResponseTarget","kind":"identities","addresses":{"$":"tuple","items":[{"$":"Address","channel":"c",'
        '"native_id":"n"}]}}',
    ),
    (
        ResponseTarget.identity(ChannelIdentity(channel="c", native_id="n", attributes={"name": "Ann"})),
        '{"$":"ResponseTarget","kind":"identities","addresses":{"$":"tuple","items":[{"$":"Address","channel":"c",'
        '"native_id":"n","attributes":{"name":"Ann"}}]}}',
    ),
    (
        Route(
            originating=True,
            skipped=(Skipped(address=Address(channel="c", native_id=""), reason="why"),),
            fallback=True,
        ),
        '{"$":"Route","originating":true,"skipped":{"$":"tuple","items":[{"$":"Skipped","address":{"$":"Address",'
        '"channel":"c","native_id":""},"reason":"why"}]},"fallback":true}',
    ),
    (
        Skipped(address=Address(channel="c", native_id="n"), reason="why", code="link_policy"),
        '{"$":"Skipped","address":{"$":"Address","channel":"c","native_id":"n"},"reason":"why","code":"link_policy"}',
    ),
    (
        PushGroup(conversation_id="g", reference={"thread": "1"}),
        '{"$":"PushGroup","conversation_id":"g","reference":{"thread":"1"}}',
    ),
    (
        Delivery(
            delivery_id="d",
            answer_id="a",
            run_id="r",
            owner="o",
            channel="c",
            identity=ChannelIdentity(channel="c", native_id="n"),
            conversation_id="v",
            reference={"url": "u"},
            queue="n",
            part=1,
            parts=2,
            payload={"text": "hi"},
            is_echo=True,
            status="unknown",
            attempts=2,
            error="timeout",
            history=(Attempt(at=1.5, code="timeout"),),
            created_at=1.0,
            queued_at=1.25,
            due_at=1.5,
            ended_at=2.0,
            fence=4,
            number=3,
        ),
        '{"$":"Delivery","delivery_id":"d","answer_id":"a","run_id":"r","owner":"o","channel":"c","identity":'
        '{"$":"ChannelIdentity","channel":"c","native_id":"n"},"conversation_id":"v","reference":{"url":"u"},'
        '"queue":"n","part":1,"parts":2,'
        '"payload":{"text":"hi"},"is_echo":true,"status":"unknown","attempts":2,"error":"timeout","history":'
        '{"$":"tuple","items":[{"$":"Attempt","at":1.5,"code":"timeout"}]},"created_at":1.0,"queued_at":1.25,'
        '"due_at":1.5,"ended_at":2.0,"fence":4,"number":3}',
    ),
    (Attempt(at=1.5, code="down", waited=2.5), '{"$":"Attempt","at":1.5,"code":"down","waited":2.5}'),
)


@pytest.mark.parametrize(("value", "record"), GOLDEN)
def test_golden(value: Any, record: str) -> None:
    data = f'{{"v":1,"data":{record}}}'.encode()
    assert codec.encode(value) == data
    assert codec.decode(data) == value


def test_a_delivery_of_the_first_version_is_read() -> None:
    old = (
        '{"$":"Delivery","delivery_id":"d","run_id":"r","owner":"o","channel":"c","identity":{"$":"ChannelIdentity",'
        '"channel":"c","native_id":"n"},"part":0,"payload":{"text":"hi"},"created_at":1.0,"due_at":1.0}'
    )
    found: Delivery = codec.decode(f'{{"v":1,"data":{old}}}'.encode())
    assert (found.destination, found.idempotency_key, found.parts, found.history) == (("c", "n"), "d", 1, ())
