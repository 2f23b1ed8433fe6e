-- Compiled tags: lookups in them, and compiling.


-- name: call_lookup_since
-- The result of a lookup in a compiled tag, as the function cdb_answer_since describes it: one row.
-- Parameters: those of `call_lookup`; and of the compiled tag: database, compiled_version text, tag_id, revision, horizon, lists
--   bigint, changed timestamptz, young_lists, young_versions bigint[].
SELECT version, status, modified, scope, answer, since, until, changed, unchanged
FROM cdb_answer_since(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(versions)s::text[], %(modified)s, %(with_window)s,
    %(database)s, %(tag_id)s, %(compiled_version)s, %(revision)s, %(changed)s, %(horizon)s,
    %(young_lists)s::bigint[], %(young_versions)s::bigint[], %(lists)s
)


-- name: call_lookup_known
-- The result of a lookup in a compiled tag of which it is known which lists have changed, as the function cdb_answer_known
-- describes it: one row.
-- Parameters: those of `call_lookup_since`, and known_version text, known_changed bigint[].
SELECT version, status, modified, scope, answer, since, until, changed, unchanged
FROM cdb_answer_known(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(versions)s::text[], %(modified)s, %(with_window)s,
    %(database)s, %(tag_id)s, %(compiled_version)s, %(revision)s, %(changed)s, %(horizon)s,
    %(young_lists)s::bigint[], %(young_versions)s::bigint[], %(lists)s,
    %(known_version)s, %(known_changed)s::bigint[]
)


-- name: compile_state
-- The state of a global tag that is compiled: database, id, revision, time of the revision (null if it is not in the log), version,
-- version as a past revision (null too), status, time for Last-Modified, and the id below which all transactions have ended. No row
-- if the tag does not exist.
-- Parameters: tag text.
SELECT cdb_database_identity(), tag.id, tag.revision, change.created,
    cdb_version(tag.revision, tag.updated, tag.xmin),
    change.revision || '-' || to_hex((extract(epoch FROM change.created) * 1000000)::bigint),
    tag_status.name, tag.last_modified, pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
LEFT JOIN "GlobalTagChange" AS change ON change.global_tag = tag.name AND change.revision = tag.revision AND change.has_history
WHERE tag.name = %(tag)s


-- name: compile_lists
-- The payload lists of a global tag that is compiled, in the order of a lookup's answer: id, payload type, number of IOVs, and the
-- transaction that wrote the list's row, null if it is older than the horizon.
-- Parameters: tag_id, horizon bigint.
SELECT list.id, payload_type.name, list.iov_count,
    CASE WHEN NOT cdb_is_older(list.xmin, %(horizon)s) THEN list.xmin::text::bigint END
FROM "PayloadList" AS list
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
WHERE list.global_tag_id = %(tag_id)s
ORDER BY payload_type.name COLLATE "C"


-- name: compile_sample
-- A random sample of the rows of payload lists, by which they are read in parts: the start, and the number of bytes of the texts.
-- Parameters: list_ids bigint[]; share double precision: the part of the rows, from 0 to 1; with_history boolean: whether rows that
--   were superseded belong to it.
-- Expected plan: Index Only Scans, or a Seq Scan if the tag has most rows of the table.
SELECT iov.comb_iov, octet_length(iov.payload_url) + octet_length(iov.checksum) + coalesce(octet_length(iov.extra), 0)
FROM unnest(%(list_ids)s::bigint[]) AS list (id)
CROSS JOIN LATERAL (
    SELECT comb_iov, payload_url, checksum, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND random() < %(share)s
    UNION ALL
    SELECT comb_iov, payload_url, checksum, extra
    FROM "PayloadIOVHistory"
    WHERE %(with_history)s AND payload_list_id = list.id AND row_start IS NULL AND random() < %(share)s
) AS iov


-- name: compile_rows
-- The rows of payload lists for a compiled tag that start after one moment and up to another: number of the list (from 0), start and
-- end of the IOV, and the row as a JSON array, as the function cdb_lookup writes it.
-- Parameters: list_ids bigint[], payload_types text[]: one element for each list; after, until numeric: the moments, combined.
-- Expected plan: for each list an Index Only Scan Backward of payload_iov_lookup with an Index Cond on list and start, without Sort.
--   The order is not needed, but it keeps PostgreSQL from reading the whole table for all lists together.
SELECT (list.number - 1)::integer, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    json_build_array(
        list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
        iov.major_iov_end, iov.minor_iov_end, iov.extra
    )::text
FROM unnest(%(list_ids)s::bigint[], %(payload_types)s::text[]) WITH ORDINALITY AS list (id, payload_type, number)
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND comb_iov > %(after)s AND comb_iov <= %(until)s
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov


-- name: compile_past_rows
-- The rows of `compile_rows` for payload lists in given versions.
-- Parameters: list_ids bigint[], payload_types text[], versions integer[]: one element for each list; after, until numeric.
SELECT (list.number - 1)::integer, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    json_build_array(
        list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
        iov.major_iov_end, iov.minor_iov_end, iov.extra
    )::text
FROM unnest(%(list_ids)s::bigint[], %(payload_types)s::text[], %(versions)s::integer[])
    WITH ORDINALITY AS list (id, payload_type, version, number)
CROSS JOIN LATERAL (
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND comb_iov > %(after)s AND comb_iov <= %(until)s AND added_in <= list.version
        ORDER BY comb_iov ASC NULLS FIRST
    )
    UNION ALL
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = list.id AND comb_iov > %(after)s AND comb_iov <= %(until)s AND row_start IS NULL
            AND added_in <= list.version AND removed_in > list.version
        ORDER BY comb_iov ASC NULLS FIRST
    )
) AS iov


-- name: compile_identity
-- The identity of the database. Null on a standby. No parameters.
SELECT cdb_database_identity()


-- name: compiled_validity
-- The compiled tags that are still true: of each one its position in the parameters. Its revision must be one that can be asked for,
-- unless it is not in the log (changed is null). For the present state of a tag, the tag must exist, too, and, if it was frozen, have
-- the same version.
-- Parameters: names, versions text[], tag_ids, revisions bigint[], changed timestamptz[], pasts, frozens boolean[]: one element for
--   each.
SELECT compiled.position
FROM unnest(
    %(names)s::text[], %(versions)s::text[], %(tag_ids)s::bigint[], %(revisions)s::bigint[], %(changed)s::timestamptz[],
    %(pasts)s::boolean[], %(frozens)s::boolean[]
) WITH ORDINALITY AS compiled (name, version, tag_id, revision, changed, is_past, is_frozen, position)
LEFT JOIN "GlobalTag" AS tag ON tag.name = compiled.name AND tag.id = compiled.tag_id
LEFT JOIN "GlobalTagChange" AS change ON change.global_tag = compiled.name AND change.revision = compiled.revision
WHERE (compiled.changed IS NULL OR (change.has_history AND change.created = compiled.changed))
    AND (compiled.is_past OR tag.id IS NOT NULL)
    AND (NOT compiled.is_frozen OR cdb_version(tag.revision, tag.updated, tag.xmin) = compiled.version)


-- name: compile_sizes
-- The numbers of payload lists and IOVs of global tags, by name, and whether they are frozen. Parameters: names text[].
SELECT tag.name, tag.payload_lists_count, tag.payload_iov_count, status.name = 'frozen'
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS status ON status.id = tag.status_id
WHERE tag.name = ANY(%(names)s)
