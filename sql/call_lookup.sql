-- Ask the lookup's function; one row with the answer's JSON text, or null if there is no such tag.
-- Parameters: tag text; major, minor bigint; only_valid, inclusive, as_objects boolean (see lookup.sql).
SELECT cdb_lookup(%(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s)
