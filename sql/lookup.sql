-- Lookups of the present, the state of tags, and their plans.


-- name: lookup
-- The lookup: of each payload list of a global tag the IOV with the latest start at or before a moment, as JSON text.
-- Parameters: tag_id bigint; major, minor bigint: the moment; moment numeric: the same combined, major + minor / 10^19;
--   only_valid boolean: leave out IOVs that ended before the moment; inclusive boolean: whether ends are inclusive;
--   as_objects boolean: a JSON object for each row instead of an array.
-- Expected plan: for each list one Index Only Scan of payload_iov_lookup that stops at its first row, with an Index Cond on list and
--   moment, and one Filter of this row, by its version. The history is read only for a shared list whose base has changed there.
-- The function cdb_lookup, which a migration creates, has the same statement; there the parameters are variables.
SELECT '[' || coalesce(string_agg(
    CASE WHEN %(as_objects)s THEN
        json_build_object(
            'payload_type_name', payload_type.name, 'payload_url', iov.payload_url, 'checksum', iov.checksum,
            'size', iov.size, 'major_iov', iov.major_iov, 'minor_iov', iov.minor_iov,
            'major_iov_end', iov.major_iov_end, 'minor_iov_end', iov.minor_iov_end, 'revision', iov.extra
        )
    ELSE
        json_build_array(
            payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
            iov.major_iov_end, iov.minor_iov_end, iov.extra
        )
    END::text,
    ',' ORDER BY payload_type.name COLLATE "C"
) FILTER (WHERE
    NOT %(only_valid)s
    OR (iov.major_iov_end, iov.minor_iov_end) > (%(major)s, %(minor)s)
    OR (%(inclusive)s AND (iov.major_iov_end, iov.minor_iov_end) = (%(major)s, %(minor)s))
    -- The largest pair means "open": nothing is after it, not even itself.
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
), '') || ']'
FROM "PayloadList" AS list
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL cdb_iov_at(list.rows_list_id, list.rows_version, %(moment)s) AS iov
WHERE list.global_tag_id = %(tag_id)s


-- name: similar_global_tags
-- Names of global tags that are candidates for a misspelt one: at most 100, those first that have the same first or last half.
-- Parameters: name text; half integer: half of its length.
-- Expected plan: a Seq Scan of the tags. It is read after an error only.
SELECT name
FROM "GlobalTag"
WHERE abs(char_length(name) - char_length(%(name)s)) <= 3
ORDER BY (left(lower(name), %(half)s) = left(lower(%(name)s), %(half)s))::integer
    + (right(lower(name), %(half)s) = right(lower(%(name)s), %(half)s))::integer DESC, id DESC
LIMIT 100


-- name: similar_payload_types
-- The same as `similar_global_tags`, for payload types.
SELECT name
FROM "PayloadType"
WHERE abs(char_length(name) - char_length(%(name)s)) <= 3
ORDER BY (left(lower(name), %(half)s) = left(lower(%(name)s), %(half)s))::integer
    + (right(lower(name), %(half)s) = right(lower(%(name)s), %(half)s))::integer DESC, id DESC
LIMIT 100


-- name: call_lookup
-- The result of a lookup with its validators: one row, whose columns are all null if there is no such tag.
-- Parameters: tag text; major, minor bigint; only_valid, inclusive, as_objects boolean (see `lookup`);
--   versions text[] and modified timestamptz: the client's validators, or null; with_window boolean.
SELECT version, status, modified, answer, since, until
FROM cdb_answer(
    %(tag)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s,
    %(versions)s::text[], %(modified)s, %(with_window)s
)


-- name: call_lookup_at
-- The result of a lookup in the past: one row, whose revision is null if there is no such change.
-- Parameters: tag text; revision bigint or time timestamptz: the state, the other one null; major, minor bigint; only_valid,
--   inclusive, as_objects boolean (see `lookup`); versions text[]: the client's validators; with_window boolean.
SELECT revision, version, has_history, is_deleted, answer, since, until
FROM cdb_answer_at(
    %(tag)s, %(revision)s, %(time)s, %(major)s, %(minor)s, %(only_valid)s, %(inclusive)s, %(as_objects)s, %(versions)s::text[],
    %(with_window)s
)


-- name: global_tag_state
-- The state of a global tag for HTTP caches: version, name of the status, time for Last-Modified (null until that time is
-- reached). No row if the tag does not exist.
-- Parameters: tag text.
SELECT cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
    CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE tag.name = %(tag)s


-- name: primary_state
-- The flushed position of the primary's WAL in bytes, and the system identifier of its cluster: one row. No parameters.
SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint, (pg_control_system()).system_identifier::text


-- name: replica_state
-- Whether a server is a replica, its replay position in bytes of WAL, and the system identifier of its cluster: one row. No
-- parameters.
SELECT
    pg_is_in_recovery(),
    coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), 0)::bigint,
    (pg_control_system()).system_identifier::text


-- name: explain
-- Run a statement and return its plan. Placeholders: {statement}; {format}, which is JSON or TEXT. Parameters: those of the
-- statement.
EXPLAIN (ANALYZE, BUFFERS, FORMAT {format})
{statement}


-- name: prepare_lookup
-- Prepare the statement of the lookup, which replaces {lookup}, with numbered parameters, as its function does. No parameters.
PREPARE explained_lookup (bigint, bigint, bigint, numeric, boolean, boolean, boolean) AS
{lookup}


-- name: adopt_lookup_settings
-- Apply the settings of the function cdb_lookup, as the database has them, to this transaction. No parameters.
SELECT set_config(split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1), true)
FROM pg_proc, unnest(proconfig) AS setting
WHERE pg_proc.oid = 'cdb_lookup'::regproc


-- name: execute_lookup
-- Execute the statement that `prepare_lookup` prepared. Parameters: those of `lookup`.
EXECUTE explained_lookup (
    %(tag_id)s, %(major)s, %(minor)s, %(moment)s, %(only_valid)s, %(inclusive)s, %(as_objects)s
)


-- name: deallocate_lookup
-- Remove the statement that `prepare_lookup` prepared, because the connection may be reused. No parameters.
DEALLOCATE explained_lookup


-- name: replication_position
-- The identity of the database, the position of the primary's WAL in bytes, the number of its physical replication slots, and the least
-- position up to which their standbys have all WAL: one row. On a standby, identity and position are null. No parameters.
-- Where nothing follows the header of a page (40 bytes in the first one of a file, 24 in the others), the position is that of the page,
-- because standbys report no more. So it is after a switch to a new file of WAL, and while the primary is idle, it stays so.
-- A slot without restart_lsn belongs to a standby that never came or is too far behind, so it has no WAL for certain.
SELECT cdb_database_identity(),
    CASE
        WHEN pg_is_in_recovery() THEN NULL
        WHEN inserted % pg_size_bytes(current_setting('wal_segment_size')) = 40 THEN inserted - 40
        WHEN inserted % current_setting('wal_block_size')::bigint = 24 THEN inserted - 24
        ELSE inserted
    END,
    slots, reached
FROM (
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN (pg_current_wal_insert_lsn() - '0/0')::bigint END AS inserted,
        count(*) AS slots,
        coalesce(min(coalesce(restart_lsn, '0/0') - '0/0'), 0)::bigint AS reached
    FROM pg_replication_slots
    WHERE slot_type = 'physical'
) AS position


-- name: standbys_without_slot
-- The number of connected standbys, and other receivers of WAL, that have no replication slot: one row. No parameters.
SELECT greatest(0, count(*) - (SELECT count(*) FROM pg_replication_slots WHERE active))
FROM pg_stat_replication
