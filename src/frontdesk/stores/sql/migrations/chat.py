"""Migration steps for chats and approvals. `migrations` defines their order."""

from frontdesk.stores.sql.migrations.steps import Step

# What channels keep for themselves.
CHANNELS = Step(
    (
        """CREATE TABLE leaderships (
            channel TEXT NOT NULL,
            name TEXT NOT NULL,
            holder TEXT NOT NULL,
            fence BIGINT NOT NULL,
            until DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (channel, name)
        )""",
        # Without `key_id` a value is stored as it is, without `expires_at` it stays.
        """CREATE TABLE channel_values (
            channel TEXT NOT NULL,
            storage TEXT NOT NULL,
            name TEXT NOT NULL,
            version TEXT NOT NULL,
            key_id TEXT NOT NULL,
            expires_at DOUBLE PRECISION,
            data {blob} NOT NULL,
            PRIMARY KEY (channel, storage, name)
        )""",
        # `name` is a key; the others are the names themselves, because something is sent to them.
        """CREATE TABLE conversation_aliases (
            channel TEXT NOT NULL,
            name TEXT NOT NULL,
            first_name {blob} NOT NULL,
            current_name {blob} NOT NULL,
            next_name {blob},
            PRIMARY KEY (channel, name)
        )""",
        "CREATE TABLE alias_versions (channel TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)",
        # The first bytes: Postgres refuses to index what is long.
        """CREATE INDEX deliveries_by_receipt ON deliveries (channel, substr(receipt, 1, 200))
            WHERE receipt IS NOT NULL""",
        "CREATE INDEX channel_values_by_end ON channel_values (expires_at) WHERE expires_at IS NOT NULL",
    ),
    min_reader=10,
)

# Rows of an earlier version are turns, and don't tell who sent them, or whether they are messages. `cancelled` is NULL
# until somebody cancels a turn that is worked on; then it is the id of the session that the turn belongs to, or empty.
CONTROL_EVENTS = Step(
    (
        "ALTER TABLE inbox ADD COLUMN kind TEXT NOT NULL DEFAULT 'turn'",
        "ALTER TABLE inbox ADD COLUMN sender TEXT",
        "ALTER TABLE inbox ADD COLUMN is_message SMALLINT NOT NULL DEFAULT 0",
        "ALTER TABLE inbox ADD COLUMN cancelled TEXT",
        "ALTER TABLE inbox ADD COLUMN not_before DOUBLE PRECISION",
        "ALTER TABLE inbox ADD COLUMN due_by DOUBLE PRECISION",
        "CREATE INDEX inbox_control ON inbox (number) WHERE done_at IS NULL AND kind = 'control'",
    ),
    min_reader=10,
)

# The handle of the message that a delivery changes, which is unset when that can't be changed any more.
LIVE_ANSWERS = Step(
    (
        "ALTER TABLE deliveries ADD COLUMN replaces {blob}",
        # The messages that show an answer while it is written.
        """CREATE TABLE live (
            run_id TEXT NOT NULL,
            channel TEXT NOT NULL,
            place TEXT NOT NULL,
            state TEXT NOT NULL,
            handles {blob},
            fence BIGINT NOT NULL,
            expires_at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (run_id, channel, place)
        )""",
        "CREATE INDEX live_by_end ON live (expires_at)",
        "CREATE INDEX live_lost ON live (run_id) WHERE state = 'lost'",
    ),
    min_reader=10,
)

# Ids of the host's own. In rows of an earlier version the target's id is the approval's, and the new columns are NULL.
APPROVALS_BY_OUR_IDS = Step(
    (
        "ALTER TABLE approvals ADD COLUMN run_id TEXT",
        "ALTER TABLE approvals ADD COLUMN target_request_id TEXT",
        "ALTER TABLE approvals ADD COLUMN expires_at DOUBLE PRECISION",
        """CREATE INDEX approvals_by_request ON approvals (owner, target_request_id, run_id)
            WHERE target_request_id IS NOT NULL""",
        """CREATE INDEX approvals_by_end ON approvals (expires_at)
            WHERE status = 'pending' AND expires_at IS NOT NULL""",
        """CREATE TABLE approval_votes (
            owner TEXT NOT NULL,
            approval_id TEXT NOT NULL,
            voter TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            data {blob} NOT NULL,
            PRIMARY KEY (owner, approval_id, voter)
        )""",
        "CREATE INDEX approval_votes_by_time ON approval_votes (at)",
        """CREATE TABLE approval_places (
            owner TEXT NOT NULL,
            approval_id TEXT NOT NULL,
            channel TEXT NOT NULL,
            place TEXT NOT NULL,
            handle TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            data {blob} NOT NULL,
            PRIMARY KEY (owner, approval_id, channel, place, handle)
        )""",
        "CREATE INDEX approval_places_by_time ON approval_places (at)",
        # Rows are only added, until they expire.
        """CREATE TABLE audit (
            number {serial},
            at DOUBLE PRECISION NOT NULL,
            owner TEXT NOT NULL,
            subject TEXT NOT NULL,
            action TEXT NOT NULL,
            actor TEXT NOT NULL,
            reason {blob}
        )""",
        "CREATE INDEX audit_of_subject ON audit (subject, number)",
        "CREATE INDEX audit_in_order ON audit (number)",
        "CREATE INDEX audit_by_time ON audit (at)",
        "CREATE INDEX inbox_resume ON inbox (number) WHERE done_at IS NULL AND kind = 'resume'",
    ),
    min_reader=10,
)

# Apart from the session's record, which each turn writes as a whole.
SESSION_TITLES = Step(
    ["CREATE TABLE session_titles (session_id TEXT NOT NULL PRIMARY KEY, title {blob} NOT NULL)"], min_reader=10
)

# The bytes of a file are in chunks. A file is complete once something uses it, and is dropped when nothing does any
# more; `place` and `owner` of a use are the key of the record. An earlier version leaves records with files alone.
FILES = Step(
    (
        """CREATE TABLE files (
            file_id TEXT NOT NULL PRIMARY KEY,
            owner TEXT NOT NULL,
            media_type {blob} NOT NULL,
            name {blob} NOT NULL,
            size BIGINT NOT NULL,
            complete SMALLINT NOT NULL,
            touched_at DOUBLE PRECISION NOT NULL
        )""",
        "CREATE INDEX files_of_owner ON files (owner)",
        """CREATE TABLE file_chunks (
            file_id TEXT NOT NULL, number BIGINT NOT NULL, data {blob} NOT NULL, PRIMARY KEY (file_id, number)
        )""",
        """CREATE TABLE file_uses (
            file_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            place TEXT NOT NULL,
            owner TEXT NOT NULL,
            used_at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (file_id, kind, place, owner)
        )""",
    ),
    min_reader=10,
)

# The lists of operators, each in its own order: one index for each filter. `outcome` is the status of a run that has
# ended; hosts of earlier versions leave it NULL. Runs that completed and those that go on are in neither of the two
# indexes on it, so an ordinary turn does not pay for them. The other indexes may be there already: on a large database
# an operator builds them before, without holding up the hosts that run.
OPERATOR_LISTS = Step(
    (
        "ALTER TABLE runs ADD COLUMN outcome TEXT",
        "CREATE INDEX IF NOT EXISTS sessions_by_use ON sessions (updated_at, session_id)",
        "CREATE INDEX IF NOT EXISTS sessions_of_owner_by_use ON sessions (owner, updated_at, session_id)",
        "CREATE INDEX IF NOT EXISTS runs_by_end ON runs (COALESCE(ended_at, 9e99), run_id, owner)",
        "CREATE INDEX IF NOT EXISTS runs_of_owner ON runs (owner, COALESCE(ended_at, 9e99), run_id)",
        """CREATE INDEX runs_by_outcome ON runs (outcome, COALESCE(ended_at, 9e99), run_id, owner)
            WHERE outcome <> 'completed'""",
        """CREATE INDEX runs_of_earlier_versions ON runs (COALESCE(ended_at, 9e99), run_id, owner)
            WHERE outcome IS NULL AND ended_at IS NOT NULL""",
        "CREATE INDEX IF NOT EXISTS deliveries_of_channel ON deliveries (channel, number)",
        "CREATE INDEX IF NOT EXISTS approvals_in_order ON approvals (number)",
        "CREATE INDEX IF NOT EXISTS approvals_by_id ON approvals (approval_id, number)",
        "CREATE INDEX IF NOT EXISTS approvals_by_status ON approvals (status, number)",
        "CREATE INDEX IF NOT EXISTS approvals_of_owner ON approvals (owner, number)",
        "CREATE INDEX IF NOT EXISTS identities_of_owner_by_name ON identities (isolation_key, channel, native_id)",
        "CREATE INDEX IF NOT EXISTS inbox_by_number ON inbox (number)",
        "CREATE INDEX IF NOT EXISTS inbox_of_channel ON inbox (channel, number)",
        "CREATE INDEX IF NOT EXISTS audit_of_owner ON audit (owner, number)",
        "CREATE INDEX IF NOT EXISTS audit_by_actor ON audit (actor, number)",
    ),
    min_reader=10,
)

# Questions that others than their requester decide. An earlier version can't read these rows, and leaves them alone.
APPROVERS = Step(
    (
        "ALTER TABLE approvals ADD COLUMN shared SMALLINT NOT NULL DEFAULT 0",
        "ALTER TABLE approvals ADD COLUMN voted INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE approvals ADD COLUMN escalate_at DOUBLE PRECISION",
        "ALTER TABLE approvals ADD COLUMN escalated SMALLINT NOT NULL DEFAULT 0",
        "ALTER TABLE approvals ADD COLUMN resumed_by TEXT",
        """CREATE INDEX approvals_to_escalate ON approvals (escalate_at)
            WHERE status = 'pending' AND escalated = 0 AND escalate_at IS NOT NULL""",
    ),
    min_reader=10,
)

# By whom pending questions are found, and people by what was proved of them. The rows of a question are dropped when it
# is decided; an earlier version leaves them, and nothing is found by those. It writes no claims: links that it has made
# are not found by theirs until they are made anew, and neither are its questions.
WHO_IS_ASKED = Step(
    (
        """CREATE TABLE approval_approvers (
            approver TEXT NOT NULL,
            owner TEXT NOT NULL,
            approval_id TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (approver, owner, approval_id)
        )""",
        "CREATE INDEX approval_approvers_of ON approval_approvers (owner, approval_id)",
        "CREATE INDEX approval_approvers_by_time ON approval_approvers (at)",
        """CREATE TABLE link_claims (
            claim TEXT NOT NULL, channel TEXT NOT NULL, native_id TEXT NOT NULL, PRIMARY KEY (claim, channel, native_id)
        )""",
        "CREATE INDEX link_claims_of ON link_claims (channel, native_id)",
    ),
    min_reader=10,
)

# How often the process of an event ended, how often it worked on nothing else then, and whether that is so now. An
# earlier version counts all tries alike, and writes none of them.
QUARANTINE = Step(
    (
        "ALTER TABLE inbox ADD COLUMN lost BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE inbox ADD COLUMN alone BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE inbox ADD COLUMN isolated SMALLINT NOT NULL DEFAULT 0",
    ),
    min_reader=10,
)

# Whether a file belongs to a visitor without an account. An earlier version counts it for its owner alone.
VISITOR_FILES = Step(
    (
        "ALTER TABLE files ADD COLUMN visitor SMALLINT NOT NULL DEFAULT 0",
        "CREATE INDEX files_of_visitors ON files (size) WHERE visitor = 1",
    ),
    min_reader=10,
)

# Every turn writes the indexes of sessions and runs. One index of runs by kind and end serves the sweep and the list of
# all runs, and sessions by owner and use those by owner. A host of an earlier version goes on without the dropped ones:
# its sweep and its list of all runs read more rows until it is updated.
FEWER_INDEXES = Step(
    (
        "CREATE INDEX IF NOT EXISTS runs_of_kind ON runs (kind, COALESCE(ended_at, 9e99), run_id, owner)",
        "DROP INDEX IF EXISTS runs_that_ended",
        "DROP INDEX IF EXISTS runs_by_end",
        "DROP INDEX IF EXISTS sessions_of_owner",
    ),
    min_reader=10,
    contracts=True,
)

# The runs of a chain, and an owner's list of runs with its filters. The index of the list has all columns that are
# filtered, so that the rows themselves are read for the page alone. It begins as the one that it replaces, which hosts
# of an earlier version use. Their runs have no channel there, and are filtered by their records.
RUN_CHAINS = Step(
    (
        "ALTER TABLE runs ADD COLUMN channel TEXT",
        "ALTER TABLE runs ADD COLUMN session_key TEXT",
        "ALTER TABLE runs ADD COLUMN root_run_id TEXT",
        "ALTER TABLE approvals ADD COLUMN root_run_id TEXT",
        """CREATE INDEX runs_of_owner_by_end ON runs
            (owner, COALESCE(ended_at, 9e99), run_id, ended_at, channel, session_key, outcome, root_run_id)""",
        """CREATE INDEX runs_of_chain ON runs (owner, root_run_id, COALESCE(ended_at, 9e99), run_id)
            WHERE root_run_id IS NOT NULL""",
        """CREATE INDEX approvals_of_chain ON approvals (owner, root_run_id, number)
            WHERE root_run_id IS NOT NULL""",
        "DROP INDEX IF EXISTS runs_of_owner",
        """CREATE TABLE watchers (
            owner TEXT NOT NULL,
            watcher_id TEXT NOT NULL,
            chain_id TEXT NOT NULL,
            created_at DOUBLE PRECISION NOT NULL,
            expires_at DOUBLE PRECISION NOT NULL,
            data {blob} NOT NULL,
            PRIMARY KEY (owner, watcher_id)
        )""",
        "CREATE INDEX watchers_of_chain ON watchers (owner, chain_id)",
        "CREATE INDEX watchers_by_time ON watchers (expires_at)",
    ),
    min_reader=10,
    contracts=True,
)
