"""Identity: how the service identifies a client, and what the client may do."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.descriptions import response_example
from cdb_rest.api.base.views import StrictView
from cdb_rest.rules.access import All, Object, Principal, Role, needs, role_of

EXAMPLE = {
    "name": "127.0.0.1",
    "method": "",
    "permissions": [
        {"role": "administrator", "global_tags": ".*", "payload_types": ".*", "rule": "writes are open to all clients"},
    ],
    "decision": None,
}


class PermissionDocument(serializers.Serializer[None]):
    """A role for the tags and payload types whose names match two patterns, and the rule that gives it."""

    role = serializers.CharField()
    global_tags = serializers.CharField()
    payload_types = serializers.CharField()
    rule = serializers.CharField()


class DecisionDocument(serializers.Serializer[None]):
    """Whether the client has the role for the tag and the payload type, and in words what is needed.

    `rule` is the rule that gives the role; null if none does. The status of the tag is not considered.
    """

    is_permitted = serializers.BooleanField()
    rule = serializers.CharField(allow_null=True)
    needs = serializers.CharField()


class WhoAmIDocument(serializers.Serializer[None]):
    """The client, how it was identified (empty: it was not), and its permissions.

    `decision` is null if the request has no `role`.
    """

    name = serializers.CharField()
    method = serializers.CharField(allow_blank=True)
    permissions = PermissionDocument(many=True)
    decision = DecisionDocument(allow_null=True)


class WhoAmIView(StrictView):
    """The client's identity and permissions. With `role`, also whether it has that role for a tag and a payload type."""

    query = (
        OpenApiParameter("role", str, enum=[str(role) for role in Role], description="The role to decide about."),
        OpenApiParameter("global_tag", str, description="Name of the global tag; without it: all global tags."),
        OpenApiParameter("payload_type", str, description="Name of the payload type; without it: all payload types."),
    )

    @extend_schema(
        summary="Get one's identity and permissions",
        responses=WhoAmIDocument,
        examples=[response_example(EXAMPLE)],
    )
    def get(self, request: Request) -> Response:
        principal = principal_of(request.META)
        parameters = request.query_params
        decision = None
        if "role" in parameters:
            decision = _decision(
                principal,
                role_of(parameters["role"]),
                parameters.get("global_tag", All.ALL),
                parameters.get("payload_type", All.ALL),
            )
        everything = principal.permission(Role.ADMINISTRATOR) if principal.may_everything else None
        return Response(
            {
                "name": principal.name,
                "method": principal.method,
                "permissions": [
                    {
                        "role": str(permission.role),
                        "global_tags": permission.tags,
                        "payload_types": permission.types,
                        "rule": permission.rule,
                    }
                    for permission in ([everything] if everything else principal.permissions)
                ],
                "decision": decision,
            },
            headers={"Cache-Control": "no-store"},
        )


def _decision(principal: Principal, role: Role, tag: Object, payload_type: Object) -> dict[str, object]:
    permission = principal.permission(role, tag, payload_type)
    return {
        "is_permitted": permission is not None,
        "rule": permission and permission.rule,
        "needs": needs(role, tag, payload_type),
    }
