"""What is left alone for a while."""

from frontdesk.concurrency.timeouts import LEFT_ALONE_SECONDS, Pauses
from frontdesk_testing import FakeClock


def test_a_name_is_left_alone_until_its_time() -> None:
    clock = FakeClock()
    pauses: Pauses[str] = Pauses(clock)
    assert (pauses.until("a"), list(pauses.names())) == (None, [])
    until = pauses.begin("a")
    assert until == clock.now() + LEFT_ALONE_SECONDS
    clock.advance(3)
    assert pauses.begin("b") == until + 3.0
    assert (pauses.until("a"), list(pauses.names())) == (until, ["a", "b"])
    clock.advance(LEFT_ALONE_SECONDS - 3)
    assert (pauses.until("a"), list(pauses.names())) == (None, ["b"])


def test_of_too_many_the_oldest_is_forgotten() -> None:
    pauses: Pauses[int] = Pauses(FakeClock(), most=3)
    for number in (1, 2, 3, 1, 4):
        pauses.begin(number)
    assert list(pauses.names()) == [3, 1, 4]
