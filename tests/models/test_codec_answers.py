"""The types that agents answer in get their JSON form by themselves."""

from pydantic import BaseModel

from frontdesk.serialization.codec import decode, encode, register_answer


def test_two_types_of_one_name_are_noticed() -> None:
    def made() -> type[BaseModel]:
        class Answer(BaseModel):
            text: str

        return Answer

    first = made()
    assert register_answer(first)
    assert register_answer(first)
    assert not register_answer(made())
    assert register_answer(None)
    assert register_answer({"type": "object"})


def test_what_was_registered_is_kept() -> None:
    class Forecast(BaseModel):
        degrees: int

    assert register_answer(Forecast)
    assert decode(encode(Forecast(degrees=3))) == Forecast(degrees=3)
