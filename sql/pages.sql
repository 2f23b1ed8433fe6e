-- The web pages: timelines and previews.


-- name: lane_rows
-- Starts and ends of the rows of a payload list that may be valid in a window, by start, as four 64-bit integers each.
-- Parameters: list bigint, version integer: where the rows of the list are; and those of `window_rows`, whose text replaces {rows}.
-- Expected plan: that of `window_rows`.
COPY (
SELECT major_iov, minor_iov, major_iov_end, minor_iov_end
FROM (
    {rows}
) AS iov
) TO STDOUT WITH (FORMAT binary)


-- name: lane_extent
-- The earliest start of a row of payload lists in a window, the latest one, and the latest end before the window's end of the lists'
-- last rows, as combined moments; null if there is none. The last row of a list may start before the window, and end in it.
-- Parameters: lists bigint[], versions integer[]: where the rows of the lists are; since, until numeric: the window; inclusive boolean:
--   whether ends are inclusive.
-- Expected plan: for each list Index Only Scans of payload_iov_lookup that stop at the first row.
-- The smallest difference of two moments is 10^-19, so that the window's bounds become the moments before them.
SELECT min(first.start) FILTER (WHERE first.start < %(until)s), max(last.comb_iov), max(last.finish) FILTER (WHERE last.finish < %(until)s)
FROM unnest(%(lists)s::bigint[], %(versions)s::integer[]) AS list (id, version)
CROSS JOIN LATERAL cdb_next_start(list.id, list.version, %(since)s - 0.0000000000000000001) AS first
LEFT JOIN LATERAL (
    SELECT found.comb_iov, cdb_end(found.major_iov_end, found.minor_iov_end, %(inclusive)s) AS finish
    FROM cdb_iov_at(list.id, list.version, %(until)s - 0.0000000000000000001) AS found
) AS last ON true


-- name: lane_following
-- The first start in a payload list after a window, as a combined moment, or null.
-- Parameters: list bigint, version integer: where the rows of the list are; until numeric: the end of the window.
-- Expected plan: an Index Only Scan of payload_iov_lookup that stops at the first row.
SELECT next.start FROM cdb_next_start(%(list)s, %(version)s, %(until)s - 0.0000000000000000001) AS next


-- name: lane_edges
-- The first and the last starts in payload lists, eight of each, as combined moments, with the place of the list from 1 on and the end
-- of the row; the end is null for the first rows.
-- Parameters: lists bigint[], versions integer[]: where the rows of the lists are; inclusive boolean: whether ends are inclusive.
-- Expected plan: for each row an Index Only Scan of payload_iov_lookup that stops at the first row.
SELECT list.place, edge.start, max(edge.finish)
FROM unnest(%(lists)s::bigint[], %(versions)s::integer[]) WITH ORDINALITY AS list (id, version, place)
CROSS JOIN LATERAL (
    WITH RECURSIVE early (start, number) AS (
        SELECT next.start, 1 FROM cdb_next_start(list.id, list.version, -1) AS next
        UNION ALL
        SELECT next.start, early.number + 1
        FROM early CROSS JOIN LATERAL cdb_next_start(list.id, list.version, early.start) AS next
        WHERE early.number < 8 AND early.start IS NOT NULL
    ),
    late (start, finish, number) AS (
        SELECT iov.comb_iov, cdb_end(iov.major_iov_end, iov.minor_iov_end, %(inclusive)s), 1
        FROM cdb_iov_at(list.id, list.version, 9223372036854775808) AS iov
        UNION ALL
        SELECT iov.comb_iov, cdb_end(iov.major_iov_end, iov.minor_iov_end, %(inclusive)s), late.number + 1
        FROM late CROSS JOIN LATERAL cdb_iov_at(list.id, list.version, late.start - 0.0000000000000000001) AS iov
        WHERE late.number < 8
    )
    SELECT early.start, NULL::numeric AS finish FROM early WHERE early.start IS NOT NULL
    UNION ALL
    SELECT late.start, late.finish FROM late
) AS edge
GROUP BY list.place, edge.start


-- name: shared_lists
-- The payload lists of a global tag, by payload type and name, and where the rows are that they share: the id of the tag that had the
-- list with these rows, the number of the change since which it had them, and that of the change since which it does not any more (null
-- if it still does); the name of the tag and its revision by the first change, whether this can be read, and whether the tag still
-- exists. The columns from the tag's id on are null for a list with rows of its own, and if the history of the tag was pruned.
-- Parameters: tag_id, number bigint: the lists are those after the change with that number (null: now).
WITH list AS (
    SELECT payload_type.name AS payload_type, list.name, list.base_list_id, list.base_version
    FROM "PayloadList" AS list
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    WHERE %(number)s::bigint IS NULL AND list.global_tag_id = %(tag_id)s
    UNION ALL
    SELECT member.payload_type, member.name, was.base_list_id, was.base_version
    FROM "PayloadListMembership" AS member
    LEFT JOIN LATERAL (
        SELECT list_version.base_list_id, list_version.base_version FROM "PayloadListVersion" AS list_version
        WHERE list_version.payload_list_id = member.payload_list_id AND list_version.number <= %(number)s
        ORDER BY list_version.number DESC
        LIMIT 1
    ) AS was ON true
    WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
        AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
)
SELECT list.payload_type, list.name, list.base_list_id IS NOT NULL, base.tag_id, base.first, base.before, change.global_tag,
    change.revision, change.has_history, EXISTS (SELECT FROM "GlobalTag" AS tag WHERE tag.id = base.tag_id)
FROM list
LEFT JOIN LATERAL (
    SELECT
        (SELECT number FROM "PayloadListVersion" WHERE payload_list_id = list.base_list_id AND version = list.base_version) AS first,
        (
            SELECT number FROM "PayloadListVersion"
            WHERE payload_list_id = list.base_list_id AND version > list.base_version
            ORDER BY version
            LIMIT 1
        ) AS before
) AS version ON true
LEFT JOIN LATERAL (
    SELECT member.tag_id, greatest(member.added_in, version.first) AS first, least(member.removed_in, version.before) AS before
    FROM "PayloadListMembership" AS member
    WHERE member.payload_list_id = list.base_list_id
        AND (member.removed_in IS NULL OR version.first IS NULL OR member.removed_in > version.first)
        AND (version.before IS NULL OR member.added_in < version.before)
    ORDER BY member.added_in DESC
    LIMIT 1
) AS base ON true
LEFT JOIN "GlobalTagChange" AS change ON change.number = base.first AND change.tag_id = base.tag_id
ORDER BY list.payload_type COLLATE "C"


-- name: payload_files
-- Payload files with a part of the URL or checksum, those of the present first: URL, checksum, whether an IOV of a payload
-- list has the file now.
-- Parameters: pattern text: for LIKE; most integer: the largest number of files.
-- Expected plan: Seq Scans of PayloadIOV and PayloadIOVHistory that stop after enough rows. A trigram index would be faster, but it would
-- make insertions slower, and not all servers of PostgreSQL have the extension.
SELECT payload_url, checksum, bool_or(is_present)
FROM (
    (
        SELECT payload_url, checksum, payload_list_id IS NOT NULL AS is_present
        FROM "PayloadIOV"
        WHERE payload_url LIKE %(pattern)s OR checksum LIKE %(pattern)s
        LIMIT 20 * %(most)s
    )
    UNION ALL
    (
        SELECT payload_url, checksum, false
        FROM "PayloadIOVHistory"
        WHERE row_start IS NULL AND (payload_url LIKE %(pattern)s OR checksum LIKE %(pattern)s)
        LIMIT 20 * %(most)s
    )
) AS found
GROUP BY payload_url, checksum
ORDER BY bool_or(is_present) DESC, payload_url COLLATE "C", checksum
LIMIT %(most)s


-- name: next_starts_of_lists
-- For each of some moments the next start in a payload list after it, as a combined moment, or null.
-- Parameters: lists bigint[]: the ids of payload lists, also of deleted ones; numbers bigint[]: the state of the list after the change
--   with this number, null for the present; moments numeric[]: the combined moments.
-- Expected plan: for each moment an Index Only Scan of payload_iov_lookup that stops at the first row.
SELECT next.start
FROM unnest(%(lists)s::bigint[], %(numbers)s::bigint[], %(moments)s::numeric[])
    WITH ORDINALITY AS given (list_id, number, moment, place)
LEFT JOIN LATERAL (
    SELECT list.rows_list_id, list.rows_version FROM "PayloadList" AS list
    WHERE list.id = given.list_id AND given.number IS NULL
    UNION ALL
    SELECT former.rows_list_id, former.rows_version FROM cdb_rows_after(given.list_id, given.number) AS former
    WHERE given.number IS NOT NULL
) AS source ON true
LEFT JOIN LATERAL cdb_next_start(source.rows_list_id, source.rows_version, given.moment) AS next ON true
ORDER BY given.place


-- name: page_start
-- The first start of the last rows of a payload list that start before a moment, as a combined moment; null if there are none.
-- Parameters: list bigint, version integer: where the rows of the list are; before numeric: the combined moment; size bigint: the number
--   of rows.
-- Expected plan: that of cdb_iovs_of, and a top-N sort.
SELECT min(found.comb_iov)
FROM (
    SELECT iov.comb_iov FROM cdb_iovs_of(%(list)s, %(version)s, 0, %(before)s) AS iov
    ORDER BY iov.comb_iov DESC
    LIMIT %(size)s
) AS found
