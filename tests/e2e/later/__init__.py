"""An app with an additional migration of the service's tables, as a later release may have, and its settings."""
