"""The schema as a list of migration steps. A released step is never changed, only followed by another.

Each step is a list of statements in the common subset of SQLite and Postgres. `{blob}` and `{serial}` stand for the few
differences.

During a rolling upgrade, hosts of two versions share a store. So a step expands, as `Step(..., min_reader=n)`: hosts
that know schema n continue to work with its result. Unused parts are removed in a later release, by a step with
`contracts=True`. After a plain list of statements, older hosts are refused.
"""

import re
from collections.abc import Collection, Sequence

from frontdesk.errors import StoreError
from frontdesk.stores.sql.migrations.chat import (
    APPROVALS_BY_OUR_IDS,
    APPROVERS,
    CHANNELS,
    CONTROL_EVENTS,
    FEWER_INDEXES,
    FILES,
    LIVE_ANSWERS,
    OPERATOR_LISTS,
    QUARANTINE,
    RUN_CHAINS,
    SESSION_TITLES,
    VISITOR_FILES,
    WHO_IS_ASKED,
)
from frontdesk.stores.sql.migrations.steps import Backfill, Step

_FIRST = (
    """CREATE TABLE sessions (
        session_id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        self_named SMALLINT NOT NULL,
        parent_id TEXT,
        parent_messages BIGINT,
        updated_at DOUBLE PRECISION NOT NULL,
        data {blob} NOT NULL
    )""",
    "CREATE TABLE names (name TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL)",
    "CREATE TABLE history (number {serial}, session_id TEXT NOT NULL, data {blob} NOT NULL)",
    "CREATE INDEX history_of_session ON history (session_id, number)",
    """CREATE TABLE leases (
        session_id TEXT NOT NULL PRIMARY KEY,
        fence BIGINT NOT NULL,
        holder TEXT NOT NULL,
        until DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE identities (
        channel TEXT NOT NULL,
        native_id TEXT NOT NULL,
        isolation_key TEXT NOT NULL,
        data {blob} NOT NULL,
        PRIMARY KEY (channel, native_id)
    )""",
    "CREATE INDEX identities_of_owner ON identities (isolation_key)",
    """CREATE TABLE last_seen (
        isolation_key TEXT NOT NULL PRIMARY KEY, at DOUBLE PRECISION NOT NULL, data {blob} NOT NULL
    )""",
    """CREATE TABLE links (
        isolation_key TEXT NOT NULL,
        channel TEXT NOT NULL,
        native_id TEXT NOT NULL,
        data {blob} NOT NULL,
        PRIMARY KEY (isolation_key, channel, native_id)
    )""",
    """CREATE TABLE runs (
        run_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        kind TEXT NOT NULL,
        ended_at DOUBLE PRECISION,
        data {blob} NOT NULL,
        PRIMARY KEY (run_id, owner)
    )""",
    "CREATE INDEX runs_that_ended ON runs (kind, ended_at)",
    """CREATE TABLE events (
        run_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        number BIGINT NOT NULL,
        data {blob} NOT NULL,
        PRIMARY KEY (run_id, owner, number)
    )""",
    """CREATE TABLE approvals (
        number {serial},
        owner TEXT NOT NULL,
        approval_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        status TEXT NOT NULL,
        decided_at DOUBLE PRECISION,
        reason {blob},
        data {blob} NOT NULL,
        UNIQUE (owner, approval_id)
    )""",
    "CREATE INDEX approvals_of_session ON approvals (owner, session_id, number)",
    "CREATE INDEX approvals_that_wait ON approvals (owner, number) WHERE status = 'pending'",
    """CREATE TABLE inbox (
        number {serial},
        channel TEXT NOT NULL,
        event_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        done_at DOUBLE PRECISION,
        data {blob} NOT NULL,
        UNIQUE (channel, event_id)
    )""",
    "CREATE INDEX inbox_that_waits ON inbox (channel, conversation_id, number) WHERE done_at IS NULL",
    """CREATE TABLE deliveries (
        delivery_id TEXT NOT NULL PRIMARY KEY,
        status TEXT NOT NULL,
        attempts BIGINT NOT NULL,
        due_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION,
        receipt {blob},
        error {blob},
        data {blob} NOT NULL
    )""",
    "CREATE INDEX deliveries_that_wait ON deliveries (due_at, delivery_id) WHERE status = 'pending'",
    """CREATE TABLE conversations (
        conversation_id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, data {blob} NOT NULL
    )""",
    """CREATE TABLE items (
        number {serial},
        conversation_id TEXT NOT NULL,
        item_id TEXT NOT NULL,
        data {blob} NOT NULL
    )""",
    "CREATE INDEX items_in_order ON items (conversation_id, number)",
    "CREATE INDEX items_by_id ON items (conversation_id, item_id)",
    """CREATE TABLE set_aside (
        number {serial},
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        error TEXT NOT NULL,
        data {blob} NOT NULL
    )""",
)

_GRANTS_AND_EXPIRY = (
    """CREATE TABLE grants (
        grant_id TEXT NOT NULL PRIMARY KEY, expires_at DOUBLE PRECISION NOT NULL, data {blob} NOT NULL
    )""",
    "CREATE INDEX grants_by_end ON grants (expires_at)",
    "CREATE INDEX last_seen_by_time ON last_seen (at)",
    "CREATE INDEX approvals_by_time ON approvals (decided_at) WHERE decided_at IS NOT NULL",
    "CREATE INDEX inbox_by_time ON inbox (done_at) WHERE done_at IS NOT NULL",
    "CREATE INDEX deliveries_by_time ON deliveries (ended_at) WHERE ended_at IS NOT NULL",
)

_CHECKPOINTS = (
    """CREATE TABLE checkpoints (
        session_id TEXT NOT NULL,
        checkpoint_id TEXT NOT NULL,
        data {blob} NOT NULL,
        PRIMARY KEY (session_id, checkpoint_id)
    )""",
)

_WHAT_BELONGS_TO_A_SESSION = (
    "CREATE INDEX sessions_that_branched ON sessions (parent_id) WHERE parent_id IS NOT NULL",
    "CREATE INDEX names_of_session ON names (session_id)",
)

_BACKGROUND = (
    """CREATE TABLE background (
        number {serial},
        run_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        holder TEXT NOT NULL,
        fence BIGINT NOT NULL,
        until DOUBLE PRECISION NOT NULL,
        begun SMALLINT NOT NULL,
        cancelled SMALLINT NOT NULL,
        events BIGINT NOT NULL,
        checkpoint {blob},
        data {blob} NOT NULL,
        UNIQUE (run_id, owner)
    )""",
    "CREATE INDEX background_in_order ON background (number)",
    "CREATE INDEX background_of_owner ON background (owner)",
    "CREATE INDEX background_that_waits ON background (number) WHERE holder = ''",
)

_LINKS = (
    "ALTER TABLE identities ADD COLUMN version BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE links ADD COLUMN subject TEXT",
    "ALTER TABLE links ADD COLUMN linked_at DOUBLE PRECISION NOT NULL DEFAULT 0",
    "CREATE UNIQUE INDEX links_of_identity ON links (channel, native_id)",
    "CREATE INDEX links_by_subject ON links (subject, linked_at) WHERE subject IS NOT NULL",
    "CREATE TABLE secrets (name TEXT NOT NULL PRIMARY KEY, data {blob} NOT NULL)",
)

_QUEUES_OF_DESTINATIONS = (
    "ALTER TABLE deliveries ADD COLUMN number BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE deliveries ADD COLUMN channel TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE deliveries ADD COLUMN place TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE deliveries ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE deliveries ADD COLUMN run_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE deliveries ADD COLUMN answer_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE deliveries ADD COLUMN part BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE deliveries ADD COLUMN queued_at DOUBLE PRECISION",
    "ALTER TABLE deliveries ADD COLUMN until DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE deliveries ADD COLUMN fence BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE deliveries ADD COLUMN history {blob}",
    "DROP INDEX deliveries_that_wait",
    """CREATE INDEX deliveries_that_wait ON deliveries (channel, place, number, answer_id, part, delivery_id)
        WHERE ended_at IS NULL""",
    "CREATE INDEX deliveries_of_answer ON deliveries (answer_id, number) WHERE answer_id <> ''",
    "CREATE INDEX deliveries_in_order ON deliveries (number)",
    "CREATE INDEX deliveries_by_status ON deliveries (status, number)",
    "CREATE INDEX deliveries_of_owner ON deliveries (owner, number)",
    "CREATE INDEX deliveries_of_run ON deliveries (run_id)",
)

_TASKS_AND_CLAIMS = (
    """CREATE TABLE tasks (
        task_id TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        due_at DOUBLE PRECISION NOT NULL,
        attempts BIGINT NOT NULL,
        holder TEXT NOT NULL,
        fence BIGINT NOT NULL,
        until DOUBLE PRECISION NOT NULL,
        again_at DOUBLE PRECISION,
        ended_at DOUBLE PRECISION,
        error {blob},
        data {blob} NOT NULL
    )""",
    "CREATE INDEX tasks_that_wait ON tasks (due_at) WHERE status = 'pending'",
    "CREATE INDEX tasks_by_time ON tasks (ended_at) WHERE ended_at IS NOT NULL",
    "ALTER TABLE inbox ADD COLUMN holder TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE inbox ADD COLUMN fence BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE inbox ADD COLUMN until DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE inbox ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE inbox ADD COLUMN error {blob}",
    "CREATE INDEX inbox_in_order ON inbox (number) WHERE done_at IS NULL",
    "CREATE INDEX inbox_that_failed ON inbox (number) WHERE error IS NOT NULL",
)

_COMPATIBILITY = (
    "ALTER TABLE frontdesk_schema ADD COLUMN min_reader INTEGER",
    """CREATE TABLE backfills (
        name TEXT NOT NULL PRIMARY KEY, position TEXT NOT NULL, done SMALLINT NOT NULL
    )""",
)

_NONCES_AND_IDLE_CONVERSATIONS = (
    """CREATE TABLE nonces (
        scope TEXT NOT NULL,
        nonce TEXT NOT NULL,
        expires_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (scope, nonce)
    )""",
    "CREATE INDEX nonces_by_end ON nonces (expires_at)",
    # NULL until the sweep has seen the row: an earlier version does not write it.
    "ALTER TABLE conversations ADD COLUMN updated_at DOUBLE PRECISION",
    "CREATE INDEX set_aside_by_time ON set_aside (at)",
)

# The default is that the tool has begun: earlier versions don't write the column.
_ANSWERS_THAT_WAIT = Step(
    (
        "ALTER TABLE approvals ADD COLUMN attempt TEXT",
        "ALTER TABLE approvals ADD COLUMN begun SMALLINT NOT NULL DEFAULT 1",
        "CREATE INDEX approvals_not_begun ON approvals (owner, number) WHERE begun = 0",
    ),
    min_reader=10,
)

# Finds tasks that wait for a retry among any number that are scheduled for later.
_TASKS_THAT_FAILED = Step(
    ["CREATE INDEX tasks_that_failed ON tasks (due_at) WHERE status = 'pending' AND attempts > 0"], min_reader=10
)

_IDLE_IDENTITIES = Step(
    (
        # NULL until the sweep or a request has seen the row: an earlier version does not write it.
        "ALTER TABLE identities ADD COLUMN seen_at DOUBLE PRECISION",
        "CREATE INDEX sessions_of_owner ON sessions (owner)",
        "CREATE INDEX conversations_of_owner ON conversations (owner)",
    ),
    min_reader=10,
)

# How an identity is reached: the channel's reference to the direct chat, and the shared group; NULL if there is none.
_REACH_AND_PAST_SESSIONS = Step(
    (
        "ALTER TABLE identities ADD COLUMN reference {blob}",
        "ALTER TABLE identities ADD COLUMN push_group {blob}",
        # The sessions that a name stood for before.
        """CREATE TABLE past_sessions (
            name TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (name, session_id)
        )""",
        "CREATE INDEX past_sessions_by_id ON past_sessions (session_id)",
    ),
    min_reader=10,
)

STEPS: tuple[Sequence[str], ...] = (
    _FIRST,
    _GRANTS_AND_EXPIRY,
    _CHECKPOINTS,
    _WHAT_BELONGS_TO_A_SESSION,
    _BACKGROUND,
    _LINKS,
    _QUEUES_OF_DESTINATIONS,
    _TASKS_AND_CLAIMS,
    _COMPATIBILITY,
    _NONCES_AND_IDLE_CONVERSATIONS,
    _ANSWERS_THAT_WAIT,
    _TASKS_THAT_FAILED,
    _IDLE_IDENTITIES,
    _REACH_AND_PAST_SESSIONS,
    CHANNELS,
    CONTROL_EVENTS,
    LIVE_ANSWERS,
    APPROVALS_BY_OUR_IDS,
    SESSION_TITLES,
    FILES,
    OPERATOR_LISTS,
    APPROVERS,
    WHO_IS_ASKED,
    QUARANTINE,
    VISITOR_FILES,
    FEWER_INDEXES,
    RUN_CHAINS,
)
# With AUTOINCREMENT no number is used twice, as in Postgres: a reader waits for numbers above the last it has read.
SQLITE = {"blob": "BLOB", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"}
POSTGRES = {"blob": "BYTEA", "serial": "BIGINT GENERATED ALWAYS AS IDENTITY NOT NULL"}
VERSION = len(STEPS)
"""The version of the schema that this code works with; a store of version n has had the first n steps."""
_CREATED_TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)")
SCHEMA_TABLE = "CREATE TABLE IF NOT EXISTS frontdesk_schema (version INTEGER NOT NULL)"
FOUND = "SELECT MAX(version) FROM frontdesk_schema"
MIN_READER = "SELECT MAX(COALESCE(min_reader, version)) FROM frontdesk_schema"
"""The lowest schema that a host has to know to work with a store; a store without the column has no answer."""
MIN_READER_AND_VERSION = "SELECT MAX(COALESCE(min_reader, version)), MAX(version) FROM frontdesk_schema"


class NewerStoreError(StoreError):
    """The store needs a newer Frontdesk. Nothing in it was changed."""

    def __init__(self, found: int) -> None:
        self.found = found
        super().__init__(
            f"the state store needs a host that knows schema version {found}, and this version of Frontdesk knows "
            f"{VERSION} at most; "
            "start the newer Frontdesk, or give this one a store of its own"
        )


def check_foreign_tables(existing: Collection[str]) -> None:
    """Reject a database without the host's schema in which a table has one of its names."""
    created = {name for step in STEPS for text in step for name in _CREATED_TABLE.findall(text)}
    if taken := sorted(created & set(existing)):
        raise StoreError(
            f"the database has tables of another program ({', '.join(taken)}) and none of Frontdesk: use "
            "a separate database, or on Postgres create a schema and add "
            "?options=-csearch_path%3Dfrontdesk to the address"
        )


def check_min_reader(min_reader: int | None) -> None:
    """Reject a store that needs a newer version than this one."""
    if min_reader is not None and min_reader > VERSION:
        raise NewerStoreError(min_reader)


def steps_from(version: int, *, blob: str, serial: str) -> list[tuple[int, list[str]]]:
    """Return the pending steps, each with its resulting version."""
    words = {"blob": blob, "serial": serial}
    return [
        (number, [statement.format(**words) for statement in step])
        for number, step in enumerate(STEPS, start=1)
        if number > version
    ]


def list_notes(number: int) -> list[str]:
    """Return the statements that record a step as done: its version, its lowest reader and its backfill."""
    step = STEPS[number - 1]
    if not isinstance(step, Step):
        return [f"INSERT INTO frontdesk_schema (version) VALUES ({number})"]
    noted = [f"INSERT INTO frontdesk_schema (version, min_reader) VALUES ({number}, {step.min_reader or number})"]
    if step.backfill is not None:
        first = f"'{step.backfill.name}', '{step.backfill.start}', 0"
        noted.append(f"INSERT INTO backfills (name, position, done) VALUES ({first})")
    return noted


def min_reader_after(version: int) -> int:
    """Return the lowest schema that a host must know after the steps that follow a version."""
    return max(
        (step.min_reader or number) if isinstance(step, Step) else number
        for number, step in enumerate(STEPS, start=1)
        if number > version
    )


def backfills() -> dict[str, Backfill]:
    return {step.backfill.name: step.backfill for step in STEPS if isinstance(step, Step) and step.backfill is not None}


def list_needed_by(number: int) -> list[Backfill]:
    """Return the backfills that must be complete before a step."""
    step = STEPS[number - 1]
    return [backfills()[name] for name in step.needs] if isinstance(step, Step) else []
