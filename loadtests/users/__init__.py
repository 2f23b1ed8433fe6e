"""The locust users: one class for each kind of client; all of them check every response."""
