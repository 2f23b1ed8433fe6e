-- Compiled lists: lookups that use them, and compiling.


-- name: call_lookup_compiled
-- The result of a lookup in a tag of which the lists in one state are known, as the function cdb_answer_compiled describes it: one row.
-- Parameters: those of `call_lookup`; and of the state: database, state_version text, tag_id bigint, missing bigint[].
SELECT version, status, modified, scope, answer, since, until
FROM cdb_answer_compiled(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(versions)s::text[], %(modified)s, %(with_window)s,
    %(database)s, %(tag_id)s, %(state_version)s, %(missing)s::bigint[]
)


-- name: compile_present
-- The present state of a global tag with its payload lists, in the order of a lookup's response: identity of the database, id,
-- revision, version, status and time for Last-Modified of the tag; id of the list, the list and the version that have its rows, the
-- number of its last change by another program, and its payload type. Without lists, one row in which these are null. No row if the tag
-- does not exist.
-- Parameters: tag text.
SELECT cdb_database_identity(), tag.id, tag.revision, cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
    tag.last_modified,
    list.id, list.rows_list_id, coalesce(list.base_version, list.version), list.edited, payload_type.name
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
LEFT JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
LEFT JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
WHERE tag.name = %(tag)s
ORDER BY payload_type.name COLLATE "C"


-- name: compile_past
-- The payload lists that a global tag had after a change, with the columns of `compile_present` about lists. After a list was
-- deleted, no program changes its rows.
-- Parameters: tag_id, number bigint: that of the change.
SELECT member.payload_list_id, source.rows_list_id, source.rows_version, coalesce(list.edited, -1), member.payload_type
FROM "PayloadListMembership" AS member
CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, %(number)s) AS source
LEFT JOIN "PayloadList" AS list ON list.id = source.rows_list_id
WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
    AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
ORDER BY member.payload_type COLLATE "C"


-- name: compile_rows
-- The rows of a payload list in a version, by start: start and end of the IOV, and the row as a JSON array, as the function cdb_lookup
-- writes it.
-- Parameters: list_id bigint, version integer, payload_type text.
-- Expected plan: that of cdb_iovs_of.
SELECT iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    json_build_array(
        %(payload_type)s::text, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
        iov.major_iov_end, iov.minor_iov_end, iov.extra
    )::text
FROM cdb_iovs_of(%(list_id)s, %(version)s, 0, 'Infinity') AS iov


-- name: compile_identity
-- The identity of the database. Null on a standby. No parameters.
SELECT cdb_database_identity()


-- name: compiled_validity
-- The states of frozen tags and past revisions that can still be asked for: of each one its position in the parameters.
-- Parameters: database, tag, version, status text[] (null for a past revision), tag_id, revision bigint[]: one element for each.
WITH here AS MATERIALIZED (SELECT cdb_database_identity() AS identity)
SELECT state.position
FROM here
CROSS JOIN unnest(
    %(database)s::text[], %(tag)s::text[], %(version)s::text[], %(status)s::text[], %(tag_id)s::bigint[],
    %(revision)s::bigint[]
) WITH ORDINALITY AS state (database, name, version, status, tag_id, revision, position)
LEFT JOIN "GlobalTag" AS tag ON tag.name = state.name AND tag.id = state.tag_id
LEFT JOIN "GlobalTagChange" AS change ON change.global_tag = state.name AND change.revision = state.revision AND change.has_history
WHERE state.database = here.identity AND state.version = CASE
    WHEN state.status IS NULL THEN change.revision || '-' || to_hex((extract(epoch FROM change.created) * 1000000)::bigint)
    ELSE cdb_version(tag.revision, tag.updated, tag.xmin)
END


-- name: compile_sizes
-- The numbers of payload lists and IOVs of global tags, by name, and whether they are frozen. Parameters: names text[].
SELECT tag.name, tag.payload_lists_count, tag.payload_iov_count, status.name = 'frozen'
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS status ON status.id = tag.status_id
WHERE tag.name = ANY(%(names)s)
