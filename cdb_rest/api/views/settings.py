"""Settings: the part of the configuration that clients may read."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.api.descriptions import in_path, response_example
from cdb_rest.api.hot import respond_hot
from cdb_rest.routes import Hot


class PublicSettingView(APIView):
    """An object with the value of the setting, or with its default."""

    @extend_schema(
        summary="Get a setting",
        parameters=[in_path("name", "Name of the setting, such as CDB_PAYLOAD_BASE_URL.", "CDB_IOV_MODE")],
        responses={200: {"type": "object", "additionalProperties": {}}},
        examples=[response_example({"CDB_IOV_MODE": "continuous"})],
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        return respond_hot(request, Hot.SETTING, name)
