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
-- The rows of an export: the IOVs of payload lists, in the order of the lists, then by start.
-- Parameters: payload_types text[], rows_list_ids bigint[], rows_versions integer[]: the payload type of each list, and where its rows
--   are; since, until numeric: the window as combined moments, until exclusive; since_major, since_minor bigint: since in two parts;
--   inclusive boolean: whether ends are inclusive.
-- Each list has the rows that start in the window and, before them, the row that is valid at its first moment.
-- There is no sort of the whole result: lists are read in order, and the rows of each list in the order of the index, so that
-- the first row is sent at once. Only superseded rows are sorted.
-- Expected plan: for each list a Merge Append of an Index Only Scan Backward of payload_iov_lookup and a Sort of the history.
SELECT list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra AS revision
FROM unnest(%(payload_types)s::text[], %(rows_list_ids)s::bigint[], %(rows_versions)s::integer[])
    AS list (payload_type, id, version)
LEFT JOIN LATERAL (
    SELECT found.comb_iov AS start
    FROM cdb_iov_at(list.id, list.version, %(since)s) AS found
    WHERE (found.major_iov_end, found.minor_iov_end) > (%(since_major)s, %(since_minor)s)
        OR (%(inclusive)s AND (found.major_iov_end, found.minor_iov_end) = (%(since_major)s, %(since_minor)s))
        OR (found.major_iov_end, found.minor_iov_end) = (9223372036854775807, 9223372036854775807)
) AS valid_at_since ON true
CROSS JOIN LATERAL cdb_iovs_of(list.id, list.version, coalesce(valid_at_since.start, %(since)s), %(until)s) AS iov


-- name: export_csv
-- Send the rows of `export_rows`, which replace {rows}, to the client as CSV. Null is an unquoted empty
-- value; an empty text is quoted. Parameters: those of the rows; mode text: the mode of the ends, which each row names.
COPY (
SELECT exported.*, %(mode)s AS mode FROM (
{rows}
) AS exported
) TO STDOUT WITH (FORMAT csv, HEADER)


-- name: export_jsonl
-- Send the rows of `export_rows`, which replace {rows}, to the client as JSON objects, one per line.
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


-- name: import_filled
-- The rows of one payload type in the import file as those of `effect_rows`, each with its number, by start, for a list that has no other
-- rows. Parameters: payload_type text.
SELECT major_iov, minor_iov, major_iov_end, minor_iov_end, payload_url, checksum, size, extra, line
FROM cdb_import
WHERE payload_type COLLATE "C" = %(payload_type)s
ORDER BY major_iov, minor_iov


-- name: import_numbers
-- The numbers and the starts of the rows of one payload type in the import file, by start. Parameters: payload_type text.
SELECT line, major_iov, minor_iov
FROM cdb_import
WHERE payload_type COLLATE "C" = %(payload_type)s
ORDER BY major_iov, minor_iov, line


-- name: import_checksum_settings
-- Settings of this transaction for `import_checksums`, after `analysis_settings`: the planner chooses.
SELECT set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true)


-- name: import_checksums
-- The rows of one payload type in the import file whose payload URL has another checksum in another row or in any payload list of the
-- type: URL, number, checksum, and the others; by number. Rows without a checksum are left out.
-- Parameters: payload_type text; numbers bigint[]: those of the rows to be looked at.
-- Expected plan: for few rows a Bitmap Heap Scan by payload_iov_uses for each, for many a Hash Join.
WITH own AS MATERIALIZED (
    SELECT payload_url, line, checksum
    FROM cdb_import
    WHERE payload_type COLLATE "C" = %(payload_type)s AND line = ANY(%(numbers)s) AND checksum <> ''
),
known AS (
    SELECT payload_url, checksum
    FROM cdb_import
    WHERE payload_type COLLATE "C" = %(payload_type)s AND checksum <> ''
    UNION
    SELECT iov.payload_url, iov.checksum
    FROM "PayloadIOV" AS iov
    JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
    JOIN "PayloadType" AS kind ON kind.id = list.payload_type_id
    WHERE kind.name = %(payload_type)s AND iov.checksum <> '' AND iov.payload_url IN (SELECT payload_url FROM own)
)
SELECT own.payload_url, own.line, own.checksum, array_agg(known.checksum ORDER BY known.checksum)
FROM own
JOIN known ON known.payload_url = own.payload_url AND known.checksum <> own.checksum
GROUP BY own.payload_url, own.line, own.checksum
ORDER BY own.line


-- name: effect_start
-- A start that is up to a number of rows before a moment in a payload list as it is now: 0 if there are not so many.
-- Parameters: list bigint; since numeric: the moment; nearby integer: the number of rows.
-- Expected plan: Index Only Scan Backward by the starts of the list.
SELECT coalesce(
    (
        SELECT comb_iov
        FROM "PayloadIOV"
        WHERE payload_list_id = %(list)s AND comb_iov < %(since)s
        ORDER BY comb_iov DESC
        OFFSET %(nearby)s
        LIMIT 1
    ),
    0
)


-- name: effect_rows
-- The rows of a payload list in a version, by start. They are read up to where the client stops.
-- Parameters: list bigint, version integer; since, until numeric: the window. Placeholder: {rows}: `window_rows`.
-- Expected plan: that of `window_rows`, without a Sort.
SELECT major_iov, minor_iov, major_iov_end, minor_iov_end, payload_url, checksum, size, extra, NULL
FROM (
    {rows}
) AS iov


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
