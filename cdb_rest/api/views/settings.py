"""Settings: the part of the configuration that clients may read."""

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.descriptions import in_path, response_example
from cdb_rest.domain.errors import SettingNotFoundError


class PublicSettingView(APIView):
    """An object with the value of the setting, or with its default."""

    @extend_schema(
        summary="Get a setting",
        parameters=[in_path("name", "Name of the setting, such as CDB_PAYLOAD_BASE_URL.", "CDB_IOV_MODE")],
        responses={200: {"type": "object", "additionalProperties": {}}},
        examples=[response_example({"CDB_IOV_MODE": "continuous"})],
    )
    def get(self, request: Request, name: str) -> Response:
        if name not in settings.CDB_PUBLIC_SETTINGS:
            raise SettingNotFoundError(name)
        return Response({name: settings.CDB_PUBLIC_SETTINGS[name]})
