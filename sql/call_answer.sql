-- Ask for a lookup's answer with what caches need; one row, all of it null if there is no such tag (see answer_function.sql).
-- Parameters: tag text; major, minor bigint; only_valid, inclusive, as_objects boolean (see lookup.sql);
--   known text[] and known_modified timestamptz: what the client has, or null; with_window boolean.
SELECT version, status, modified, answer, since, until
FROM cdb_answer(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(known)s::text[], %(known_modified)s, %(with_window)s
)
