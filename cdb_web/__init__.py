"""The web pages of the service: HTML for persons, from the same lookups and services as the API."""
