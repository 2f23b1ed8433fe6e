"""In place of rich, which comes with the packages for development. structlog imports it where it can, and formats
exceptions differently then.

With this directory on `PYTHONPATH` a service of the tests starts as in production, in less time.
"""

raise ModuleNotFoundError("rich is not one of the service's packages")
