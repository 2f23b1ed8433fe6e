"""How the OpenAPI description is made from the views."""

import re
from collections.abc import Callable

from drf_spectacular.openapi import AutoSchema

from cdb_rest.api.documents import Error


class RouteSchema(AutoSchema):
    """Names each operation after its own path, an alias's too, and says how every one of them reports an error."""

    def get_operation_id(self) -> str:
        words = re.findall(r"\w+", self.path.removeprefix("/api/cdb_rest/"))
        return "_".join([self.method.lower(), *words])

    def get_tags(self) -> list[str]:
        return [self.view.__module__.rsplit(".", 1)[-1].replace("_", " ")]

    def get_operation(self, *arguments: object) -> dict | None:
        operation = super().get_operation(*arguments)
        if operation is not None:
            operation["responses"]["default"] = self._get_response_for_code(Error, "default")
        return operation


def documented_spellings(endpoints: list[tuple[str, str, str, Callable]]) -> list[tuple[str, str, str, Callable]]:
    """Leave out the second spelling of each path, the one whose trailing slash differs from the documented one."""
    from cdb_rest.api.routes import served_routes

    documented = {re.sub(r"<str:(\w+)>", r"{\1}", path) for _, paths in served_routes() for path in paths}
    return [endpoint for endpoint in endpoints if endpoint[0].removeprefix("/api/cdb_rest/") in documented]
