-- Rows of payload lists in a version. Each function is a single SELECT, so that it becomes part of the statements that use it.
-- The version 2147483646 stands for the present: all rows that the list has now, without a look into the history.

-- The payload list, and its version, that has the rows of a payload list after the change with that number. Of a shared list it is
-- its base, otherwise the list itself, in the version of its last change until then, or 0.
-- OFFSET 0 keeps it a subquery: it is computed once for each list, and arguments that contain a subquery would prevent the other
-- functions from becoming part of a statement.
CREATE FUNCTION cdb_rows_after(list_id bigint, change_number bigint) RETURNS TABLE (rows_list_id bigint, rows_version integer)
LANGUAGE sql STABLE ROWS 1
AS $function$
    SELECT coalesce(found.base_list_id, list_id), coalesce(found.base_version, found.version)
    FROM (
        (
            SELECT list_version.base_list_id, list_version.base_version, list_version.version
            FROM "PayloadListVersion" AS list_version
            WHERE list_version.payload_list_id = list_id AND list_version.number <= change_number
            ORDER BY list_version.number DESC
            LIMIT 1
        )
        UNION ALL
        SELECT NULL, NULL, 0
        LIMIT 1
    ) AS found
    OFFSET 0
$function$;

-- The row of a payload list with the latest start at or before a moment, in a version: one row, or none. added_in is the version since
-- which the moment belongs to this row.
-- The present row at the moment is the one, unless it is younger; then the moment was in an area of the past. If that belonged to a row
-- that only became shorter, this is the row that started at row_start, in the present or in the past.
-- Expected plan: an Index Only Scan of payload_iov_lookup that stops at its first row, and a Filter of this row by its version.
CREATE FUNCTION cdb_iov_at(list_id bigint, version integer, moment numeric) RETURNS TABLE (
    comb_iov numeric, payload_url varchar, checksum varchar, size bigint, extra varchar, major_iov bigint, minor_iov bigint,
    major_iov_end bigint, minor_iov_end bigint, added_in integer
)
LANGUAGE sql STABLE ROWS 1
AS $function$
    SELECT present.*
    FROM (
        SELECT iov.comb_iov, iov.payload_url, iov.checksum, iov.size, iov.extra, iov.major_iov, iov.minor_iov, iov.major_iov_end,
            iov.minor_iov_end, iov.added_in
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list_id AND iov.comb_iov <= moment
        ORDER BY iov.comb_iov DESC NULLS LAST
        LIMIT 1
    ) AS present
    WHERE present.added_in <= version
    UNION ALL
    SELECT former.*, area.added_in
    FROM cdb_history_entry(list_id, version, moment) AS area
    CROSS JOIN LATERAL (
        SELECT area.comb_iov, area.payload_url, area.checksum, area.size, area.extra, area.major_iov, area.minor_iov,
            area.major_iov_end, area.minor_iov_end
        WHERE area.row_start IS NULL
        UNION ALL
        SELECT iov.comb_iov, iov.payload_url, iov.checksum, iov.size, iov.extra, iov.major_iov, iov.minor_iov, iov.major_iov_end,
            iov.minor_iov_end
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list_id AND iov.comb_iov = area.row_start AND iov.added_in <= version
        UNION ALL
        SELECT superseded.comb_iov, superseded.payload_url, superseded.checksum, superseded.size, superseded.extra,
            superseded.major_iov, superseded.minor_iov, superseded.major_iov_end, superseded.minor_iov_end
        FROM cdb_history_entry(list_id, version, area.row_start) AS superseded
        LIMIT 1
    ) AS former
    WHERE version < 2147483646
    LIMIT 1
$function$;

-- The next start after a moment in a payload list, in a version: one row, which is null if there is none.
-- Expected plan: an Index Only Scan of payload_iov_lookup that stops at the first row that is old enough, and of the past one scan for
-- each node that can contain the version.
CREATE FUNCTION cdb_next_start(list_id bigint, version integer, moment numeric) RETURNS TABLE (start numeric)
LANGUAGE sql STABLE ROWS 1
AS $function$
    SELECT min(upcoming.start)
    FROM (
        (
            SELECT iov.comb_iov AS start
            FROM "PayloadIOV" AS iov
            WHERE iov.payload_list_id = list_id AND iov.comb_iov > moment AND iov.added_in <= version
            ORDER BY iov.comb_iov NULLS FIRST
            LIMIT 1
        )
        UNION ALL
        SELECT area.comb_iov
        FROM (
            SELECT history.node AS highest FROM "PayloadIOVHistory" AS history
            WHERE history.payload_list_id = list_id ORDER BY history.node DESC LIMIT 1
        ) AS tree
        CROSS JOIN LATERAL (SELECT generate_series(0, 32 - position(B'1' IN tree.highest::bit(32))) AS level) AS height
        CROSS JOIN LATERAL (SELECT ((version + 1) >> level | 1) << level AS node) AS ancestor
        CROSS JOIN LATERAL (
            SELECT history.comb_iov FROM "PayloadIOVHistory" AS history
            WHERE history.payload_list_id = list_id AND history.node = ancestor.node AND history.comb_iov > moment
                AND history.row_start IS NULL AND history.added_in <= version AND history.removed_in > version
            ORDER BY history.comb_iov
            LIMIT 1
        ) AS area
        WHERE version < 2147483646 AND abs(version + 1 - ancestor.node) < 1 << level
    ) AS upcoming
$function$;

-- The rows of a payload list in a version that start from one moment up to another, without this one, by start.
-- Expected plan: a Merge Append of an Index Only Scan Backward of payload_iov_lookup and of a Sort of the history.
CREATE FUNCTION cdb_iovs_of(list_id bigint, version integer, first numeric, before numeric) RETURNS TABLE (
    comb_iov numeric, payload_url varchar, checksum varchar, size bigint, extra varchar, major_iov bigint, minor_iov bigint,
    major_iov_end bigint, minor_iov_end bigint
)
LANGUAGE sql STABLE
AS $function$
    (
        SELECT iov.comb_iov, iov.payload_url, iov.checksum, iov.size, iov.extra, iov.major_iov, iov.minor_iov, iov.major_iov_end,
            iov.minor_iov_end
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list_id AND iov.added_in <= version AND iov.comb_iov >= first AND iov.comb_iov < before
        ORDER BY iov.comb_iov ASC NULLS FIRST
    )
    UNION ALL
    (
        SELECT history.comb_iov, history.payload_url, history.checksum, history.size, history.extra, history.major_iov,
            history.minor_iov, history.major_iov_end, history.minor_iov_end
        FROM "PayloadIOVHistory" AS history
        WHERE version < 2147483646 AND history.payload_list_id = list_id AND history.row_start IS NULL
            AND history.added_in <= version AND history.removed_in > version
            AND history.comb_iov >= first AND history.comb_iov < before
        ORDER BY history.comb_iov ASC NULLS FIRST
    )
    ORDER BY 1 ASC NULLS FIRST
$function$;

-- The interval around a moment in which the answer for a payload list in a version is the same, as combined moments: one row. since is
-- null if no row has started; until is null if no row follows, and infinite if the row that is in force has no end.
CREATE FUNCTION cdb_window_part(
    list_id bigint, version integer, moment numeric, only_valid boolean, inclusive boolean
) RETURNS TABLE (since numeric, until numeric)
LANGUAGE sql STABLE ROWS 1
AS $function$
    SELECT CASE WHEN edge.over > moment THEN found.comb_iov ELSE edge.over END,
        CASE WHEN edge.over > moment THEN edge.over ELSE upcoming.start END
    FROM cdb_next_start(list_id, version, moment) AS upcoming
    LEFT JOIN LATERAL cdb_iov_at(list_id, version, moment) AS found ON true
    CROSS JOIN LATERAL (
        SELECT least(
            CASE
                WHEN found.comb_iov IS NULL THEN NULL
                WHEN NOT only_valid OR (found.major_iov_end, found.minor_iov_end) = (9223372036854775807, 9223372036854775807)
                    THEN 'Infinity'
                ELSE found.major_iov_end + (found.minor_iov_end + inclusive::int::numeric) * 0.0000000000000000001
            END,
            upcoming.start
        ) AS over
    ) AS edge
$function$;
