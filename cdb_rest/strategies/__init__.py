"""The laboratory of the lookup: other ways to answer it, to compare their speed and plans with those of the service's own."""
