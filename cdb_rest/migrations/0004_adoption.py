"""What was adopted from databases of nopayloaddb; detached IOVs that come from there may have intervals that no list permits."""

from typing import Any

from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

ACTIONS = (
    *(
        "create",
        "clone",
        "adopt",
        "seed",
        "status",
        "attach_list",
        "delete_list",
        "attach_iov",
        "delete_iov",
        "bulk",
        "insert",
    ),
    *("clear", "limits", "revert", "repair", "restore", "delete"),
)
DETACHED = Q(payload_list__isnull=True)
NOT_NEGATIVE = Q(major_iov__gte=0, minor_iov__gte=0, major_iov_end__gte=0, minor_iov_end__gte=0, size__gte=0)
NOT_BEFORE_START = Q(major_iov_end__gt=F("major_iov")) | Q(
    major_iov_end=F("major_iov"), minor_iov_end__gte=F("minor_iov")
)


def table(name: str, fields: dict[str, Any], constraint: tuple[str, ...]) -> migrations.CreateModel:
    """A table with an id and a unique constraint: its name and its columns."""
    key: Any = models.BigAutoField("ID", auto_created=True, primary_key=True, serialize=False)
    unique = models.UniqueConstraint(fields=constraint[1:], name=constraint[0])
    return migrations.CreateModel(name, [("id", key), *fields.items()], {"db_table": name, "constraints": [unique]})


def of_adoption(related_name: str) -> Any:
    return models.ForeignKey("cdb_rest.adoption", on_delete=models.PROTECT, related_name=related_name)


def replace(name: str, condition: Q) -> list[Any]:
    """The constraint on IOVs with another condition."""
    return [
        migrations.RemoveConstraint("payloadiov", name),
        migrations.AddConstraint("payloadiov", models.CheckConstraint(name=name, condition=condition)),
    ]


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0003_shared_lists")]

    operations = [
        table(
            "Adoption",
            {"source": models.CharField(max_length=255), "decisions": models.JSONField()}
            | {"keeps_ids": models.BooleanField(), "first_own_id": models.BigIntegerField()}
            | {"created": models.DateTimeField(db_default=Now(), editable=False)}
            | {"finished": models.DateTimeField(null=True)},
            ("adoption_source", "source"),
        ),
        table(
            "AdoptedTag",
            {"adoption": of_adoption("tags"), "source_id": models.BigIntegerField()}
            | {"source_name": models.CharField(max_length=80), "tag_id": models.BigIntegerField()}
            | {"revision": models.BigIntegerField(), "snapshot": models.TextField()}
            | {"updated": models.DateTimeField(db_default=Now())},
            ("adopted_tag_source", "adoption", "source_id"),
        ),
        table(
            "AdoptedList",
            {
                "adoption": of_adoption("lists"),
                "source_id": models.BigIntegerField(),
                "list_id": models.BigIntegerField(),
            }
            | {
                "version": models.IntegerField(),
                "iov_count": models.BigIntegerField(),
                "rows_hash": models.TextField(),
            },
            ("adopted_list_source", "adoption", "source_id"),
        ),
        migrations.AddIndex("adoptedlist", models.Index(name="adopted_list_hash", fields=["adoption", "rows_hash"])),
        *replace("payload_iov_not_negative", DETACHED | NOT_NEGATIVE),
        *replace("payload_iov_end_not_before_start", DETACHED | NOT_BEFORE_START),
        migrations.AlterField(
            "globaltagchange",
            "action",
            models.CharField(choices=[(name, name.replace("_", " ").title()) for name in ACTIONS], max_length=20),
        ),
    ]
