"""What a connection remembers of responses that are not stored: others can't make it forget."""

from frontdesk import ApiKeyAuth
from frontdesk.channels.responses import SocketLimits
from tests.scenarios.cast import parrot
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.sockets import dial

BOB, MALLORY = "the key of bob, long enough", "the key of mallory, long enough"
AUTH = ApiKeyAuth({"bob": BOB, "mallory": MALLORY})


def _key(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_one_caller_made_the_connections_of_another_forget() -> None:
    limits = SocketLimits(max_kept_bytes=20_000)
    async with (
        open_client(parrot(), auth=AUTH, sockets=limits, tapped=False) as desk,
        dial(desk, additional_headers=_key(BOB)) as bob,
    ):
        his = await bob.response("mine", store=False)
        for _ in range(2):
            async with dial(desk, additional_headers=_key(MALLORY)) as mallory:
                for _ in range(12):
                    hers = await mallory.response("x" * 2_000, store=False)
                # Her last one is there: there was no more than one caller could fill.
                assert (await mallory.response("y", store=False, previous_response_id=hers["id"]))["id"]
        going_on = await bob.response("again", store=False, previous_response_id=his["id"])
        assert going_on["status"] == "completed"
