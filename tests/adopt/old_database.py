"""Databases of nopayloaddb, as each version of its schema made them, and rows in them.

A *variant* is a period of that schema. Changes of indexes alone are not counted.

    V1  2021-09   no generator of some ids, names that may repeat, nullable foreign keys, no ends
    V2  2021-11   the name is the key of statuses, tag types and payload types; list ids come from a table
    V3  2021-11   these three have ids again; descriptions may be NULL
    V4  2022-02   intervals have ends
    V5  2022-09   tags have no types any more
    V6  2022-11   IOVs have a checksum, tags have an author
    V7  2023-03   `comb_iov`, which the application computes, and the index of the lookup on it
    V8  2023-06   IOVs have a size
    V9  2026-03   `extra` of IOVs replaces their `description`
"""

import re
from collections.abc import Sequence
from decimal import Context, Decimal, DefaultContext
from typing import Any

# Each line: the variants that have the column, its name and its definition. `serial` and `bigserial` stand for a generator of
# either kind (`identity`). A table without columns in a variant does not exist there.
TABLES = """
GlobalTagStatus
  1    id               bigint PRIMARY KEY
  3-9  id               bigserial PRIMARY KEY
  1    name             varchar(80) NOT NULL
  2    name             varchar(80) PRIMARY KEY
  3-9  name             varchar(80) NOT NULL UNIQUE
  1-2  description      varchar(255) NOT NULL
  3-9  description      varchar(255)
  1-9  created          timestamptz NOT NULL
GlobalTagType
  1    id               bigint PRIMARY KEY
  3-4  id               bigserial PRIMARY KEY
  1    name             varchar(80) NOT NULL UNIQUE
  2    name             varchar(80) PRIMARY KEY
  3-4  name             varchar(80) NOT NULL UNIQUE
  1-2  description      varchar(255) NOT NULL
  3-4  description      varchar(255)
  1-4  created          timestamptz NOT NULL
GlobalTag
  1    id               serial PRIMARY KEY
  2-9  id               bigserial PRIMARY KEY
  1    name             varchar(80) NOT NULL
  2-9  name             varchar(80) NOT NULL UNIQUE
  6-9  author           varchar(80)
  1-2  description      varchar(255) NOT NULL
  3-9  description      varchar(255)
  1-9  created          timestamptz NOT NULL
  1-9  updated          timestamptz NOT NULL
  1    status_id        bigint REFERENCES "GlobalTagStatus"
  2    status_id        varchar(80) NOT NULL REFERENCES "GlobalTagStatus"
  3-9  status_id        bigint NOT NULL REFERENCES "GlobalTagStatus"
  1    type_id          bigint REFERENCES "GlobalTagType"
  2    type_id          varchar(80) NOT NULL REFERENCES "GlobalTagType"
  3-4  type_id          bigint NOT NULL REFERENCES "GlobalTagType"
PayloadType
  1    id               bigint PRIMARY KEY
  3-9  id               bigserial PRIMARY KEY
  1    name             varchar(80) NOT NULL UNIQUE
  2    name             varchar(80) PRIMARY KEY
  3-9  name             varchar(80) NOT NULL UNIQUE
  1-2  description      varchar(255) NOT NULL
  3-9  description      varchar(255)
  1-9  created          timestamptz NOT NULL
PayloadListIdSequence
  2-9  id               bigserial PRIMARY KEY
PayloadList
  1    id               serial PRIMARY KEY
  2-9  id               bigint PRIMARY KEY
  1    name             varchar(255) NOT NULL
  2-9  name             varchar(255) NOT NULL UNIQUE
  1-2  description      varchar(255) NOT NULL
  3-9  description      varchar(255)
  1-9  created          timestamptz NOT NULL
  1-9  updated          timestamptz NOT NULL
  1    global_tag_id    integer REFERENCES "GlobalTag"
  2-9  global_tag_id    bigint REFERENCES "GlobalTag"
  1    payload_type_id  bigint REFERENCES "PayloadType"
  2    payload_type_id  varchar(80) NOT NULL REFERENCES "PayloadType"
  3-9  payload_type_id  bigint NOT NULL REFERENCES "PayloadType"
PayloadIOV
  1    id               serial PRIMARY KEY
  2-9  id               bigserial PRIMARY KEY
  1-9  payload_url      varchar(255) NOT NULL
  6-9  checksum         varchar(255) NOT NULL
  8-9  size             bigint
  1-9  major_iov        bigint NOT NULL
  1-9  minor_iov        bigint NOT NULL
  4-9  major_iov_end    bigint NOT NULL
  4-9  minor_iov_end    bigint NOT NULL
  7-9  comb_iov         numeric(38, 19)
  1-2  description      varchar(255) NOT NULL
  3-8  description      varchar(255)
  9    extra            varchar(255)
  1-9  created          timestamptz NOT NULL
  1-9  updated          timestamptz NOT NULL
  1    payload_list_id  integer REFERENCES "PayloadList"
  2-3  payload_list_id  bigint NOT NULL REFERENCES "PayloadList"
  4-9  payload_list_id  bigint REFERENCES "PayloadList"
"""

# The index of "PayloadIOV" that a version had for the longest time, for the lookup.
INDEXES = {
    "V7": "CREATE INDEX covering_idx ON {PayloadIOV} (payload_list_id, comb_iov DESC NULLS LAST)",
    "V4": 'CREATE INDEX "PayloadIOV_major_i_be996d_idx" ON {PayloadIOV} (major_iov, minor_iov)',
    "V1": "",
}

# Changes by hand of a database of variant V9, for `execute`.
ALTERATIONS = {
    "column of V8": "ALTER TABLE {PayloadIOV} ADD description varchar(255)",
    "column of early V4": "ALTER TABLE {PayloadList} ADD freeze_time bigint",
    "other types": "ALTER TABLE {PayloadIOV} ALTER payload_url TYPE text, ALTER size TYPE integer, ALTER extra TYPE bigint"
    " USING extra::bigint",
    "second index": "CREATE INDEX covering_idx_v2 ON {PayloadIOV} (payload_list_id, comb_iov DESC) INCLUDE (payload_url)",
    "invalid index": "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'covering_idx'::regclass",
    "trigger": "CREATE TRIGGER by_hand BEFORE UPDATE ON {PayloadIOV} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "foreign key": 'ALTER TABLE {PayloadIOV} DROP CONSTRAINT "PayloadIOV_payload_list_id_fkey"',
}

VARIANTS = tuple(f"V{number}" for number in range(1, 10))
# The variants with the generators of ids that they had. V7 is the first with identity columns; later ones may have been altered.
FORMS = [(variant, identity) for variant in VARIANTS for identity in ([False, True] if variant >= "V7" else [False])]

TIME = "2024-01-01T00:00:00Z"
MAX = 2**63 - 1
OPEN_END = (MAX, MAX)

# Without rounding. Decimal's default context has 28 digits.
EXACT = Context(prec=60)


def combined(major: int, minor: int, unit: int = 10**19, context: Context = EXACT) -> Decimal:
    """major + minor / 10^19: what `comb_iov` should be."""
    return context.add(major, context.divide(minor, unit))


def scaled(major: int, minor: int) -> Decimal:
    """`comb_iov` of the versions that divided by 10^18."""
    return combined(major, minor, unit=10**18)


def major_twice(major: int, minor: int) -> Decimal:
    """`comb_iov` of the versions that took the major number in place of the minor one."""
    return combined(major, major)


def rounded(major: int, minor: int) -> Decimal:
    """`comb_iov` as every version computed it: exact for majors below 10^9, otherwise rounded to 28 digits."""
    return combined(major, minor, context=DefaultContext)


def _columns(variant: str) -> dict[str, dict[str, str]]:
    """The definition of each column of each table of a variant."""
    tables: dict[str, dict[str, str]] = {}
    for line in TABLES.strip().splitlines():
        if not line.startswith(" "):
            columns: dict[str, str] = {}
            tables[line] = columns
            continue
        variants, name, definition = line.split(maxsplit=2)
        first, _, last = variants.partition("-")
        if int(first) <= int(variant[1:]) <= int(last or first):
            columns[name] = definition
    return {table: columns for table, columns in tables.items() if columns}


class OldDatabase:
    """A database of nopayloaddb behind a connection that commits each statement, of Django or of psycopg2.

    Versions until 2022-09 made their tables in the schema `django` if there was one.
    """

    def __init__(self, connection: Any, variant: str = "V9", *, identity: bool = True, schema: str = "public") -> None:
        self.connection, self.variant, self.identity, self.schema = connection, variant, identity, schema
        self.columns = _columns(variant)
        self._names = {table: f'{schema}."{table}"' for table in (*self.columns, "django_migrations")}

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement returns. `{PayloadIOV}` stands for the name of the table with its schema."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement.format(**self._names), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def wipe(self) -> None:
        """Drop everything in the schemas `public` and `django`."""
        self.execute("DROP SCHEMA IF EXISTS django CASCADE; DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")

    def empty(self) -> None:
        """Delete all rows, after the tables have been made if there are none. Generators of ids go on."""
        if self.execute("SELECT to_regclass('{PayloadIOV}')") == [(None,)]:
            self.create()
        for table in reversed(self.columns):
            self.execute(f"DELETE FROM {{{table}}}")  # noqa: S608 -- a name of TABLES

    def create(self) -> "OldDatabase":
        """Make the tables, indexes and constraints, and the table of Django's migrations."""
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}; " + "; ".join(filter(None, self._statements())))
        return self

    def _statements(self) -> Sequence[str]:
        tables, indexes = [], [next(index for since, index in INDEXES.items() if self.variant >= since)]
        for table, columns in self.columns.items():
            definitions = ", ".join(f"{name} {self._definition(columns[name])}" for name in columns)
            tables.append(f"CREATE TABLE {{{table}}} ({definitions})")
            for name, definition in columns.items():
                on = f"ON {{{table}}} ({name}"
                if "REFERENCES" in definition:
                    indexes.append(f'CREATE INDEX "{table}_{name}_fk" {on})')
                # Django makes an index for LIKE beside each index of a text.
                if re.match("varchar.* (UNIQUE|PRIMARY|REFERENCES)", definition):
                    indexes.append(f'CREATE INDEX "{table}_{name}_like" {on} varchar_pattern_ops)')
        generated = self._definition("bigserial PRIMARY KEY")
        return [
            *tables,
            *indexes,
            f"CREATE TABLE {{django_migrations}} (id {generated}, app varchar(255) NOT NULL, name varchar(255) NOT NULL,"
            " applied timestamptz NOT NULL)",
            "INSERT INTO {django_migrations} (app, name, applied)"
            f" SELECT unnest('{{{{contenttypes,auth,cdb_rest}}}}'::text[]), '0001_initial', '{TIME}'",
        ]

    def _definition(self, definition: str) -> str:
        if self.identity:
            definition = definition.replace("bigserial", "bigint GENERATED BY DEFAULT AS IDENTITY")
            definition = definition.replace("serial", "integer GENERATED BY DEFAULT AS IDENTITY")
        before, references, table = definition.partition("REFERENCES ")
        return f"{before}{references}{{{table[1:-1]}}} DEFERRABLE INITIALLY DEFERRED" if references else definition

    def key(self, table: str) -> str:
        """The name of the primary key."""
        return "id" if "id" in self.columns[table] else "name"

    def add(self, table: str, **values: Any) -> Any:
        """The key of a new row. Columns that the variant does not have are left out."""
        columns = self.columns[table]
        if columns.get("id") == "bigint PRIMARY KEY":
            values.setdefault("id", self.next_id(table))
        description = "" if "NOT NULL" in columns.get("description", "") else None
        values = {"created": TIME, "updated": TIME, "description": description} | values
        values = {name: value for name, value in values.items() if name in columns}
        into = f"INSERT INTO {{{table}}} ({', '.join(values)}) VALUES ({', '.join(['%s'] * len(values))})"  # noqa: S608
        return self.execute(f"{into} RETURNING {self.key(table)}", *values.values())[0][0]

    def next_id(self, table: str) -> int:
        """An id for a table without a generator. Each id of a list is a row of a table of its own, also if no list was made."""
        if table == "PayloadList":
            return self.execute("INSERT INTO {PayloadListIdSequence} DEFAULT VALUES RETURNING id")[0][0]
        return self.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {{{table}}}")[0][0]  # noqa: S608 -- a name of TABLES

    def named(self, table: str, name: str) -> Any:
        """The key of the row with a name, which is made if it does not exist."""
        rows = self.execute(f"SELECT {self.key(table)} FROM {{{table}}} WHERE name = %s", name)  # noqa: S608
        return rows[0][0] if rows else self.add(table, name=name)

    def status(self, name: str) -> Any:
        return self.named("GlobalTagStatus", name)

    def payload_type(self, name: str) -> Any:
        return self.named("PayloadType", name)

    def tag(self, name: str, status: str = "unlocked", *, author: str | None = "alice", **columns: Any) -> int:
        """The id of a new tag with a status of this name."""
        if "GlobalTagType" in self.columns:
            columns.setdefault("type_id", self.named("GlobalTagType", "online"))
        return self.add("GlobalTag", name=name, status_id=self.status(status), author=author, **columns)

    def payload_list(
        self, payload_type: str, tag: int | None = None, *, name: str | None = None, **columns: Any
    ) -> int:
        """The id of a new list of a payload type of this name, in a tag or detached. Its name is `<type>_<id>`."""
        key = self.payload_type(payload_type)
        if self.variant != "V1":
            columns.setdefault("id", self.next_id("PayloadList"))
        new = self.add("PayloadList", name=name or payload_type, global_tag_id=tag, payload_type_id=key, **columns)
        if name is None:
            self.execute("UPDATE {PayloadList} SET name = %s WHERE id = %s", f"{payload_type}_{new}", new)
        return new

    def iov(
        self,
        payload_list: int | None,
        start: tuple[int, int],
        end: tuple[int, int] = OPEN_END,
        url: str | None = None,
        *,
        comb: Any = combined,
        **columns: Any,
    ) -> int:
        """The id of a new IOV in a list, or detached.

        `comb` is the value of `comb_iov`, or a function that computes it from the start. The end is exclusive, or in discrete
        mode inclusive; nothing in the database says which.
        """
        return self.add(
            "PayloadIOV",
            **{"payload_url": url or f"file_{start[0]}_{start[1]}.root", "checksum": "abc"}
            | {"major_iov": start[0], "minor_iov": start[1], "major_iov_end": end[0], "minor_iov_end": end[1]}
            | {"comb_iov": comb(*start) if callable(comb) else comb, "payload_list_id": payload_list}
            | columns,
        )

    def lookup(self, tag: str, major: int, minor: int) -> dict[int, int]:
        """For each list of a tag, the id of the row that nopayloaddb finds: that with the largest stored `comb_iov`."""
        comb_iov = "comb_iov" if self.variant >= "V7" else "(major_iov + minor_iov * 1e-19::numeric)"
        return dict(
            self.execute(
                f"""SELECT list.id, found.id FROM {{PayloadList}} list JOIN {{GlobalTag}} tag ON tag.id = list.global_tag_id
                CROSS JOIN LATERAL (
                    SELECT id FROM {{PayloadIOV}} iov WHERE payload_list_id = list.id AND {comb_iov} <= %s
                    ORDER BY {comb_iov} DESC LIMIT 1
                ) found WHERE tag.name = %s""",  # noqa: S608 -- a constant
                combined(major, minor),
                tag,
            )
        )
