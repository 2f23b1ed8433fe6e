import django.db.models.functions.datetime
from django.db import migrations, models


KINDS = ["claim", "token", "user", "group", "network"]
ROLES = ["reader", "contributor", "manager", "publisher", "administrator"]


class Migration(migrations.Migration):
    """Add the tables of access: rules, tokens, revoked tokens and their changes; idempotency keys for each actor."""

    dependencies = [
        ("cdb_rest", "0003_restorations"),
    ]

    operations = [
        migrations.CreateModel(
            name="AccessChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ("actor", models.CharField(max_length=255)),
                ("action", models.CharField(max_length=20)),
                ("detail", models.JSONField()),
            ],
            options={
                "verbose_name": "change of access",
                "verbose_name_plural": "changes of access",
                "db_table": "AccessChange",
            },
        ),
        migrations.CreateModel(
            name="AccessRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[(kind, kind.capitalize()) for kind in KINDS], max_length=10)),
                ("issuer", models.CharField(blank=True, default="", max_length=80)),
                ("claim", models.CharField(blank=True, default="", max_length=80)),
                ("subject", models.CharField(max_length=255)),
                ("identity", models.CharField(blank=True, default="", max_length=80)),
                ("role", models.CharField(choices=[(role, role.capitalize()) for role in ROLES], max_length=20)),
                ("tags", models.CharField(default=".*", max_length=255)),
                ("types", models.CharField(default=".*", max_length=255)),
                ("comment", models.CharField(blank=True, default="", max_length=1000)),
                ("created", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                "db_table": "AccessRule",
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("digest", models.CharField(max_length=64)),
                ("created", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ("expires", models.DateTimeField(null=True)),
                ("revoked", models.DateTimeField(null=True)),
                ("last_used", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "ApiToken",
            },
        ),
        migrations.CreateModel(
            name="RevokedToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=80)),
                ("claim", models.CharField(choices=[("jti", "jti"), ("sub", "sub")], max_length=10)),
                ("value", models.CharField(max_length=255)),
                ("created", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "RevokedToken",
            },
        ),
        migrations.RemoveConstraint(
            model_name="idempotencyrecord",
            name="kept_answer_key",
        ),
        migrations.AddField(
            model_name="idempotencyrecord",
            name="actor",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.AddConstraint(
            model_name="idempotencyrecord",
            constraint=models.UniqueConstraint(fields=("actor", "key"), name="kept_answer_key"),
        ),
        migrations.AddIndex(
            model_name="accesschange",
            index=models.Index(fields=["created"], name="access_change_created"),
        ),
        migrations.AddConstraint(
            model_name="accessrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__regex", f"^({'|'.join(KINDS)})$")), name="access_rule_kind"
            ),
        ),
        migrations.AddConstraint(
            model_name="accessrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__regex", f"^({'|'.join(ROLES)})$")), name="access_rule_role"
            ),
        ),
        migrations.AddConstraint(
            model_name="accessrule",
            constraint=models.UniqueConstraint(
                fields=("kind", "issuer", "claim", "subject", "identity", "role", "tags", "types"),
                name="access_rule_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.UniqueConstraint(fields=("name",), name="api_token_name"),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.UniqueConstraint(fields=("digest",), name="api_token_digest"),
        ),
        migrations.AddConstraint(
            model_name="revokedtoken",
            constraint=models.UniqueConstraint(fields=("issuer", "claim", "value"), name="revoked_token_once"),
        ),
    ]
