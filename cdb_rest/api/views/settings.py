"""The view of the settings that clients may know."""

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.domain.errors import SettingNotFoundError


class PublicSettingView(APIView):
    """One public setting, its default where nothing was set."""

    @extend_schema(responses={200: {"type": "object", "additionalProperties": {}}})
    def get(self, request: Request, name: str) -> Response:
        if name not in settings.CDB_PUBLIC_SETTINGS:
            raise SettingNotFoundError(name)
        return Response({name: settings.CDB_PUBLIC_SETTINGS[name]})
