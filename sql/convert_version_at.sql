-- The version of a payload list after a change. Parameters: list_id, number bigint.
SELECT cdb_version_at(%(list_id)s, %(number)s)
