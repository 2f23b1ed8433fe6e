"""An app with one more migration of the service's tables, as a next release may bring, and settings with it."""
