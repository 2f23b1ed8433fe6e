-- The result of a lookup in the past: one row, whose revision is null if there is no such change.
-- Parameters: tag text; revision bigint or time timestamptz: the state, the other one null; major, minor bigint; only_valid,
--   inclusive, as_objects boolean (see lookup.sql); versions text[]: the client's validators; with_window boolean.
SELECT revision, version, has_history, is_deleted, answer, since, until
FROM cdb_answer_at(
    %(tag)s, %(revision)s, %(time)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s, %(versions)s::text[],
    %(with_window)s
)
