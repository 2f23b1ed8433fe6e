-- Lookups in the past. The tables are described in cdb_rest/models/history.py.

-- The version of a payload list after the change with that number: that of its last change until then, or 0.
-- It is a single SELECT, so that it becomes part of the statements that use it. So is cdb_history_entry. OFFSET 0 keeps it a
-- subquery: it is computed once for each list, and an argument that contains a subquery would prevent the same for
-- cdb_history_entry.
CREATE FUNCTION cdb_version_at(list_id bigint, change_number bigint) RETURNS SETOF integer
LANGUAGE sql STABLE ROWS 1
AS $function$
    SELECT coalesce((
        SELECT list_version.version
        FROM "PayloadListVersion" AS list_version
        WHERE list_version.payload_list_id = list_id AND list_version.number <= change_number
        ORDER BY list_version.number DESC
        LIMIT 1
    ), 0)
    OFFSET 0
$function$;

-- The area of the past that contains a moment in a version of a payload list: one row, or none if there is none.
-- The nodes in which it can be are the version (counted from 1) and its ancestors in the binary tree. The lowest ones come
-- first, because short-lived areas are there. No node is higher than the highest one of the list.
CREATE FUNCTION cdb_history_entry(list_id bigint, version integer, moment numeric) RETURNS SETOF "PayloadIOVHistory"
LANGUAGE sql STABLE ROWS 1
AS $function$
    SELECT area.*
    FROM (
        SELECT history.node AS highest FROM "PayloadIOVHistory" AS history
        WHERE history.payload_list_id = list_id ORDER BY history.node DESC LIMIT 1
    ) AS tree
    -- In the SELECT list, generate_series is not stored before it is read.
    CROSS JOIN LATERAL (SELECT generate_series(0, 32 - position(B'1' IN tree.highest::bit(32))) AS level) AS height
    CROSS JOIN LATERAL (SELECT ((version + 1) >> level | 1) << level AS node) AS ancestor
    CROSS JOIN LATERAL (
        SELECT history.* FROM "PayloadIOVHistory" AS history
        WHERE history.payload_list_id = list_id AND history.node = ancestor.node AND history.comb_iov <= moment
        ORDER BY history.comb_iov DESC
        LIMIT 1
    ) AS area
    WHERE abs(version + 1 - ancestor.node) < 1 << level
        AND area.added_in <= version AND area.removed_in > version AND (area.until IS NULL OR area.until > moment)
    LIMIT 1
$function$;

-- The lookup after the change with that number: the statement of cdb_lookup, with the row of each list in its version of then.
-- The present row at the moment is the one, unless it is younger; then the moment was in an area of the past. If that belonged
-- to a row that only became shorter, this is the row that started at row_start, in the present or in the past.
CREATE FUNCTION cdb_lookup_at(
    change_number bigint, of_tag bigint, major bigint, minor bigint, only_valid boolean, inclusive boolean,
    as_objects boolean
) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    RETURN (
SELECT '[' || coalesce(string_agg(
    CASE WHEN as_objects THEN
        json_build_object(
            'payload_type_name', member.payload_type, 'payload_url', iov.payload_url, 'checksum', iov.checksum,
            'size', iov.size, 'major_iov', iov.major_iov, 'minor_iov', iov.minor_iov,
            'major_iov_end', iov.major_iov_end, 'minor_iov_end', iov.minor_iov_end, 'revision', iov.extra
        )
    ELSE
        json_build_array(
            member.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
            iov.major_iov_end, iov.minor_iov_end, iov.extra
        )
    END::text,
    ',' ORDER BY member.payload_type COLLATE "C"
) FILTER (WHERE
    NOT only_valid
    OR (iov.major_iov_end, iov.minor_iov_end) > (major, minor)
    OR (inclusive AND (iov.major_iov_end, iov.minor_iov_end) = (major, minor))
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
), '') || ']'
FROM "PayloadListMembership" AS member
CROSS JOIN LATERAL cdb_version_at(member.payload_list_id, change_number) AS list_version (number)
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM (
        SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, added_in
        FROM "PayloadIOV"
        WHERE payload_list_id = member.payload_list_id AND comb_iov <= moment
        ORDER BY comb_iov DESC NULLS LAST
        LIMIT 1
    ) AS present
    WHERE present.added_in <= list_version.number
    UNION ALL
    SELECT former.payload_url, former.checksum, former.size, former.major_iov, former.minor_iov, former.major_iov_end,
        former.minor_iov_end, former.extra
    FROM cdb_history_entry(member.payload_list_id, list_version.number, moment) AS area
    CROSS JOIN LATERAL (
        SELECT area.payload_url, area.checksum, area.size, area.major_iov, area.minor_iov, area.major_iov_end,
            area.minor_iov_end, area.extra
        WHERE area.row_start IS NULL
        UNION ALL
        SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOV"
        WHERE payload_list_id = member.payload_list_id AND comb_iov = area.row_start AND added_in <= list_version.number
        UNION ALL
        SELECT superseded.payload_url, superseded.checksum, superseded.size, superseded.major_iov, superseded.minor_iov,
            superseded.major_iov_end, superseded.minor_iov_end, superseded.extra
        FROM cdb_history_entry(member.payload_list_id, list_version.number, area.row_start) AS superseded
        LIMIT 1
    ) AS former
    LIMIT 1
) AS iov
WHERE member.tag_id = of_tag AND member.added_in <= change_number
    AND (member.removed_in IS NULL OR member.removed_in > change_number)
    );
END
$function$;

-- The row of a payload list that has a moment in a version, and the next start after the moment in that version (null if there
-- is none). The row's start is null if the list has no row there; then area_end is the first start after the moment.
CREATE FUNCTION cdb_area_at(
    list_id bigint, version integer, moment numeric,
    OUT row_start numeric, OUT major_iov_end bigint, OUT minor_iov_end bigint, OUT area_end numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
DECLARE
    piece record;
BEGIN
    area_end := moment;
    -- A row's area of then may consist of its present area and of parts that it lost later, one after the other.
    LOOP
        SELECT part.row_start, part.until INTO piece FROM (
            SELECT present.comb_iov AS row_start, (
                SELECT following.comb_iov FROM "PayloadIOV" AS following
                WHERE following.payload_list_id = list_id AND following.comb_iov > area_end
                ORDER BY following.comb_iov NULLS FIRST LIMIT 1
            ) AS until
            FROM (
                SELECT comb_iov, added_in FROM "PayloadIOV"
                WHERE payload_list_id = list_id AND comb_iov <= area_end ORDER BY comb_iov DESC NULLS LAST LIMIT 1
            ) AS present
            WHERE present.added_in <= version
            UNION ALL
            SELECT coalesce(area.row_start, area.comb_iov), area.until FROM cdb_history_entry(list_id, version, area_end) AS area
        ) AS part
        LIMIT 1;
        IF NOT FOUND THEN
            SELECT min(iov.start) INTO area_end FROM (
                SELECT comb_iov AS start FROM "PayloadIOV"
                WHERE payload_list_id = list_id AND comb_iov > moment AND added_in <= version
                UNION ALL
                SELECT comb_iov FROM "PayloadIOVHistory" AS history
                WHERE history.payload_list_id = list_id AND history.comb_iov > moment AND history.row_start IS NULL
                    AND history.added_in <= version AND history.removed_in > version
            ) AS iov;
            RETURN;
        END IF;
        EXIT WHEN piece.row_start <> row_start;
        row_start := piece.row_start;
        area_end := piece.until;
        EXIT WHEN area_end IS NULL;
    END LOOP;
    SELECT iov.major_iov_end, iov.minor_iov_end INTO major_iov_end, minor_iov_end FROM (
        SELECT present.major_iov_end, present.minor_iov_end FROM "PayloadIOV" AS present
        WHERE present.payload_list_id = list_id AND present.comb_iov = row_start AND present.added_in <= version
        UNION ALL
        SELECT area.major_iov_end, area.minor_iov_end FROM cdb_history_entry(list_id, version, row_start) AS area
    ) AS iov
    LIMIT 1;
END
$function$;

-- The window of cdb_window after the change with that number.
CREATE FUNCTION cdb_window_at(
    change_number bigint, of_tag bigint, major bigint, minor bigint, only_valid boolean, inclusive boolean,
    OUT since numeric, OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT
        max(CASE WHEN edge.over > moment THEN found.row_start ELSE edge.over END),
        nullif(min(CASE WHEN edge.over > moment THEN edge.over ELSE found.area_end END), 'Infinity')
    INTO since, until
    FROM "PayloadListMembership" AS member
    CROSS JOIN LATERAL cdb_version_at(member.payload_list_id, change_number) AS list_version (number)
    CROSS JOIN LATERAL cdb_area_at(member.payload_list_id, list_version.number, moment) AS found
    CROSS JOIN LATERAL (
        SELECT CASE WHEN found.row_start IS NOT NULL THEN least(
            CASE
                WHEN NOT only_valid OR (found.major_iov_end, found.minor_iov_end) = (9223372036854775807, 9223372036854775807)
                    THEN 'Infinity'
                ELSE found.major_iov_end + (found.minor_iov_end + inclusive::int::numeric) * 0.0000000000000000001
            END,
            found.area_end
        ) END AS over
    ) AS edge
    WHERE member.tag_id = of_tag AND member.added_in <= change_number
        AND (member.removed_in IS NULL OR member.removed_in > change_number);
END
$function$;

-- A lookup in the past with what its response needs, in one round trip. Either asked_revision or asked_time is given.
-- revision is null if there is no such change. has_history says whether the rows of then are still there, and is_deleted whether
-- the change deleted the tag. If the version is one that the client knows, or the rows cannot be read, the answer is null.
CREATE FUNCTION cdb_answer_at(
    tag_name text, asked_revision bigint, asked_time timestamptz, major bigint, minor bigint, only_valid boolean,
    inclusive boolean, as_objects boolean, known text[], with_window boolean,
    OUT revision bigint, OUT version text, OUT has_history boolean, OUT is_deleted boolean, OUT answer text,
    OUT since numeric, OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $function$
DECLARE
    found_change "GlobalTagChange"%ROWTYPE;
BEGIN
    IF asked_revision IS NOT NULL THEN
        SELECT change.* INTO found_change FROM "GlobalTagChange" AS change
        WHERE change.global_tag = tag_name AND change.revision = asked_revision;
    ELSIF asked_time <= statement_timestamp() THEN
        SELECT change.* INTO found_change FROM "GlobalTagChange" AS change
        WHERE change.global_tag = tag_name AND change.created <= asked_time
        ORDER BY change.created DESC, change.revision DESC
        LIMIT 1;
    END IF;
    IF found_change.id IS NULL THEN
        RETURN;
    END IF;
    revision := found_change.revision;
    version := revision || '-' || to_hex((extract(epoch FROM found_change.created) * 1000000)::bigint);
    has_history := found_change.has_history;
    is_deleted := found_change.action = 'delete';
    IF NOT has_history OR is_deleted OR version = ANY(known) OR '*' = ANY(known) THEN
        RETURN;
    END IF;
    answer := cdb_lookup_at(
        found_change.number, found_change.tag_id, major, minor, only_valid, inclusive, as_objects
    );
    IF with_window THEN
        SELECT answer_window.since, answer_window.until INTO since, until
        FROM cdb_window_at(found_change.number, found_change.tag_id, major, minor, only_valid, inclusive) AS answer_window;
    END IF;
END
$function$;
