"""Items that were shown, and were not found when a caller referred to them."""

from typing import Any

from frontdesk import ApiKeyAuth
from frontdesk_testing.internals import get_components
from tests.scenarios.responses.cast import Till, call, parrot
from tests.scenarios.responses.desk import open_client

PAY = call("pay", amount=5)


def _answer(question: Any) -> list[Any]:
    return [
        {"type": "item_reference", "id": question["id"]},
        {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": True},
    ]


async def test_a_question_that_was_named_with_its_answer_was_not_found() -> None:
    till = Till()
    async with open_client(till.agent([PAY], ["paid"], ["welcome"])) as desk:
        said = {"role": "user", "content": "pay 5"}
        (question,) = (await desk.post({"input": [said]})).json()["output"]
        paid = (await desk.post({"input": [said, *_answer(question)]})).json()
        assert (paid["status"], till.ran) == ("completed", [("pay", 5)])
        # A client that keeps its history sends all of it again.
        spoken = {"type": "item_reference", "id": paid["output"][0]["id"]}
        thanks = {"role": "user", "content": "thanks"}
        last = (await desk.post({"input": [said, *_answer(question), spoken, thanks]})).json()
        assert (last["output"][0]["content"][0]["text"], till.ran) == ("welcome", [("pay", 5)])


async def test_of_two_answers_one_after_the_other_the_first_was_lost() -> None:
    till = Till()
    both = [call("pay", "one", amount=5), call("refund", "two", amount=7)]
    async with open_client(till.agent(both, ["done"])) as desk:
        said = {"role": "user", "content": "both"}
        first, second = (await desk.post({"input": [said]})).json()["output"]
        done = (await desk.post({"input": [said, *_answer(first), *_answer(second)]})).json()
        assert [item["type"] for item in done["output"]] == ["message"]
        assert sorted(till.ran) == [("pay", 5), ("refund", 7)]


async def test_an_answer_that_was_given_before_is_no_answer_to_the_next_question() -> None:
    till = Till()
    async with open_client(till.agent([PAY], [call("refund", "two", amount=5)], ["done"])) as desk:
        said = {"role": "user", "content": "pay, and then take it back"}
        (first,) = (await desk.post({"input": [said]})).json()["output"]
        (second,) = (await desk.post({"input": [said, *_answer(first)]})).json()["output"]
        done = (await desk.post({"input": [said, *_answer(first), *_answer(second)]})).json()
        assert (done["status"], till.ran) == ("completed", [("pay", 5), ("refund", 5)])


async def test_somebody_elses_question_does_not_exist() -> None:
    auth = ApiKeyAuth({"ada": "key-of-ada-1234567", "bob": "key-of-bob-1234567"})
    async with open_client(Till().agent([PAY], ["hello"], ["hello"]), auth=auth) as desk:
        ada, bob = ({"authorization": f"Bearer key-of-{name}-1234567"} for name in ("ada", "bob"))
        (question,) = (await desk.post({"input": "pay 5"}, headers=ada)).json()["output"]
        await desk.post({"input": "hello"}, headers=bob)
        refused = await desk.post({"input": _answer(question)}, headers=bob)
        unknown = await desk.post({"input": _answer({"id": "af-call-nobody"})}, headers=bob)
        assert (refused.status_code, refused.json()["error"]["param"]) == (404, "input[0]")
        assert refused.text == unknown.text


async def test_a_compaction_that_was_named_was_not_found() -> None:
    async with open_client(parrot(), compactor=lambda _: "the summary") as desk:
        made = await desk.http.post("/v1/responses/compact", json={"model": "any", "input": "one"})
        named = [{"type": "item_reference", "id": item["id"]} for item in made.json()["output"]]
        answer = await desk.post({"input": [*named, {"role": "user", "content": "go on"}]})
        assert answer.status_code == 200, answer.text
        heard = get_components(desk.host).target.native.client.said()
        assert [text for _, text in heard][0::2] == ["one", "go on"]
        assert "the summary" in heard[1][1]
