"""Mistakes of operators and clients are answered with what is wrong, and with what to do."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ChannelConfigurationError, InMemoryStateStore, SqliteStateStore
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.cli import main
from frontdesk.errors import StoreError
from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.telegram import fake_telegram
from tests.cli.processes import frontdesk
from tests.scenarios.desk import until

HOST = """
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import EchoAgent
host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], state_dir="state")
"""


def test_a_theme_that_was_a_dict_was_an_attribute_error() -> None:
    theme: Any = {"accent": "#2f5bd7"}
    with pytest.raises(
        ChannelConfigurationError, match=r"theme must be WebTheme or None, got dict; give theme=WebTheme\(\.\.\.\)"
    ):
        AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(theme=theme)])


def test_a_queue_over_a_store_in_memory_was_an_attribute_error() -> None:
    store: Any = InMemoryStateStore()
    with pytest.raises(ChannelConfigurationError) as caught:
        ProcrastinateTaskRunner(store)
    assert "needs a PostgresStateStore, got InMemoryStateStore" in str(caught.value)
    assert "leave out runner=" in str(caught.value)


async def test_an_unknown_run_was_a_thing() -> None:
    auth = ApiKeyAuth({"ann": "a-key-of-ann-0123456789", "ben": "a-key-of-ben-0123456789"})
    ann = {"authorization": "Bearer a-key-of-ann-0123456789"}
    ben = {"authorization": "Bearer a-key-of-ben-0123456789"}
    async with serving(AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(auth=auth)])) as client:
        told: set[str] = set()

        async def ask(name: str, headers: dict[str, str]) -> None:
            for answer in (
                await client.http.get(f"/invocations/{name}", headers=headers),
                await client.http.post(f"/invocations/{name}/cancel", headers=headers),
            ):
                assert answer.status_code == 404
                told.add(answer.json()["error"]["message"])

        await ask("run_made_up", ben)
        made = await client.http.post("/invocations", json={"message": "hello"}, headers=ann)
        # Of another caller, and asked by one who was never here and by one who was.
        await ask(made.json()["id"], ben)
        await client.http.post("/invocations", json={"message": "hello"}, headers=ben)
        await ask(made.json()["id"], ben)
        await ask("run_made_up", ben)
    (message,) = told
    assert message.startswith("Run not found: its id is wrong, it has expired, or")


async def test_tables_of_another_program_in_postgres(postgres: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres, autocommit=True) as connection:
        await connection.execute("CREATE TABLE sessions (x integer)")
        with pytest.raises(StoreError) as caught:
            await PostgresStateStore(postgres).open()
        assert "tables of another program" in str(caught.value)
        assert "a separate database" in str(caught.value)
        # What the message says to do works.
        await connection.execute("CREATE SCHEMA frontdesk")
    store = PostgresStateStore(make_conninfo(postgres, options="-csearch_path=frontdesk"))
    await store.open()
    await store.close()


async def test_tables_of_another_program_in_sqlite(tmp_path: Path) -> None:
    place = tmp_path / "frontdesk.db"
    with closing(sqlite3.connect(place)) as other:
        other.execute("CREATE TABLE sessions (x INTEGER)")
    with pytest.raises(StoreError, match="tables of another program"):
        await SqliteStateStore(place).open()


def test_a_newer_schema_was_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(HOST, "utf-8")
    (tmp_path / "state").mkdir(mode=0o700)
    with closing(sqlite3.connect(tmp_path / "state/frontdesk.db")) as newer:
        newer.execute("CREATE TABLE frontdesk_schema (version INTEGER NOT NULL, min_reader INTEGER)")
        newer.execute("INSERT INTO frontdesk_schema VALUES (999, 999)")
        newer.commit()
    os.chmod(tmp_path / "state/frontdesk.db", 0o600)
    done = frontdesk("serve", "desk.py:host", "--port", "0", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "needs a host that knows schema version 999" in done.stderr
    assert "start the newer Frontdesk, or give this one a store of its own" in done.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["srve", "desk.py:host"], "serve"),
        (["serve", "desk.py:host", "--prot", "80"], "--port"),
        (["serve", "desk.py:host", "--prot=80"], "--port"),
        (["runs", "lst", "--state", "state"], "list"),
        (["runs", "list", "--state", "state", "--lmit", "3"], "--limit"),
    ],
)
def test_a_misspelt_word_of_the_command_line(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    assert f"did you mean {meant!r}?" in capsys.readouterr().err


def test_a_word_that_is_like_no_other_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["xyzzy"], ["serve", "desk.py:host", "--xyzzy"]):
        with pytest.raises(SystemExit):
            main(words)
    assert "did you mean" not in capsys.readouterr().err


def test_misspelt_channels_were_reported_as_missing() -> None:
    names: dict[str, Any] = {"chanels": [ResponsesChannel()]}
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'chanels'; did you mean 'channels'\?"):
        AgentFrameworkHost(EchoAgent(), **names)


def test_a_host_of_somebody_elses_class_takes_names_of_its_own() -> None:
    class Own(AgentFrameworkHost):
        def __init__(self, place: str) -> None:
            super().__init__(EchoAgent(), channels=[ResponsesChannel()])
            self.place = place

    assert Own(place="here").place == "here"


async def test_a_wrong_bot_token_was_a_number(caplog: pytest.LogCaptureFixture) -> None:
    async with fake_telegram() as telegram:
        channel = TelegramChannel(bot_token="123456:" + "a" * 35, api_url=telegram.url, transport="polling")
        async with serving(AgentFrameworkHost(EchoAgent(), channels=[channel])):
            await until(lambda: any("@BotFather" in record.message for record in caplog.records))
    (line, *_) = [record.message for record in caplog.records if "@BotFather" in record.message]
    assert "bot_token" in line
    assert "a" * 35 not in caplog.text
