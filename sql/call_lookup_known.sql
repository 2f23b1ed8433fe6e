-- The result of a lookup in a compiled tag of which it is known which lists have changed, as the function cdb_answer_known
-- describes it: one row.
-- Parameters: those of call_lookup_since.sql, and known_version text, known_changed bigint[].
SELECT version, status, modified, scope, answer, since, until, changed, unchanged
FROM cdb_answer_known(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(versions)s::text[], %(modified)s, %(with_window)s,
    %(database)s, %(tag_id)s, %(compiled_version)s, %(revision)s, %(changed)s, %(horizon)s,
    %(young_lists)s::bigint[], %(young_versions)s::bigint[], %(lists)s,
    %(known_version)s, %(known_changed)s::bigint[]
)
