"""The REST API: views, input validation, response documents, errors and the OpenAPI description."""
