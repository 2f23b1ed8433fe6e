"""The history of payload lists: their versions, superseded IOVs, and membership in global tags.

A payload list has a *version*: the number of recorded changes of its IOVs. Each attached IOV has the version since which
it is as it is (`PayloadIOV.added_in`). An IOV that is superseded moves to `PayloadIOVHistory`.

Every IOV has an *area*: the moments from its start up to the next start in its list. With the versions as second axis,
the areas of the past and of the present cover the plane of moments and versions without overlap: each point belongs to
one row, or to none if the list had no IOV there. A lookup in the past finds the row of one point.

- The area of a present IOV begins with the version `added_in`. At most, an earlier area of this IOV was larger.
- If a new start cuts an area, the IOV itself does not change. The part that it loses becomes a row of
  `PayloadIOVHistory` without payload, which refers to the IOV by its start (`row_start`).
- If an area grows because the IOV after it was removed, the IOV counts as superseded by itself.

To find a point among the areas of the past, `PayloadIOVHistory.node` places each of them in a binary tree over the
versions: the node is the version with most factors of two that the area contains. All areas of a node contain this version,
so they do not overlap in moments, and one index descent finds the only candidate. The nodes that can contain a version are its
ancestors in the tree, so a search takes at most as many descents as the number of versions has binary digits.
This is the relational interval tree of Kriegel, Poetke and Seidl (VLDB 2000).
"""

from django.db import models
from django.db.models import F, Func
from django.db.models.functions import Now

from cdb_rest.models.payload_iov import uses_index
from cdb_rest.models.payload_list import base_constraint, base_index
from cdb_rest.rules.names import LIST_NAME_LENGTH, NAME_LENGTH, REVISION_LENGTH, TEXT_LENGTH

# The versions that an area contains are added_in to removed_in - 1. In the tree, they are counted from 1.
FORK_NODE = Func(F("added_in"), F("removed_in"), function="cdb_fork_node", output_field=models.IntegerField())


class PayloadListVersion(models.Model):
    """A version of a payload list: the number of the change that created it (`GlobalTagChange.number`).

    `iov_count` is the number of IOVs after the change. Version 0 has no row if the list was created empty. A version with a base
    has the rows of that version of that list (`PayloadList`).
    """

    pk = models.CompositePrimaryKey("payload_list_id", "number")
    payload_list_id = models.BigIntegerField()
    number = models.BigIntegerField()
    version = models.IntegerField()
    iov_count = models.BigIntegerField()
    base_list_id = models.BigIntegerField(null=True, editable=False)
    base_version = models.IntegerField(null=True, editable=False)

    class Meta:
        db_table = "PayloadListVersion"
        # To find the change that created a version. The primary key is for the opposite.
        indexes = [
            models.Index(fields=["payload_list_id", "version"], name="payload_list_version"),
            base_index("payload_list_version_of_base"),
        ]
        constraints = [base_constraint("payload_list_version_base")]

    def __str__(self) -> str:
        return f"version {self.version} of payload list {self.payload_list_id}"


class PayloadIOVHistory(models.Model):
    """An area of the past; see the description of this module.

    It covers the moments from `comb_iov` up to `until` (null: to the end of time) in the versions `added_in` to
    `removed_in` - 1. If `row_start` is null, the row is the superseded IOV with the id `iov_id`, which started there.
    Otherwise the columns of the IOV are null, and the area belonged to the IOV of this version that starts at `row_start`.
    """

    pk = models.CompositePrimaryKey("payload_list_id", "node", "comb_iov")
    payload_list_id = models.BigIntegerField()
    node = models.IntegerField()
    comb_iov = models.DecimalField(max_digits=38, decimal_places=19)
    until = models.DecimalField(max_digits=38, decimal_places=19, null=True)
    added_in = models.IntegerField()
    removed_in = models.IntegerField()
    row_start = models.DecimalField(max_digits=38, decimal_places=19, null=True)
    iov_id = models.BigIntegerField(null=True)
    payload_url = models.CharField(max_length=TEXT_LENGTH, null=True)  # noqa: DJ001 -- null without an IOV
    checksum = models.CharField(max_length=TEXT_LENGTH, null=True)  # noqa: DJ001
    size = models.BigIntegerField(null=True)
    major_iov = models.BigIntegerField(null=True)
    minor_iov = models.BigIntegerField(null=True)
    major_iov_end = models.BigIntegerField(null=True)
    minor_iov_end = models.BigIntegerField(null=True)
    extra = models.CharField(max_length=REVISION_LENGTH, null=True)  # noqa: DJ001
    created = models.DateTimeField(null=True)

    class Meta:
        db_table = "PayloadIOVHistory"
        constraints = [
            models.CheckConstraint(name="payload_iov_history_node", condition=models.Q(node=FORK_NODE)),
            models.CheckConstraint(
                name="payload_iov_history_not_empty",
                condition=models.Q(added_in__lt=F("removed_in"))
                & (models.Q(until__isnull=True) | models.Q(until__gt=F("comb_iov"))),
            ),
        ]
        indexes = [uses_index("payload_iov_history_uses", models.Q(row_start__isnull=True))]

    def __str__(self) -> str:
        return (
            f"payload list {self.payload_list_id} from {self.comb_iov}, versions {self.added_in} to {self.removed_in}"
        )


class PayloadListMembership(models.Model):
    """The time in which a payload list was attached to a global tag, as numbers of changes; `removed_in` is exclusive.

    `removed_in` is null for the present. The tag and the list may not exist any more. Their names, and when the list was created,
    are kept for responses about the past.
    """

    tag_id = models.BigIntegerField()
    payload_list_id = models.BigIntegerField()
    name = models.CharField(max_length=LIST_NAME_LENGTH)
    payload_type = models.CharField(max_length=NAME_LENGTH)
    created = models.DateTimeField()
    added_in = models.BigIntegerField()
    removed_in = models.BigIntegerField(null=True)

    class Meta:
        db_table = "PayloadListMembership"
        indexes = [
            models.Index(fields=["tag_id"], name="payload_list_membership_tag"),
            models.Index(fields=["payload_list_id"], name="payload_list_membership_list"),
        ]

    def __str__(self) -> str:
        return f"{self.name} in tag {self.tag_id}"


class DeletedGlobalTag(models.Model):
    """A global tag that was deleted: its attributes, for responses about its past."""

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=NAME_LENGTH)
    author = models.CharField(max_length=NAME_LENGTH)
    description = models.CharField(max_length=TEXT_LENGTH)
    created = models.DateTimeField()
    deleted = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "DeletedGlobalTag"

    def __str__(self) -> str:
        return self.name
