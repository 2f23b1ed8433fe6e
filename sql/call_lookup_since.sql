-- The result of a lookup in a compiled tag, as the function cdb_answer_since describes it: one row.
-- Parameters: those of call_lookup.sql; and of the compiled tag: database, compiled_version text, tag_id, revision, horizon, lists
--   bigint, changed timestamptz, young_lists, young_versions bigint[].
SELECT version, status, modified, scope, answer, since, until, changed, unchanged
FROM cdb_answer_since(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(versions)s::text[], %(modified)s, %(with_window)s,
    %(database)s, %(tag_id)s, %(compiled_version)s, %(revision)s, %(changed)s, %(horizon)s,
    %(young_lists)s::bigint[], %(young_versions)s::bigint[], %(lists)s
)
