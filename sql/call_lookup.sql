-- The result of a lookup with its validators: one row, whose columns are all null if there is no such tag.
-- Parameters: tag text; major, minor bigint; only_valid, inclusive, as_objects boolean (see lookup.sql);
--   versions text[] and modified timestamptz: the client's validators, or null; with_window boolean.
SELECT version, status, modified, answer, since, until
FROM cdb_answer(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(versions)s::text[], %(modified)s, %(with_window)s
)
