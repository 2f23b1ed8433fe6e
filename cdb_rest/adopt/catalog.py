"""The schema of a database of nopayloaddb: which of its nine variants it is, found from the catalog alone.

nopayloaddb generated its migrations where it ran, so the record of them says nothing about the tables. The variants differ in the
columns that exist. Statements name each column by an expression that fits the variant.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cdb_rest import named_sql
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.moment import OPEN

COLUMNS = named_sql.load("source_columns")
OBJECTS = named_sql.load("source_objects")
BASE_TABLES = ("GlobalTagStatus", "GlobalTag", "PayloadType", "PayloadList", "PayloadIOV")
SEQUENCE_TABLE = "PayloadListIdSequence"
# The faults of rows, which are columns of `source_rows`.
ROW_FAULTS = (
    *("negative", "end_before_start", "empty", "null_comb_iov", "equal_starts", "open_at_major", "bad_revision"),
    *("wrong_comb_iov", "overlap"),
)
# The columns of IOVs by name and type, with the value if the variant has none.
IOV_COLUMNS = {
    "payload_url": ("text", "''"),
    "checksum": ("text", "''"),
    "size": ("bigint", "0"),
    "major_iov": ("bigint", "0"),
    "minor_iov": ("bigint", "0"),
    "major_iov_end": ("bigint", str(OPEN)),
    "minor_iov_end": ("bigint", str(OPEN)),
    "extra": ("text", "NULL"),
    "created": ("timestamptz", "now()"),
    "updated": ("timestamptz", "now()"),
    "comb_iov": ("numeric", "NULL"),
}
# The types that these columns had in all variants.
USUAL_TYPES = {
    "text": "character varying(255)",
    "bigint": "bigint",
    "numeric": "numeric(38,19)",
    "timestamptz": "timestamp with time zone",
}
# All columns that a variant had, to tell those that were added by hand.
KNOWN_COLUMNS = {
    "GlobalTagStatus": {"id", "name", "description", "created"},
    "GlobalTag": {"id", "name", "author", "description", "status_id", "type_id", "created", "updated"},
    "PayloadType": {"id", "name", "description", "created"},
    "PayloadList": {
        *("id", "name", "description", "global_tag_id", "payload_type_id", "freeze_time", "created", "updated")
    },
    "PayloadIOV": {"id", "payload_list_id", "description", *IOV_COLUMNS},
}
# The index of the lookup in the variants that have it.
LOOKUP_INDEX = "(payload_list_id, comb_iov DESC NULLS LAST)"


class NotNopayloaddbError(CdbError, status=400, code="not_nopayloaddb"):
    """The database is not one of nopayloaddb, or not one that can be adopted."""


@dataclass(frozen=True)
class Schema:
    """The tables of nopayloaddb in a database.

    `name` is the PostgreSQL schema, `variant` V1 to V9, `ids` how ids are generated, `notes` what is unusual, one line each.
    """

    name: str
    variant: str
    ids: str
    columns: dict[str, dict[str, str]]
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, cursor: Any, address: str) -> "Schema":
        """The schema of the database at `address`. Raises `NotNopayloaddbError`."""
        cursor.execute(COLUMNS, {"tables": [*BASE_TABLES, SEQUENCE_TABLE]})
        rows = cursor.fetchall()
        schemas = sorted({row[0] for row in rows if row[1] == "PayloadIOV"})
        if not schemas:
            raise NotNopayloaddbError(f'{address} is no database of nopayloaddb: it has no table "PayloadIOV".')
        if len(schemas) > 1:
            raise NotNopayloaddbError(f'{address} has the table "PayloadIOV" in several schemas: {", ".join(schemas)}.')
        [name] = schemas
        if any(row[1:3] == ("PayloadIOV", "added_in") for row in rows):
            raise NotNopayloaddbError(f"{address} is a database of cdb already.")
        columns: dict[str, dict[str, str]] = {}
        for schema, table, column, kind, is_generated, is_identity, default in rows:
            if schema == name:
                columns.setdefault(table, {})[column] = kind
                if column == "comb_iov" and is_generated:
                    raise NotNopayloaddbError(f"{address} has a generated column comb_iov, so it is not nopayloaddb's.")
                if (table, column) == ("PayloadIOV", "id"):
                    ids = "identity" if is_identity else "serial" if default.startswith("nextval") else "none"
        if missing := [table for table in BASE_TABLES if table not in columns]:
            raise NotNopayloaddbError(
                f'{address} is no database of nopayloaddb: it has a table "PayloadIOV", but no table {", ".join(missing)}.'
            )
        needed = {"id", "payload_url", "major_iov", "minor_iov", "payload_list_id"}
        if missing := sorted(needed - columns["PayloadIOV"].keys()):
            raise NotNopayloaddbError(f'{address}: the table "PayloadIOV" has no column {", ".join(missing)}.')
        cursor.execute(OBJECTS, {"schema": name})
        variant = _variant(columns)
        return cls(name, variant, ids, columns, _notes(variant, name, columns, cursor.fetchall()))

    def has(self, table: str, column: str) -> bool:
        """Whether a table has a column."""
        return column in self.columns.get(table, {})

    def statement(self, name: str, **parts: str) -> str:
        """A statement of sql/adopt.sql for this source. `parts` replace further placeholders; `condition` chooses the rows."""
        text = named_sql.load(name)
        rows = named_sql.load("source_rows")
        replaced = {
            "rows": rows.replace("{condition}", parts.pop("condition", "iov.payload_list_id = list.id")),
            "hash": named_sql.load("row_hash"),
            "faults": ", ".join(f"count(*) FILTER (WHERE iov.{fault})" for fault in ROW_FAULTS),
            "iov.columns": ", ".join(self._iov_columns()),
            "has_comb": "true" if self.has("PayloadIOV", "comb_iov") else "false",
            "status_key": "id" if self.has("GlobalTagStatus", "id") else "name",
            "type_key": "id" if self.has("PayloadType", "id") else "name",
            "type.id": "type.id::bigint" if self.has("PayloadType", "id") else "NULL::bigint",
            "sequence": '(SELECT max(id) FROM "PayloadListIdSequence")' if SEQUENCE_TABLE in self.columns else "0",
            **{
                f"{alias}.{column}": f"coalesce({alias}.{column}::text, '')" if self.has(table, column) else "''"
                for alias, table, column in (
                    ("tag", "GlobalTag", "author"),
                    ("tag", "GlobalTag", "description"),
                    ("type", "PayloadType", "description"),
                    ("list", "PayloadList", "description"),
                    ("iov", "PayloadIOV", "description"),
                )
            },
            **parts,
        }
        for placeholder, value in replaced.items():
            text = text.replace(f"{{{placeholder}}}", value)
        return text

    def _iov_columns(self) -> list[str]:
        found = []
        for column, (kind, default) in IOV_COLUMNS.items():
            value = f"iov.{column}::{kind}" if self.has("PayloadIOV", column) else f"{default}::{kind}"
            if column == "extra":
                value = f"nullif({value}, '')"
            elif default not in ("NULL", "now()"):
                value = f"coalesce({value}, {default})"
            if column == "size":
                value = f"greatest({value}, 0)"
            found.append(f"{value} AS {'stored_comb' if column == 'comb_iov' else column}")
        return found


def _variant(columns: dict[str, dict[str, str]]) -> str:
    """The variant, V1 to V9, by the first rule that applies."""
    iov, tag, types = columns["PayloadIOV"], columns["GlobalTag"], columns["PayloadType"]
    rules = (
        ("V1", SEQUENCE_TABLE not in columns and iov["id"] == "integer"),
        ("V2", "id" not in types),
        ("V3", "major_iov_end" not in iov),
        ("V4", "type_id" in tag),
        ("V5", "checksum" not in iov),
        ("V6", "comb_iov" not in iov),
        ("V7", "size" not in iov),
        ("V9", "extra" in iov),
    )
    return next((variant for variant, applies in rules if applies), "V8")


def _notes(
    variant: str, name: str, columns: dict[str, dict[str, str]], objects: Sequence[tuple[str, str, str, str, bool]]
) -> list[str]:
    notes = []
    if name != "public":
        notes.append(f"The tables are in the schema {name}.")
    for table, known in KNOWN_COLUMNS.items():
        notes += [
            f'The table "{table}" has a column {column} that nopayloaddb never had; it is not taken over.'
            for column in columns[table].keys() - known
        ]
    if {"description", "extra"} <= columns["PayloadIOV"].keys():
        notes.append("IOVs have both description and extra: the schema was altered by hand. Only extra is taken over.")
    for column, kind in columns["PayloadIOV"].items():
        if column in IOV_COLUMNS and not kind.startswith(USUAL_TYPES[IOV_COLUMNS[column][0]]):
            notes.append(f"PayloadIOV.{column} has the unusual type {kind}.")
    if SEQUENCE_TABLE not in columns and variant != "V1":
        notes.append(f'There is no table "{SEQUENCE_TABLE}".')
    if "freeze_time" in columns["PayloadList"]:
        notes.append("Payload lists have freeze_time, which is not taken over.")
    if "type_id" in columns["GlobalTag"]:
        notes.append("Global tags have types, which are not taken over.")
    indexes = [definition for kind, _, _, definition, _ in objects if kind == "index"]
    if not any("(payload_list_id" in definition for definition in indexes):
        notes.append("No index begins with payload_list_id: reading each list reads the whole table.")
    if variant in ("V7", "V8", "V9") and not any(LOOKUP_INDEX in definition for definition in indexes):
        notes.append(f"The index of the lookup on {LOOKUP_INDEX} is missing or has another form.")
    serving = [item for kind, _, item, text, _ in objects if kind == "index" and re.search("comb_iov|major_iov", text)]
    if len(serving) > 1:
        notes.append(f"Several indexes serve the lookup: {', '.join(serving)}.")
    notes += [f"The {kind} {item} is not valid." for kind, _, item, _, is_valid in objects if not is_valid]
    notes += [
        f'The trigger {item} on "{table}" was added by hand.'
        for kind, table, item, _, _ in objects
        if kind == "trigger"
    ]
    keys = [definition for kind, table, _, definition, _ in objects if kind == "foreign key"]
    if len(keys) < 4:
        notes.append(f"Only {len(keys)} foreign keys exist, so objects may refer to others that do not.")
    return notes
