-- Export and import, and seeding.


-- name: missing_payload_type
-- The first name in byte order that no payload type has; no row if there is none. Parameters: names text[].
-- Expected plan: an Index Only Scan of the names for each of them.
SELECT wanted.name
FROM unnest(%(names)s::text[]) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM "PayloadType" AS payload_type WHERE payload_type.name = wanted.name)
ORDER BY wanted.name COLLATE "C"
LIMIT 1


-- name: export_settings
-- Set the statement timeout of this transaction, and make its statements use indexes in order instead of sorting.
-- Parameters: milliseconds text: the timeout (null: unchanged).
SELECT set_config('statement_timeout', coalesce(%(milliseconds)s, current_setting('statement_timeout')), true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)


-- name: export_rows
-- The rows of an export: the IOVs of a global tag's payload lists, by payload type name in byte order, then by start.
-- Parameters: tag_id bigint; payload_types text[] (null: all); since, until numeric: the window as combined moments, until
--   exclusive; since_major, since_minor bigint: since in two parts; inclusive boolean: whether ends are inclusive.
-- Each list has the rows that start in the window and, before them, the row that is valid at its first moment.
-- There is no sort of the whole result: lists are read in order, and the rows of each list in the order of the index, so that
-- the first row is sent at once. This requires a nested loop in one process; `export_settings` disables the alternatives.
-- Expected plan: for each list an Index Only Scan Backward of payload_iov_lookup without Filter and without Sort.
SELECT list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra AS revision
FROM (
    SELECT list.id, payload_type.name AS payload_type, (
        SELECT CASE
            WHEN (major_iov_end, minor_iov_end) > (%(since_major)s, %(since_minor)s)
                OR (%(inclusive)s AND (major_iov_end, minor_iov_end) = (%(since_major)s, %(since_minor)s))
                OR (major_iov_end, minor_iov_end) = (9223372036854775807, 9223372036854775807)
            THEN comb_iov
        END
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND comb_iov <= %(since)s
        ORDER BY comb_iov DESC NULLS LAST
        LIMIT 1
    ) AS valid_at_since
    FROM "PayloadList" AS list
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    WHERE list.global_tag_id = %(tag_id)s
        AND (%(payload_types)s::text[] IS NULL OR payload_type.name = ANY(%(payload_types)s::text[]))
    ORDER BY payload_type.name COLLATE "C"
) AS list
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND comb_iov >= coalesce(list.valid_at_since, %(since)s) AND comb_iov < %(until)s
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov


-- name: export_past_rows
-- The rows of an export of the past: those of `export_rows`, for the payload lists and their versions after a change.
-- Parameters: tag_id, number bigint: tag and change; payload_types text[] (null: all); and the window of `export_rows`.
-- The row that was valid at the first moment of the window is found as by the function cdb_lookup_at.
-- Lists are read in order. The present rows of a list have the order of the index; only the superseded ones are sorted.
-- Expected plan: for each list a Merge Append of an Index Only Scan Backward of payload_iov_lookup and a Sort.
SELECT list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra AS revision
FROM (
    SELECT member.payload_list_id AS id, member.payload_type, list_version.number AS version, (
        SELECT CASE
            WHEN (latest.major_iov_end, latest.minor_iov_end) > (%(since_major)s, %(since_minor)s)
                OR (%(inclusive)s AND (latest.major_iov_end, latest.minor_iov_end) = (%(since_major)s, %(since_minor)s))
                OR (latest.major_iov_end, latest.minor_iov_end) = (9223372036854775807, 9223372036854775807)
            THEN latest.comb_iov
        END
        FROM (
            SELECT present.comb_iov, present.major_iov_end, present.minor_iov_end
            FROM (
                SELECT comb_iov, major_iov_end, minor_iov_end, added_in
                FROM "PayloadIOV"
                WHERE payload_list_id = member.payload_list_id AND comb_iov <= %(since)s
                ORDER BY comb_iov DESC NULLS LAST
                LIMIT 1
            ) AS present
            WHERE present.added_in <= list_version.number
            UNION ALL
            SELECT former.comb_iov, former.major_iov_end, former.minor_iov_end
            FROM cdb_history_entry(member.payload_list_id, list_version.number, %(since)s) AS area
            CROSS JOIN LATERAL (
                SELECT area.comb_iov, area.major_iov_end, area.minor_iov_end WHERE area.row_start IS NULL
                UNION ALL
                SELECT comb_iov, major_iov_end, minor_iov_end
                FROM "PayloadIOV"
                WHERE payload_list_id = member.payload_list_id AND comb_iov = area.row_start
                    AND added_in <= list_version.number
                UNION ALL
                SELECT superseded.comb_iov, superseded.major_iov_end, superseded.minor_iov_end
                FROM cdb_history_entry(member.payload_list_id, list_version.number, area.row_start) AS superseded
                LIMIT 1
            ) AS former
            LIMIT 1
        ) AS latest
    ) AS valid_at_since
    FROM "PayloadListMembership" AS member
    CROSS JOIN LATERAL cdb_version_at(member.payload_list_id, %(number)s) AS list_version (number)
    WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
        AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
        AND (%(payload_types)s::text[] IS NULL OR member.payload_type = ANY(%(payload_types)s::text[]))
    ORDER BY member.payload_type COLLATE "C"
) AS list
CROSS JOIN LATERAL (
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND added_in <= list.version
            AND comb_iov >= coalesce(list.valid_at_since, %(since)s) AND comb_iov < %(until)s
        ORDER BY comb_iov ASC NULLS FIRST
    )
    UNION ALL
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = list.id AND row_start IS NULL AND added_in <= list.version AND removed_in > list.version
            AND comb_iov >= coalesce(list.valid_at_since, %(since)s) AND comb_iov < %(until)s
        ORDER BY comb_iov ASC NULLS FIRST
    )
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov


-- name: export_csv
-- Send the rows of `export_rows` or `export_past_rows`, which replace {rows}, to the client as CSV. Null is an unquoted empty
-- value; an empty text is quoted. Parameters: those of the rows; mode text: the mode of the ends, which each row names.
COPY (
SELECT exported.*, %(mode)s AS mode FROM (
{rows}
) AS exported
) TO STDOUT WITH (FORMAT csv, HEADER)


-- name: export_jsonl
-- Send the rows of `export_rows` or `export_past_rows`, which replace {rows}, to the client as JSON objects, one per line.
-- Parameters: those of `export_csv`.
-- The text format of COPY would double backslashes. The CSV format leaves the lines unchanged, because its quote and
-- delimiter are characters that JSON text never contains.
COPY (
SELECT row_to_json(named) FROM (
SELECT exported.*, %(mode)s AS mode FROM (
{rows}
) AS exported
) AS named
) TO STDOUT WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')


-- name: create_import_table
-- Create a temporary table for the rows of an import file. No parameters.
-- `line` is the number of the row, `has_end` whether it has an end of its own, and `is_open` whether the file says that it is open.
-- Reading a large file takes long, so there is no statement timeout.
SET LOCAL statement_timeout = 0;
CREATE TEMPORARY TABLE cdb_import (
    line bigint, payload_type text, payload_url text, checksum text, size bigint, extra text, major_iov bigint, minor_iov bigint,
    major_iov_end bigint, minor_iov_end bigint, has_end boolean, is_open boolean
) ON COMMIT DROP


-- name: copy_import
-- Copy the rows of an import file from the client, as tab-separated text. No parameters.
COPY cdb_import FROM STDIN


-- name: index_import
-- Index the rows of the import file by payload type and start. No parameters.
CREATE INDEX ON cdb_import (payload_type COLLATE "C", major_iov, minor_iov, line);
ANALYZE cdb_import


-- name: import_sorted
-- All rows of the import file by payload type and start: what decides whether they are a set. No parameters.
SELECT payload_type, line, major_iov, minor_iov, major_iov_end, minor_iov_end, has_end
FROM cdb_import
ORDER BY payload_type COLLATE "C", major_iov, minor_iov, line


-- name: import_newest_first
-- The rows of one payload type in the import file by descending start. Parameters: payload_type text.
SELECT line, payload_url, checksum, size, extra, major_iov, minor_iov, major_iov_end, minor_iov_end, has_end, is_open
FROM cdb_import
WHERE payload_type COLLATE "C" = %(payload_type)s
ORDER BY major_iov DESC, minor_iov DESC


-- name: import_in_order
-- The rows of one payload type in the import file as they follow one another there. Parameters: payload_type text.
SELECT line, payload_url, checksum, size, extra, major_iov, minor_iov, major_iov_end, minor_iov_end, has_end, is_open
FROM cdb_import
WHERE payload_type COLLATE "C" = %(payload_type)s
ORDER BY line


-- name: import_into_empty_list
-- Insert the rows of one payload type in the import file into an empty payload list.
-- Parameters: payload_type text, list_id bigint; version integer: that of the list after the change.
-- The rows are ordered by descending start, as in the lookup's index, so that its pages are filled one after the other.
INSERT INTO "PayloadIOV" (
    payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id, added_in
)
SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, %(list_id)s, %(version)s
FROM cdb_import
WHERE payload_type COLLATE "C" = %(payload_type)s
ORDER BY major_iov DESC, minor_iov DESC


-- name: copy_payload_iovs
-- Copy payload IOVs with their payload lists from the client, as tab-separated text. No parameters.
COPY "PayloadIOV" (
    payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id, added_in
) FROM STDIN


-- name: refresh_after_seeding
-- Mark the new pages as all-visible, for index-only scans, and update the planner's statistics. No parameters.
VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"
