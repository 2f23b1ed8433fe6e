"""The REST API: for each kind of resource a module with its views, inputs and documents, and the OpenAPI description."""
