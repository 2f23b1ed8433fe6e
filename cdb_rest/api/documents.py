"""The documents in responses. Each class declares the members of one document and the column of each member.

The classes are used for the OpenAPI description, and by `cdb_rest.api.conversion` for the columns to fetch.
"""

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

Document = dict[str, Any]
# A serializer for rows of any model.
Shape = serializers.Serializer[Any]


class Statement(Shape):
    """The response to a delete."""

    detail = serializers.CharField()


class BulkResult(Shape):
    """The response to a bulk insert."""

    detail = serializers.CharField()
    count = serializers.IntegerField()


class Error(Shape):
    """An error. Further members may name invalid fields or rows."""

    detail = serializers.CharField()
    code = serializers.CharField()
    rows = serializers.ListField(child=serializers.DictField(), required=False)


class NamedDocument(Shape):
    """A status or a payload type."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    created = serializers.DateTimeField()


class StatusDocument(Shape):
    """A status inside a nested global tag."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    created = serializers.DateTimeField()


class GlobalTagDocument(Shape):
    """A global tag as a write returns it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    author = serializers.CharField()
    status = serializers.CharField(source="status.name")
    created = serializers.DateTimeField()
    updated = serializers.DateTimeField()


class GlobalTagItem(Shape):
    """A global tag in a list, with its counts and its revision, for requests about the past."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    author = serializers.CharField()
    status = serializers.CharField(source="status.name")
    payload_lists_count = serializers.IntegerField()
    payload_iov_count = serializers.IntegerField()
    created = serializers.DateTimeField()
    updated = serializers.DateTimeField()
    revision = serializers.IntegerField()


class PayloadIOVDocument(Shape):
    """A payload IOV. `comb_iov` is a string, because JSON numbers lose digits in many programs."""

    id = serializers.IntegerField()
    payload_url = serializers.CharField()
    checksum = serializers.CharField()
    size = serializers.IntegerField()
    major_iov = serializers.IntegerField()
    minor_iov = serializers.IntegerField()
    comb_iov = serializers.CharField()
    major_iov_end = serializers.IntegerField()
    minor_iov_end = serializers.IntegerField()
    payload_list = serializers.CharField(source="payload_list.name", allow_null=True)
    revision = serializers.CharField(source="extra", allow_null=True)
    inserted = serializers.DateTimeField(source="created")


class ValidPayloadIOV(Shape):
    """A payload IOV with the part of a window in which it is valid: `since` and `until`, each as [major, minor].

    The end of the part is written like the ends of IOVs: exclusive or inclusive, depending on the mode.
    """

    payload_type = serializers.CharField()
    payload_url = serializers.CharField()
    checksum = serializers.CharField()
    size = serializers.IntegerField()
    major_iov = serializers.IntegerField()
    minor_iov = serializers.IntegerField()
    major_iov_end = serializers.IntegerField()
    minor_iov_end = serializers.IntegerField()
    revision = serializers.CharField(allow_null=True)
    since = serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2)
    until = serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2)


class PayloadListDocument(Shape):
    """A payload list as a write returns it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    global_tag = serializers.CharField(source="global_tag.name", allow_null=True)
    payload_type = serializers.CharField(source="payload_type.name")
    created = serializers.DateTimeField()


class PayloadListItem(PayloadListDocument):
    """A payload list on a page, with its number of IOVs."""

    iov_count = serializers.IntegerField()


class NestedPayloadList(Shape):
    """A payload list with all its IOVs, ordered by start."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    global_tag = serializers.CharField(source="global_tag.name", allow_null=True)
    payload_type = serializers.CharField(source="payload_type.name")
    payload_iov = PayloadIOVDocument(many=True)
    created = serializers.DateTimeField()


class NestedGlobalTag(Shape):
    """A global tag with all its payload lists and their IOVs."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    author = serializers.CharField()
    status = StatusDocument()
    payload_lists = NestedPayloadList(many=True)
    created = serializers.DateTimeField()
    updated = serializers.DateTimeField()


class ChangeItem(Shape):
    """A change of a global tag in a list, with the numbers of removed and added IOVs."""

    global_tag = serializers.CharField()
    revision = serializers.IntegerField()
    time = serializers.DateTimeField(source="created")
    actor = serializers.CharField()
    action = serializers.CharField()
    comment = serializers.CharField()
    payload_iovs_before = serializers.IntegerField()
    payload_iovs_after = serializers.IntegerField()


class ChangeDocument(ChangeItem):
    """A change of a global tag: `before` is what it removed, `after` what it added.

    For a clone or a scenario, `after` also has the source.
    """

    before = serializers.JSONField()
    after = serializers.JSONField()


class TypeReversionDocument(Shape):
    """The change of a global tag by a reversion, for one payload type.

    `list_detached` and `list_attached` are the names of the lists that left the tag and came into it, or null.
    `list_created` says whether the attached list is new. In a dry run, a new list has no name yet.
    """

    payload_type = serializers.CharField()
    list_detached = serializers.CharField(allow_null=True)
    list_attached = serializers.CharField(allow_null=True)
    list_created = serializers.BooleanField()
    payload_iovs_removed = serializers.IntegerField()
    payload_iovs_added = serializers.IntegerField()


class ReversionResult(Shape):
    """The response to a reversion: the changes for each payload type that differed.

    `revision` is the new revision of the tag. It is null in a dry run, and if nothing differed.
    """

    detail = serializers.CharField()
    dry_run = serializers.BooleanField()
    changed = serializers.BooleanField()
    revision = serializers.IntegerField(allow_null=True)
    payload_types = TypeReversionDocument(many=True)


def one_of(*shapes: Shape | serializers.ListSerializer[Any]) -> PolymorphicProxySerializer:
    """A response with one of several shapes, for the OpenAPI description."""
    names = (getattr(shape, "child", shape).__class__.__name__ for shape in shapes)
    return PolymorphicProxySerializer(
        component_name="Or".join(names),
        serializers=list(shapes),  # type: ignore[arg-type]  # arrays are accepted as well
        resource_type_field_name=None,
        many=False,
    )
