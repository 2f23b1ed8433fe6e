"""Requests with their discussions, subscriptions, and the positions of changes."""

from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

KINDS, STATES = (
    [(name, name.capitalize()) for name in names]
    for names in (("import", "clear", "status", "clone", "undo"), ("open", "accepted", "rejected", "withdrawn"))
)


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0006_descriptions")]

    operations = [
        migrations.CreateModel(
            "ChangeRequest",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=KINDS, max_length=10)),
                ("global_tag", models.CharField(max_length=80)),
                ("tag_id", models.BigIntegerField(null=True)),
                ("revision", models.BigIntegerField()),
                ("document", models.JSONField()),
                ("effect", models.JSONField(default=list)),
                ("reason", models.CharField(max_length=1000)),
                ("requester", models.CharField(max_length=255)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("state", models.CharField(choices=STATES, default="open", max_length=10)),
                ("decided", models.DateTimeField(null=True)),
                ("decided_by", models.CharField(blank=True, default="", max_length=255)),
                ("answer", models.CharField(blank=True, default="", max_length=1000)),
                ("result_revision", models.BigIntegerField(null=True)),
                ("mailed", models.CharField(blank=True, default="", max_length=10)),
            ],
            {
                "db_table": "ChangeRequest",
                "indexes": [
                    models.Index(fields=["global_tag"], name="change_request_tag"),
                    models.Index(fields=["requester"], name="change_request_open", condition=Q(state="open")),
                    models.Index(fields=["id"], name="change_request_unmailed", condition=~Q(mailed=F("state"))),
                ],
            },
        ),
        migrations.CreateModel(
            "RequestComment",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("actor", models.CharField(max_length=255)),
                ("text", models.CharField(max_length=1000)),
                ("request", models.ForeignKey("cdb_rest.changerequest", models.CASCADE, related_name="comments")),
            ],
            {"db_table": "RequestComment"},
        ),
        migrations.CreateModel(
            "Subscription",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=1000)),
                ("secret", models.CharField(max_length=255)),
                ("tags", models.CharField(default=".*", max_length=255)),
                ("actions", models.JSONField(default=list)),
                ("creator", models.CharField(max_length=255)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("delivered", models.BigIntegerField()),
                ("delivered_at", models.DateTimeField(null=True)),
                ("next_attempt", models.DateTimeField(db_default=Now())),
                ("failures", models.IntegerField(default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("problem", models.CharField(blank=True, default="", max_length=255)),
                ("stopped", models.DateTimeField(null=True)),
            ],
            {"db_table": "Subscription"},
        ),
        migrations.AddField("globaltag", "accepts_requests", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("globaltagchange", "position", models.BigIntegerField(editable=False, null=True)),
        migrations.AddIndex("globaltagchange", models.Index(fields=["position"], name="global_tag_change_position")),
        migrations.AddIndex(
            "globaltagchange",
            models.Index(fields=["number"], name="global_tag_change_new", condition=Q(position=None)),
        ),
    ]
