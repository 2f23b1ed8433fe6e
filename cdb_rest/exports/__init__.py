"""Exports of payload IOVs, in the present and in the past, streamed from PostgreSQL."""
