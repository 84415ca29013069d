"""Defines the database format, one numbered migration per change; `PRAGMA user_version` is the version of a file.

A step is an SQL statement, or a function where SQL is not enough. A migration is never edited after a release: the next
change is a new entry. A new payload type of `history` also needs a migration, even an empty one: an older plugin must
refuse the log instead of treating its entries as damaged. Each migration runs in one transaction together with its
version number, so a crash leaves the file at one version or the next. A file with a newer version is refused and left
unchanged.

`events` is the source of truth; all other tables can be rebuilt from it or are scratch data. It is an ordinary rowid
table: in a measurement with 10,000 rows of 1 KB, a WITHOUT ROWID table keyed by (chat_id, seq) was three times as large
and no faster to read. `message_text` is contentless, so that no text is stored twice; its rowid is `events.id`, or for
a copied message the `text_id` in `shared_text`; `message_inner` has the same rowids.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from codecompanion.errors import StoreUnavailable
from codecompanion.store.log.checksum import add_checksums
from codecompanion.store.log.previews import fill_blob_uses, fill_previews

Migration = tuple[str | Callable[[sqlite3.Connection], None], ...]

TOKENIZER = "porter unicode61 remove_diacritics 2"

MIGRATIONS: tuple[Migration, ...] = (
    (
        """CREATE TABLE chats (
            chat_id TEXT PRIMARY KEY NOT NULL,
            title TEXT NOT NULL,
            cwd TEXT NOT NULL,
            adapter TEXT NOT NULL,
            model TEXT NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            messages INTEGER NOT NULL,
            last_seq INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            chat_id TEXT NOT NULL,
            seq INTEGER NOT NULL,
            turn TEXT NOT NULL,
            ts REAL NOT NULL,
            type TEXT NOT NULL,
            payload BLOB NOT NULL,
            UNIQUE (chat_id, seq)
        )""",
        f"CREATE VIRTUAL TABLE message_text USING fts5(text, content='', tokenize='{TOKENIZER}')",
        """CREATE TABLE scratch (
            chat_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            text BLOB NOT NULL,
            updated REAL NOT NULL,
            PRIMARY KEY (chat_id, kind)
        )""",
        """CREATE TABLE leases (
            chat_id TEXT PRIMARY KEY NOT NULL,
            owner TEXT NOT NULL,
            pid INTEGER NOT NULL,
            host TEXT NOT NULL,
            since REAL NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE calibration (
            adapter TEXT NOT NULL,
            model TEXT NOT NULL,
            ratio REAL NOT NULL,
            samples INTEGER NOT NULL,
            updated REAL NOT NULL,
            PRIMARY KEY (adapter, model)
        ) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE calibration RENAME COLUMN samples TO weight",
        "ALTER TABLE calibration ADD COLUMN extra REAL NOT NULL DEFAULT 0",
    ),
    (
        # New payloads: policy_event, request_ended. The cost of a chat is kept up to date from this version on.
        "ALTER TABLE chats ADD COLUMN cost_usd REAL NOT NULL DEFAULT 0",
        "ALTER TABLE chats ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0",
        """UPDATE chats SET (cost_usd, unpriced) = (
            SELECT TOTAL(cost), COUNT(*) - COUNT(cost) FROM (
                SELECT CASE WHEN json_valid(CAST(payload AS TEXT))
                       THEN CAST(json_extract(CAST(payload AS TEXT), '$.cost_usd') AS REAL) END AS cost
                FROM events WHERE events.chat_id = chats.chat_id AND type = 'usage_reported'
            )
        )""",
    ),
    (
        # New payload: chat_forked. The picker shows questions and the origin of a branch without reading logs; a chat
        # can be deleted together with blobs that no other chat uses.
        "ALTER TABLE chats ADD COLUMN first_question TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE chats ADD COLUMN last_question TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE chats ADD COLUMN forked_from TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE chats ADD COLUMN family TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE blob_uses (
            sha256 TEXT NOT NULL,
            chat_id TEXT NOT NULL,
            PRIMARY KEY (sha256, chat_id)
        ) WITHOUT ROWID""",
        # The cost of deleted chats still counts for the budget of all chats.
        "CREATE TABLE deleted_spending (usd REAL NOT NULL, unpriced INTEGER NOT NULL)",
        fill_previews,
        fill_blob_uses,
    ),
    (
        # A copied message is found by the index entry of its original, so forking a long chat does not index its text
        # again.
        """CREATE TABLE shared_text (
            event_id INTEGER PRIMARY KEY,
            text_id INTEGER NOT NULL
        )""",
        "CREATE INDEX shared_text_by_text ON shared_text(text_id)",
    ),
    (
        # Search finds the words inside names, unspaced writing and tool calls. The rows of older versions are indexed
        # later in the background, newest first (`inner_index`); all rows with an id of `below` or more are already
        # indexed.
        f"CREATE VIRTUAL TABLE message_inner USING fts5(words, tokenize='{TOKENIZER}')",
        "CREATE TABLE inner_missing (below INTEGER NOT NULL)",
        "INSERT INTO inner_missing SELECT max(id) + 1 FROM events HAVING max(id) IS NOT NULL",
    ),
    (
        # The spread of an endpoint's reports around the count survives a restart, and so does the version of the
        # figures.
        "ALTER TABLE calibration ADD COLUMN above REAL NOT NULL DEFAULT 1",
        "ALTER TABLE calibration ADD COLUMN below REAL NOT NULL DEFAULT 1",
        # Older figures were learned with a different way of counting marks, so 0 is never a current version.
        "ALTER TABLE calibration ADD COLUMN figures INTEGER NOT NULL DEFAULT 0",
    ),
    (
        # Chats without a window (command lines, commit messages) are counted and kept, but not listed.
        "ALTER TABLE chats ADD COLUMN purpose TEXT NOT NULL DEFAULT ''",
    ),
    (
        # Checksums (`checksum`). Rows of older versions have none: adding them would read and write the whole file.
        add_checksums,
    ),
    (
        # A stored chat is shown from its newest events (`tail_state`). Logs of older versions get a row when they are
        # opened, because filling the table now would read the whole file.
        """CREATE TABLE tail_state (
            chat_id TEXT PRIMARY KEY NOT NULL,
            covers_seq INTEGER NOT NULL,
            state BLOB NOT NULL,
            sum INTEGER NOT NULL
        ) WITHOUT ROWID""",
    ),
    (
        # The tokens that a chat template adds to each message are kept.
        "ALTER TABLE calibration ADD COLUMN framing REAL NOT NULL DEFAULT 0",
        "ALTER TABLE calibration ADD COLUMN framed REAL NOT NULL DEFAULT 0",
    ),
)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the format version of the file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, name: str, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Migrate the file to the newest version and return the number of steps.

    Raises:
        StoreUnavailable: the file is newer than this code; it was not changed.
    """
    found = version_of(connection)
    if found > len(migrations):
        raise StoreUnavailable(
            f"{name} was written by a newer CodeCompanion (format {found}; this one reads up to {len(migrations)}). "
            "Update the plugin; the file was not changed"
        )
    wanted = migrations[found:]
    # A new file is created in one transaction, because each transaction waits for the disk four times.
    groups = [wanted] if not found else [[migration] for migration in wanted]
    for group in groups:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in (step for statements in group for step in statements):
                if callable(step):
                    step(connection)
                else:
                    connection.execute(step)
            connection.execute(f"PRAGMA user_version = {version_of(connection) + len(group)}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return len(wanted)
