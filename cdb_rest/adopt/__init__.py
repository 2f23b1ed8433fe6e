"""Adoption of databases of nopayloaddb: report, copy, update, verification, and the way back.

Statements in the source decide about its rows (`source_rows` in sql/adopt.sql), so that all of these agree.
"""
