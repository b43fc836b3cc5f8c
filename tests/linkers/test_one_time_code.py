"""The ceremony of the code: issued, entered, confirmed; and everything that must not link anybody."""

import asyncio
import logging
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import LinkRefusedError, TooManyRequestsError
from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkChallenge, LinkRecord
from frontdesk.secret import Secret
from frontdesk.serialization.codec import encode
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock
from tests.access.linking import NAMES, Said, desk, introduce, keys, who


class Deaf(Said):
    """Nobody can be told anything."""

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        return False


class Hall:
    """A linker with a desk, and everybody at the door."""

    def __init__(self, said: Said | None = None, **settings: Any) -> None:
        self.store = InMemoryStateStore()
        self.clock = FakeClock()
        self.said = said or Said()
        self.links = desk(self.store, said=self.said, clock=self.clock)
        self.linker = OneTimeCodeIdentityLinker(**settings)
        self.linker.use(self.links)

    async def code(self, name: str) -> str:
        challenge = await self.linker.begin(who(name))
        assert challenge.code is not None
        return challenge.code

    async def enter(self, name: str, code: str) -> LinkChallenge:
        found = await self.linker.complete(who(name), code)
        assert isinstance(found, LinkChallenge)
        return found

    async def agree(self, name: str, code: str) -> LinkChallenge:
        """Somebody enters a code, and says that its issuer is them."""
        await self.enter(name, code)
        return await self.enter(name, "confirm")

    async def confirm(self, name: str) -> LinkRecord:
        found = await self.linker.complete(who(name), "confirm")
        assert isinstance(found, LinkRecord)
        return found

    async def nobody_is_linked(self) -> bool:
        return await keys(self.store) == {name: name for name in NAMES}


@pytest.fixture
async def hall() -> Hall:
    hall = Hall()
    await introduce(hall.store)
    return hall


async def read_refusal(hall: Hall, name: str, proof: str) -> LinkRefusedError:
    with pytest.raises(LinkRefusedError) as caught:
        await hall.linker.complete(who(name), proof)
    return caught.value


async def test_a_code_is_issued_entered_and_confirmed(hall: Hall) -> None:
    challenge = await hall.linker.begin(who("a"))
    assert challenge.identity == who("a")
    assert challenge.code is not None
    assert re.fullmatch(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{2}", challenge.code)
    assert challenge.code in challenge.instructions
    assert challenge.expires_at == hall.clock.now() + 900
    shown = await hall.enter("b", challenge.code)
    assert shown.instructions.startswith("This code is from “A” (id a) on chat-a. If that is you, answer /link confirm")
    assert "answer /link reject" in shown.instructions
    assert (shown.code, shown.identity.key, hall.said.words) == (None, who("b").key, [])
    waiting = await hall.enter("b", "confirm")
    assert waiting.instructions.startswith("Now go back to “A” (id a) on chat-a, and answer /link confirm there")
    assert await hall.nobody_is_linked()
    (asked,) = hall.said.to("a")
    assert asked.startswith("“B” (id b) on chat-b has entered your code")
    assert "answer /link confirm" in asked
    record = await hall.confirm("a")
    assert (record.identity.key, record.linker, record.previous_key) == (who("b").key, "one_time_code", "key of b")
    assert await keys(hall.store) == {"a": "a", "b": "a", "c": "c", "d": "d"}
    assert await hall.linker.resolve(who("b")) == record
    # The one who is answered is not told besides.
    assert hall.said.to("a") == [asked]
    assert hall.said.to("b") == ["This account is now linked with “A” (id a) on chat-a."]
    await hall.linker.unlink(who("b"))
    assert await hall.nobody_is_linked()
    assert await hall.linker.resolve(who("b")) is None


async def test_a_code_read_over_a_shoulder_is_not_enough(hall: Hall) -> None:
    code = await hall.code("a")
    await hall.agree("c", code)
    assert "“C” (id c) on chat-c has entered your code" in hall.said.to("a")[0]
    assert await hall.linker.complete(who("a"), "reject") is None
    assert hall.said.to("c") == ["“A” (id a) on chat-a has refused to be linked with this account."]
    assert (await read_refusal(hall, "a", "confirm")).code == "nothing_to_confirm"
    assert (await read_refusal(hall, "b", code)).code == "code_refused"
    assert await hall.nobody_is_linked()


@pytest.mark.parametrize("times", [1, 3])
async def test_neither_side_links_alone(hall: Hall, times: int) -> None:
    code = await hall.code("a")
    await hall.enter("b", code)
    for name in "ac":
        assert (await read_refusal(hall, name, "confirm")).code == "nothing_to_confirm"
    for _ in range(times):
        await hall.enter("b", "confirm")
    assert len(hall.said.to("a")) == 1
    assert (await read_refusal(hall, "c", "confirm")).code == "nothing_to_confirm"
    assert (await read_refusal(hall, "c", "reject")).code == "nothing_to_confirm"
    assert await hall.nobody_is_linked()


async def test_who_did_nothing_was_linked_when_the_issuer_confirmed(hall: Hall) -> None:
    await hall.enter("b", await hall.code("a"))
    assert (await read_refusal(hall, "a", "confirm")).code == "nothing_to_confirm"
    assert hall.said.words == []
    hall.clock.advance(900)
    assert (await read_refusal(hall, "b", "confirm")).code == "nothing_to_confirm"
    assert await hall.nobody_is_linked()


@pytest.mark.parametrize("word", ["reject", "no", "cancel", "No"])
async def test_who_entered_a_code_can_refuse_before_agreeing(hall: Hall, word: str) -> None:
    code = await hall.code("a")
    await hall.enter("b", code)
    assert await hall.linker.complete(who("b"), word) is None
    # Who has not agreed is not named to whoever issued the code.
    (told,) = hall.said.to("a")
    assert told.startswith("Somebody has entered your code and refused")
    assert (await read_refusal(hall, "a", "confirm")).code == "nothing_to_confirm"
    for name in "bc":
        assert (await read_refusal(hall, name, code)).code == "code_refused"
    assert await hall.nobody_is_linked()


async def test_who_entered_a_code_can_refuse_until_the_issuer_has_confirmed(hall: Hall) -> None:
    await hall.agree("b", await hall.code("a"))
    await hall.linker.begin(who("a"))
    hall.clock.advance(899)
    assert await hall.linker.complete(who("b"), "reject") is None
    assert hall.said.to("a")[-1] == "“B” (id b) on chat-b has refused to be linked with this account."
    assert (await read_refusal(hall, "a", "confirm")).code == "nothing_to_confirm"
    assert (await read_refusal(hall, "b", "reject")).code == "nothing_to_confirm"
    assert await hall.nobody_is_linked()


async def test_an_issuer_can_confirm_no_longer_than_the_other_can_refuse(hall: Hall) -> None:
    await hall.enter("b", await hall.code("a"))
    hall.clock.advance(800)
    await hall.enter("b", "yes")
    hall.clock.advance(100)
    for name in "ab":
        assert (await read_refusal(hall, name, "confirm")).code == "nothing_to_confirm"
    assert await hall.nobody_is_linked()


async def test_a_refusal_after_the_link_does_not_say_that_nothing_was_linked(hall: Hall) -> None:
    await hall.agree("b", await hall.code("a"))
    await hall.confirm("a")
    assert (await read_refusal(hall, "b", "reject")).code == "nothing_to_confirm"
    assert (await keys(hall.store))["b"] == "a"


async def test_an_issuer_can_take_codes_back_before_they_are_entered(hall: Hall) -> None:
    found = [await hall.code("a"), await hall.code("a")]
    await hall.enter("c", found[1])
    assert await hall.linker.complete(who("a"), "cancel") is None
    for code in found:
        assert (await read_refusal(hall, "b", code)).code == "code_refused"
    assert (await read_refusal(hall, "c", "confirm")).code == "code_refused"
    assert (await read_refusal(hall, "a", "cancel")).code == "nothing_to_confirm"
    await hall.agree("b", await hall.code("a"))
    await hall.confirm("a")


async def test_a_code_that_is_only_looked_at_is_not_used_up(hall: Hall) -> None:
    code = await hall.code("a")
    for name in "cbd":
        await hall.enter(name, code)
    await hall.enter("b", "confirm")
    for name in "cd":
        assert (await read_refusal(hall, name, "confirm")).code == "code_refused"
    assert (await hall.confirm("a")).identity.key == who("b").key


async def test_somebody_who_is_asked_answers_that_before_another_code(hall: Hall) -> None:
    first, second = await hall.code("a"), await hall.code("c")
    shown = await hall.enter("b", first)
    # Else a yes to the one would agree to the other.
    assert (await hall.enter("b", second)).instructions == shown.instructions
    assert (await hall.linker.begin(who("b"))).instructions == shown.instructions
    await hall.enter("b", "confirm")
    assert (hall.said.to("c"), len(hall.said.to("a"))) == ([], 1)


async def test_an_issuer_who_is_asked_something_else_keeps_the_code_for_later(hall: Hall) -> None:
    code = await hall.code("a")
    await hall.enter("a", await hall.code("c"))
    await hall.enter("b", code)
    assert (await read_refusal(hall, "b", "confirm")).code == "link_busy"
    await hall.linker.complete(who("a"), "reject")
    await hall.enter("b", "confirm")
    assert (await hall.confirm("a")).identity.key == who("b").key


@pytest.mark.parametrize("first", ["a", "b"])
async def test_a_yes_and_a_no_at_once_are_one_of_them(hall: Hall, first: str) -> None:
    await hall.agree("b", await hall.code("a"))
    words = {"a": "confirm", "b": "reject"}
    order = [first, "b" if first == "a" else "a"]
    ends = await asyncio.gather(
        *(hall.linker.complete(who(name), words[name]) for name in order), return_exceptions=True
    )
    told = dict(zip(order, ends, strict=True))
    linked = not await hall.nobody_is_linked()
    assert isinstance(told["a"], LinkRecord) is linked
    assert (told["b"] is None) is not linked


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["link", "enter", "confirm", "reject"])),
        max_size=12,
    )
)
async def test_whatever_is_said_only_two_who_both_agreed_are_linked(steps: list[tuple[str, str]]) -> None:
    hall = Hall(max_attempts_per_identity=50)
    await introduce(hall.store)
    code, agreed = "0000-0000", set[str]()
    for name, word in steps:
        waits = await hall.linker._question(who(name))
        proof = code if word == "enter" else word
        try:
            if word == "link":
                begun = await hall.linker.begin(who(name))
                code = begun.code or code
            else:
                found = await hall.linker.complete(who(name), proof)
                if word == "confirm" and waits is not None and waits.data["side"] == "entered":
                    agreed.add(name)
                if isinstance(found, LinkRecord):
                    assert found.identity.native_id in agreed
                    assert waits is not None
                    assert (waits.data["side"], waits.data["other"].key) == ("issued", found.identity.key)
                    return
        except (LinkRefusedError, TooManyRequestsError):
            continue
    assert await hall.nobody_is_linked()


async def test_wrong_ended_used_and_own_codes_look_alike(hall: Hall) -> None:
    used, own, late = await hall.code("a"), await hall.code("b"), await hall.code("c")
    await hall.agree("d", used)
    words = {str(await read_refusal(hall, "b", code)) for code in ("0000-0000", "what?", used, own)}
    hall.clock.advance(900)
    words.add(str(await read_refusal(hall, "a", late)))
    assert words == {"This code is invalid. Ask for a new one."}
    assert await hall.nobody_is_linked()


async def test_a_code_lived_for_a_day_when_the_clock_was_set_back(hall: Hall) -> None:
    hall.clock.jump(86_400)
    code = await hall.code("a")
    hall.clock.jump(-86_400)
    await read_refusal(hall, "b", code)
    hall.clock.advance(86_400)
    await read_refusal(hall, "b", code)
    # Another is issued and works, as if nothing had been.
    await hall.agree("b", await hall.code("a"))
    await hall.confirm("a")


async def test_case_and_dashes_do_not_matter(hall: Hall) -> None:
    code = await hall.code("a")
    assert (await hall.enter("b", f"  {code.lower().replace('-', ' ')} ")).identity.key == who("b").key


async def test_a_second_code_does_not_take_the_place_of_one_that_waits_for_a_word(hall: Hall) -> None:
    first, second = await hall.code("a"), await hall.code("a")
    await hall.agree("b", first)
    await hall.enter("c", second)
    # Else a yes to the one would link the other.
    assert (await read_refusal(hall, "c", "confirm")).code == "link_busy"
    record = await hall.confirm("a")
    assert record.identity.key == who("b").key


async def test_asking_again_shows_what_waits_instead_of_another_code(hall: Hall) -> None:
    await hall.agree("b", await hall.code("a"))
    shown = await hall.linker.begin(who("a"))
    assert shown.code is None
    assert shown.instructions == hall.said.to("a")[0]


async def test_what_was_not_shown_is_not_confirmed() -> None:
    hall = Hall(Deaf())
    await introduce(hall.store)
    await hall.agree("b", await hall.code("a"))
    shown = await hall.linker.complete(who("a"), "confirm")
    assert isinstance(shown, LinkChallenge)
    assert "“B” (id b) on chat-b has entered your code" in shown.instructions
    assert await hall.nobody_is_linked()
    await hall.confirm("a")
    assert (await keys(hall.store))["b"] == "a"


async def test_a_confirmation_can_name_what_it_confirms(hall: Hall) -> None:
    shown = await hall.enter("b", await hall.code("a"))
    for wrong in (f"{shown.challenge_id}0", "lch_1"):
        assert (await read_refusal(hall, "b", f"confirm {wrong}")).code == "nothing_to_confirm"
        assert (await read_refusal(hall, "b", f"reject {wrong}")).code == "nothing_to_confirm"
    await hall.enter("b", f"confirm {shown.challenge_id}")
    shown = await hall.linker.begin(who("a"))
    entered = await hall.linker.begin(who("c"))
    for wrong in (entered.challenge_id, f"{shown.challenge_id}0", shown.challenge_id[:-1] + "x", "lch_1", "ü.\ud800"):
        assert (await read_refusal(hall, "a", f"confirm {wrong}")).code == "nothing_to_confirm"
    assert isinstance(await hall.linker.complete(who("a"), f"confirm {shown.challenge_id}"), LinkRecord)


async def test_a_made_up_challenge_is_refused_without_a_look(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    await hall.enter("b", await hall.code("a"))
    asked: list[str] = []
    plain = hall.store.identities.grant

    async def grant(grant_id: str) -> Any:
        asked.append(grant_id)
        return await plain(grant_id)

    monkeypatch.setattr(hall.store.identities, "grant", grant)
    await read_refusal(hall, "a", "confirm lch_made.up")
    assert asked == []


async def test_of_ten_who_agree_at_once_one_waits(hall: Hall) -> None:
    code = await hall.code("a")
    for number in range(10):
        await hall.enter(f"x{number}", code)
    entered = await asyncio.gather(
        *(hall.linker.complete(who(f"x{number}"), "confirm") for number in range(10)), return_exceptions=True
    )
    assert sum(isinstance(one, LinkChallenge) for one in entered) == 1
    assert sum(isinstance(one, LinkRefusedError) for one in entered) == 9


async def test_attempts_of_one_are_limited(hall: Hall) -> None:
    for _ in range(5):
        await read_refusal(hall, "b", "0000-0000")
    code = await hall.code("a")
    with pytest.raises(TooManyRequestsError) as caught:
        await hall.linker.complete(who("b"), code)
    assert caught.value.retry_after is not None
    assert 1 <= caught.value.retry_after <= 900
    # Others are not kept from it, nor are they who wait.
    await hall.enter("c", code)
    hall.clock.advance(caught.value.retry_after)
    await hall.enter("b", await hall.code("d"))


async def test_attempts_at_once_are_all_counted(hall: Hall) -> None:
    ends = await asyncio.gather(
        *(hall.linker.complete(who("b"), "0000-0000") for _ in range(20)), return_exceptions=True
    )
    assert sum(isinstance(one, LinkRefusedError) for one in ends) == 5
    assert sum(isinstance(one, TooManyRequestsError) for one in ends) == 15


async def test_strangers_closed_linking_for_everybody() -> None:
    hall = Hall()
    code = await hall.code("a")
    others = [letters for letters in ("0000", "1111", "2222", "3333") if letters != code[:4]]
    for number in range(60):
        await refuse_any(hall, f"x{number}", f"{others[number % len(others)]}-0000-00")
    await hall.enter("b", code)


async def test_many_who_guess_find_no_code_sooner_than_one() -> None:
    hall = Hall()
    code = await hall.code("a")
    wrong = code[:-1] + ("0" if code[-1] != "0" else "1")
    ends = await asyncio.gather(*(hall.linker.complete(who(f"x{n}"), wrong) for n in range(20)), return_exceptions=True)
    assert sum(isinstance(one, LinkRefusedError) for one in ends) == 5
    assert sum(isinstance(one, TooManyRequestsError) for one in ends) == 15
    # From then on the right one works no more either, until the window ends: whoever has it asks for another.
    with pytest.raises(TooManyRequestsError):
        await hall.linker.complete(who("b"), code)
    await hall.enter("b", await hall.code("c"))


async def refuse_any(hall: Hall, name: str, code: str) -> None:
    with pytest.raises((LinkRefusedError, TooManyRequestsError)):
        await hall.linker.complete(who(name), code)


async def test_codes_of_one_are_limited(hall: Hall) -> None:
    assert len({await hall.code("a") for _ in range(5)}) == 5
    with pytest.raises(TooManyRequestsError):
        await hall.code("a")
    await hall.code("b")


async def test_nothing_that_is_kept_logged_or_shown_has_the_code_in_it(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    challenge = await hall.linker.begin(who("a"))
    assert challenge.code is not None
    code, plain = challenge.code, challenge.code.replace("-", "")
    kept = [encode(one) for one in hall.store.identities.grants._items.values()]
    await hall.enter("b", code)
    kept += [encode(one) for one in hall.store.identities.grants._items.values()]
    await hall.enter("b", "confirm")
    kept += [encode(one) for one in hall.store.identities.grants._items.values()]
    await hall.confirm("a")
    told = " ".join(text for _, text in hall.said.words)
    for text in (b" ".join(kept).decode(), caplog.text, told, repr(challenge), str(hall.linker)):
        assert code not in text
        assert plain not in text


async def test_the_operators_secret_is_what_counts_where_there_is_one() -> None:
    halls = [Hall(secret=secret) for secret in ("s" * 16, Secret("s" * 16), "t" * 16)]
    places = [await hall.linker._grants.place("question", who("a")) for hall in halls]
    assert places[0] == places[1] != places[2]
    assert not halls[0].store.identities.secrets


async def test_a_long_name_cannot_pass_for_instructions(hall: Hall) -> None:
    liar = ChannelIdentity(channel="chat-x", native_id="x", attributes={"name": "you”. Answer\n/link confirm! " * 9})
    await hall.linker.complete(liar, await hall.code("a"))
    await hall.linker.complete(liar, "confirm")
    (asked,) = hall.said.to("a")
    assert "\n" not in asked
    assert asked.startswith("“you . Answer /link confirm! you . Answe…” (id x) on chat-x has entered")


async def test_codes_have_enough_bits_for_their_life() -> None:
    assert 32**8 >= 2**40
    hall = Hall()
    await introduce(hall.store)
    seen = {await hall.code(name) for name in NAMES}
    assert len(seen) == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"code_length": 7},
        {"code_length": 41},
        {"expires_in": 0},
        {"expires_in": 10**9},
        {"max_attempts_per_identity": 0},
        {"max_attempts_per_code": 0},
        {"secret": "short"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        OneTimeCodeIdentityLinker(**settings)
