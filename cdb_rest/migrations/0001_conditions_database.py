"""The tables, functions and triggers of a conditions database, its three statuses, and the mode of its intervals."""

from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

FROZEN = Path(__file__).with_suffix("")
OPEN = 9223372036854775807
STATUSES = {
    "unlocked": "Everything may change.",
    "locked": "What is defined stays as it is; moments that have no payload yet may get one.",
    "frozen": "Nothing changes any more, ever.",
}
ACTIONS = (
    *("create", "clone", "seed", "status", "attach_list", "delete_list", "attach_iov", "delete_iov", "bulk", "insert"),
    *("revert", "repair", "restore", "delete"),
)
KINDS = ("claim", "token", "user", "group", "network")
ROLES = ("reader", "contributor", "manager", "publisher", "administrator")
PAYLOAD = ("payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "extra")
NEXT_SECOND = Func(
    template="(date_trunc('second', CURRENT_TIMESTAMP) + interval '1 second')", output_field=models.DateTimeField()
)
# The files of SQL, in an order in which each finds the functions that it calls.
FUNCTIONS = (
    *("version", "lookup", "window", "answer", "count_triggers", "past", "compiled", "mark_triggers", "moments"),
    "point_at",
)

number = models.BigIntegerField
refer = partial(models.ForeignKey, on_delete=models.PROTECT)  # type: ignore[arg-type]
index = models.Index
check = models.CheckConstraint
count = partial(models.BigIntegerField, db_default=0, editable=False)
version = partial(models.IntegerField, db_default=0, default=0, editable=False)
combined = partial(models.DecimalField, decimal_places=19, max_digits=38)
created = partial(models.DateTimeField, db_default=Now(), editable=False)
key = partial(models.CompositePrimaryKey, blank=True, editable=False, primary_key=True, serialize=False)


def read(name: str) -> tuple[tuple[str, None]]:
    """The whole of a file as one piece of SQL, in which % has no meaning."""
    return (((FROZEN / f"{name}.sql").read_text(), None),)


def table(
    name: str, fields: dict[str, Any], *constraints: models.BaseConstraint, **options: Any
) -> migrations.CreateModel:
    """A table with its constraints and indexes; it has a column `id` unless a field is its primary key."""
    if not any(field.primary_key for field in fields.values()):
        fields = {"id": models.BigAutoField("ID", auto_created=True, primary_key=True, serialize=False)} | fields
    return migrations.CreateModel(
        name, list(fields.items()), {"db_table": name, "constraints": list(constraints)} | options
    )


def given(length: int, **options: Any) -> Any:
    return models.CharField(max_length=length, **options)


def unique(name: str, *fields: str) -> models.BaseConstraint:
    return models.UniqueConstraint(fields=fields, name=name)


def choices(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, name.replace("_", " ").title()) for name in names]


def payload_columns() -> dict[str, Any]:
    """The columns of a payload IOV as the history has them, where areas without a payload leave them empty."""
    texts = {"payload_url": 255, "checksum": 255, "extra": 19}
    return {name: given(texts[name], null=True) if name in texts else number(null=True) for name in PAYLOAD}


def add_statuses(apps: Any, schema_editor: Any) -> None:
    statuses = apps.get_model("cdb_rest", "GlobalTagStatus").objects.using(schema_editor.connection.alias)
    for name, description in STATUSES.items():
        statuses.create(name=name, description=description)


def record_mode(apps: Any, schema_editor: Any) -> None:
    properties = apps.get_model("cdb_rest", "DatabaseProperty").objects.using(schema_editor.connection.alias)
    properties.create(name="iov_mode", value=settings.CDB_IOV_MODE)


entered = partial(given, blank=True, default="")
text = partial(entered, db_default="")

CONTENT = [
    table(
        "GlobalTagStatus",
        {"name": given(80), "description": text(255), "created": created()},
        unique("global_tag_status_name", "name"),
    ),
    table(
        "GlobalTag",
        {"name": given(80), "author": text(80), "description": text(255), "created": created(), "updated": created()}
        | {"payload_lists_count": count(), "payload_iov_count": count()}
        | {"status": refer("cdb_rest.globaltagstatus", related_name="global_tags"), "revision": count()}
        | {"last_modified": models.DateTimeField(db_default=NEXT_SECOND, editable=False)},
        unique("global_tag_name", "name"),
    ),
    table(
        "PayloadType",
        {"name": given(80), "description": text(255), "created": created()},
        unique("payload_type_name", "name"),
    ),
    table(
        "PayloadList",
        {"name": given(100), "description": text(255), "created": created(), "updated": created(), "iov_count": count()}
        | {"global_tag": refer("cdb_rest.globaltag", related_name="payload_lists", db_index=False, null=True)}
        | {"payload_type": refer("cdb_rest.payloadtype", related_name="payload_lists"), "version": version()},
        unique("payload_list_name", "name"),
        unique("payload_list_one_per_tag_and_type", "global_tag", "payload_type"),
    ),
    table(
        "PayloadIOV",
        {"payload_url": given(255), "checksum": text(255), "size": number(db_default=0, default=0)}
        | {"major_iov": number(), "minor_iov": number()}
        | {name: number(db_default=OPEN, default=OPEN) for name in ("major_iov_end", "minor_iov_end")}
        | {"extra": given(19, null=True), "created": created(), "updated": created()}
        | {
            "comb_iov": models.GeneratedField(
                db_persist=True,
                expression=Func(
                    F("major_iov"),
                    F("minor_iov"),
                    template="(%(expressions)s * 0.0000000000000000001)",
                    arg_joiner=" + ",
                    output_field=combined(),
                ),
                output_field=combined(),
            )
        }
        | {"payload_list": refer("cdb_rest.payloadlist", related_name="payload_iovs", db_index=False, null=True)}
        | {"added_in": version()},
        # The index of the lookup.
        models.UniqueConstraint(
            F("payload_list"),
            F("comb_iov").desc(nulls_last=True),
            include=(*PAYLOAD, "added_in"),
            name="payload_iov_lookup",
        ),
        check(
            name="payload_iov_not_negative",
            condition=Q(major_iov__gte=0, minor_iov__gte=0, major_iov_end__gte=0, minor_iov_end__gte=0, size__gte=0),
        ),
        check(
            name="payload_iov_end_not_before_start",
            condition=Q(major_iov_end__gt=F("major_iov"))
            | Q(major_iov_end=F("major_iov"), minor_iov_end__gte=F("minor_iov")),
        ),
        check(name="payload_iov_revision_is_digits", condition=Q(extra__regex="^[0-9]+$")),
        # To find the uses of a payload.
        indexes=[
            index(name="payload_iov_url", fields=["payload_url"], opclasses=["varchar_pattern_ops"]),
            index(name="payload_iov_checksum", fields=["checksum"]),
        ],
    ),
]
HISTORY = [
    migrations.RunSQL("CREATE SEQUENCE cdb_change_number", "DROP SEQUENCE cdb_change_number"),
    table(
        "GlobalTagChange",
        {"global_tag": given(80), "revision": number(), "created": models.DateTimeField(), "actor": given(255)}
        | {"action": given(20, choices=choices(ACTIONS)), "comment": given(1000, blank=True)}
        | {"payload_iovs_before": number(), "payload_iovs_after": number()}
        | {"has_history": models.BooleanField(db_default=True, default=True), "source": models.JSONField(null=True)}
        | {"status": text(80), "tag_id": number(null=True), "number": number()},
        unique("global_tag_change_revision", "global_tag", "revision"),
        indexes=[
            index(name="global_tag_change_created", fields=["global_tag", "created"]),
            index(name="global_tag_change_number", fields=["number"]),
        ],
        verbose_name="change of a global tag",
        verbose_name_plural="changes of global tags",
    ),
    table(
        "PayloadListVersion",
        {"pk": key("payload_list_id", "number"), "payload_list_id": number(), "number": number()}
        | {"version": models.IntegerField(), "iov_count": number()},
        indexes=[index(name="payload_list_version", fields=["payload_list_id", "version"])],
    ),
    migrations.RunSQL(read("fork_node"), "DROP FUNCTION cdb_fork_node"),
    table(
        "PayloadIOVHistory",
        {"pk": key("payload_list_id", "node", "comb_iov"), "payload_list_id": number(), "node": models.IntegerField()}
        | {"comb_iov": combined(), "until": combined(null=True)}
        | {"added_in": models.IntegerField(), "removed_in": models.IntegerField()}
        | {"row_start": combined(null=True), "iov_id": number(null=True)}
        | payload_columns()
        | {"created": models.DateTimeField(null=True)},
        check(
            name="payload_iov_history_node",
            condition=Q(
                node=Func(F("added_in"), F("removed_in"), function="cdb_fork_node", output_field=models.IntegerField())
            ),
        ),
        check(
            name="payload_iov_history_not_empty",
            condition=Q(added_in__lt=F("removed_in")) & (Q(until__isnull=True) | Q(until__gt=F("comb_iov"))),
        ),
        # To find the former uses of a payload.
        indexes=[
            index(
                name="payload_iov_history_url",
                fields=["payload_url"],
                opclasses=["varchar_pattern_ops"],
                condition=Q(row_start__isnull=True),
            ),
            index(name="payload_iov_history_checksum", fields=["checksum"], condition=Q(row_start__isnull=True)),
        ],
    ),
    table(
        "PayloadListMembership",
        {"tag_id": number(), "payload_list_id": number(), "name": given(100), "payload_type": given(80)}
        | {"created": models.DateTimeField(), "added_in": number(), "removed_in": number(null=True)},
        indexes=[
            index(name="payload_list_membership_tag", fields=["tag_id"]),
            index(name="payload_list_membership_list", fields=["payload_list_id"]),
        ],
    ),
    table(
        "DeletedGlobalTag",
        {"id": number(primary_key=True, serialize=False), "name": given(80), "author": given(80)}
        | {"description": given(255), "created": models.DateTimeField()}
        | {"deleted": models.DateTimeField(db_default=Now())},
    ),
]
ACCESS = [
    table(
        "AccessRule",
        {"kind": given(10, choices=choices(KINDS)), "issuer": entered(80), "claim": entered(80), "subject": given(255)}
        | {"identity": entered(80), "role": given(20, choices=choices(ROLES))}
        | {"tags": given(255, default=".*"), "types": given(255, default=".*"), "comment": entered(1000)}
        | {"created": created()},
        check(name="access_rule_kind", condition=Q(kind__regex=f"^({'|'.join(KINDS)})$")),
        check(name="access_rule_role", condition=Q(role__regex=f"^({'|'.join(ROLES)})$")),
        unique("access_rule_once", "kind", "issuer", "claim", "subject", "identity", "role", "tags", "types"),
    ),
    table(
        "ApiToken",
        {"name": given(80), "digest": given(64), "created": created()}
        | {name: models.DateTimeField(null=True) for name in ("expires", "revoked", "last_used")},
        unique("api_token_name", "name"),
        unique("api_token_digest", "digest"),
    ),
    table(
        "RevokedToken",
        {"issuer": given(80), "claim": given(10, choices=[("jti", "jti"), ("sub", "sub")]), "value": given(255)}
        | {"created": models.DateTimeField(db_default=Now())},
        unique("revoked_token_once", "issuer", "claim", "value"),
    ),
    table(
        "AccessChange",
        {"created": created(), "actor": given(255), "action": given(20), "detail": models.JSONField()},
        indexes=[index(name="access_change_created", fields=["created"])],
        verbose_name="change of access",
        verbose_name_plural="changes of access",
    ),
]
INTERNAL = [
    table(
        "IdempotencyRecord",
        {"actor": text(255), "key": given(255), "request_digest": given(64), "response": models.TextField()}
        | {"created": created()},
        unique("idempotency_record_key", "actor", "key"),
        indexes=[index(name="idempotency_record_created", fields=["created"])],
    ),
    table("DatabaseProperty", {"name": given(80, primary_key=True, serialize=False), "value": given(255)}),
    table(
        "Restoration",
        {"created": created(), "first_revision": number(), "retired_names": models.JSONField(default=list)}
        | {"comment": given(1000, blank=True)},
        unique("restoration_first_revision", "first_revision"),
    ),
]


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        *CONTENT,
        *HISTORY,
        *ACCESS,
        *INTERNAL,
        *(migrations.RunSQL(read(name), migrations.RunSQL.noop) for name in FUNCTIONS),
        migrations.RunSQL(migrations.RunSQL.noop, read("drop_functions")),
        migrations.RunPython(add_statuses, migrations.RunPython.noop),
        migrations.RunPython(record_mode, migrations.RunPython.noop),
    ]
