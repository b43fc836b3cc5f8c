"""A host is killed in mid-answer: nothing is lost, nothing comes twice, and nothing stays open."""

from pathlib import Path

from tests.channels.web.killing import mortal_host
from tests.channels.web.visiting import open_visitor


async def test_an_answer_that_a_kill_cut_off_is_completed_in_its_message(tmp_path: Path) -> None:
    async with mortal_host(tmp_path) as host, open_visitor(host.url) as ada:
        async with ada.feed() as page:
            await ada.say("one two three")
            await page.until(lambda page: page.texts() == ["one two three", "one "])
            cursor = page.cursor
            await host.kill()
        host.let_speak()
        await host.start()
        async with ada.feed(after=cursor) as page:
            await page.until(lambda page: page.texts() == ["one two three"])
            await page.until(lambda page: page.messages["main", 2].get("state", "done") == "done")
        assert await ada.texts() == ["one two three", "one two three"]
        assert (await ada.get("me"))["conversations"][0]["busy"] == 0
