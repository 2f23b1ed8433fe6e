-- Other implementations of the lookup, and their indexes.


-- name: strategy_sql_distinct
-- A strategy for comparison with the lookup: DISTINCT ON keeps the first of each list's candidates, latest start first.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: every entry at or before the moment is read and sorted, for one row of each list.
SELECT name, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
FROM (
    SELECT DISTINCT ON (iov.payload_list_id) payload_type.name, iov.*
    FROM "GlobalTag" AS tag
    JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.id
    WHERE tag.name = %(tag)s AND iov.comb_iov <= %(major)s + %(minor)s * 0.0000000000000000001
    ORDER BY iov.payload_list_id, iov.comb_iov DESC
) AS latest
ORDER BY name COLLATE "C"


-- name: strategy_sql_group
-- A strategy for comparison with the lookup: GROUP BY finds the latest start of each list, a join with the same table its row.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: the start of every entry at or before the moment is read, then one entry for each list.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM (
    SELECT list.id AS payload_list_id, list.payload_type_id, max(candidate.comb_iov) AS comb_iov
    FROM "GlobalTag" AS tag
    JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    JOIN "PayloadIOV" AS candidate ON candidate.payload_list_id = list.id
    WHERE tag.name = %(tag)s AND candidate.comb_iov <= %(major)s + %(minor)s * 0.0000000000000000001
    GROUP BY list.id
) AS latest
JOIN "PayloadIOV" AS iov ON iov.payload_list_id = latest.payload_list_id AND iov.comb_iov = latest.comb_iov
JOIN "PayloadType" AS payload_type ON payload_type.id = latest.payload_type_id
ORDER BY payload_type.name COLLATE "C"


-- name: strategy_sql_lateral_pair
-- A strategy for comparison with the lookup: LATERAL, with major and minor compared separately, joined with OR.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: an Index Scan of payload_iov_strategy_moment for each list. An OR cannot be an Index Cond, so the scan begins at
--   the list's latest row, and a Filter removes rows until the moment is reached.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM "GlobalTag" AS tag
JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND (major_iov < %(major)s OR (major_iov = %(major)s AND minor_iov <= %(minor)s))
    ORDER BY major_iov DESC, minor_iov DESC
    LIMIT 1
) AS iov
WHERE tag.name = %(tag)s
ORDER BY payload_type.name COLLATE "C"


-- name: strategy_sql_lateral_row
-- A strategy for comparison with the lookup: LATERAL, with the moment compared as a row of two columns.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: an Index Scan of payload_iov_strategy_moment for each list, with an Index Cond only, that stops at its first
--   row; the columns of the result are read from the table.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM "GlobalTag" AS tag
JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND (major_iov, minor_iov) <= (%(major)s, %(minor)s)
    ORDER BY major_iov DESC, minor_iov DESC
    LIMIT 1
) AS iov
WHERE tag.name = %(tag)s
ORDER BY payload_type.name COLLATE "C"


-- name: strategy_sql_lateral_asc
-- A strategy for comparison with the lookup: LATERAL, like the service's own, but with a backward scan of an ascending index.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: an Index Only Scan Backward of payload_iov_strategy_ascending for each list, with an Index Cond only.
-- Without NULLS LAST, DESC means NULLS FIRST, which matches a backward scan of this index, but not the lookup's index.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM "GlobalTag" AS tag
JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND comb_iov <= %(major)s + %(minor)s * 0.0000000000000000001
    ORDER BY comb_iov DESC
    LIMIT 1
) AS iov
WHERE tag.name = %(tag)s
ORDER BY payload_type.name COLLATE "C"


-- name: payload_iov_indexes
-- The indexes of the table PayloadIOV: name, size in bytes, whether it is complete, and whether it is being built. No parameters.
-- An incomplete index that is not being built was left by an interrupted CREATE INDEX CONCURRENTLY.
SELECT relname, pg_relation_size(pg_class.oid), indisvalid,
    EXISTS (SELECT FROM pg_stat_progress_create_index WHERE index_relid = pg_class.oid)
FROM pg_index
JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = '"PayloadIOV"'::regclass


-- name: create_strategy_moment_index
-- Create the index of the strategies sql_lateral_pair and sql_lateral_row. It is for comparisons only, so no migration
-- creates it. No parameters.
-- Like the index of the load study (docs/load-tests.md), it does not include the columns of the result.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payload_iov_strategy_moment
ON "PayloadIOV" (payload_list_id, major_iov DESC, minor_iov DESC)


-- name: create_strategy_ascending_index
-- Create the index of the strategy sql_lateral_asc. It is for comparisons only, so no migration creates it. No parameters.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payload_iov_strategy_ascending
ON "PayloadIOV" (payload_list_id, comb_iov)
INCLUDE (payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra)


-- name: drop_strategy_moment_index
-- Drop the index of `create_strategy_moment_index`, complete or incomplete. No parameters.
DROP INDEX CONCURRENTLY IF EXISTS payload_iov_strategy_moment


-- name: drop_strategy_ascending_index
-- Drop the index of `create_strategy_ascending_index`, complete or incomplete. No parameters.
DROP INDEX CONCURRENTLY IF EXISTS payload_iov_strategy_ascending
