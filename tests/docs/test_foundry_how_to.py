"""The first step of the page about Foundry, command by command; the others need the SDK, and run in `make foundry`."""

from pathlib import Path

from tests.foundry.how_to import answer, commands, start_program


async def test_the_agent_is_served_on_a_laptop(tmp_path: Path) -> None:
    serve, curl = commands("1. On a laptop")
    async with start_program(f"{serve.strip()} --port 0", tmp_path) as base:
        said = await answer(curl, base, tmp_path)
        assert said["id"].startswith("caresp_")
        assert said["output"][0]["content"][0]["text"].startswith("You said: Good day.")
    assert list((tmp_path / "history").rglob("*.jsonl"))
