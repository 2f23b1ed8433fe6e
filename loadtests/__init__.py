"""Programs that put load on the service and report what it does."""
