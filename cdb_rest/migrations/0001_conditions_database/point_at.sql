-- What a global tag has for a payload type at a moment, after the change with that number (null: now), and since which change.
-- began is the number of the change since which the row, or the lack of one, is there; null if it is not recorded. list_id is null
-- if the tag had no payload list of the type. iov_id is null if no row of the list started until the moment. The row is found as by
-- cdb_lookup_at.
CREATE FUNCTION cdb_point_at(
    of_tag bigint, of_type text, change_number bigint, major bigint, minor bigint, inclusive boolean,
    OUT list_id bigint, OUT list_name text, OUT began bigint, OUT iov_id bigint, OUT payload_url text, OUT checksum text,
    OUT size bigint, OUT extra text, OUT major_iov bigint, OUT minor_iov bigint, OUT major_iov_end bigint,
    OUT minor_iov_end bigint, OUT is_valid boolean
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $function$
#variable_conflict use_column
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
    list_version integer;
    joined bigint;
    area_version integer;
    shape record;
BEGIN
    IF change_number IS NULL THEN
        SELECT list.id, list.name, list.version, (
            SELECT max(member.added_in) FROM "PayloadListMembership" AS member
            WHERE member.payload_list_id = list.id AND member.removed_in IS NULL
        )
        INTO list_id, list_name, list_version, joined
        FROM "PayloadList" AS list
        JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
        WHERE list.global_tag_id = of_tag AND payload_type.name = of_type;
    ELSE
        SELECT member.payload_list_id, member.name, found.version, member.added_in
        INTO list_id, list_name, list_version, joined
        FROM "PayloadListMembership" AS member
        CROSS JOIN LATERAL cdb_version_at(member.payload_list_id, change_number) AS found (version)
        WHERE member.tag_id = of_tag AND member.payload_type = of_type AND member.added_in <= change_number
            AND (member.removed_in IS NULL OR member.removed_in > change_number);
    END IF;
    IF list_id IS NULL THEN
        SELECT max(member.removed_in) INTO began FROM "PayloadListMembership" AS member
        WHERE member.tag_id = of_tag AND member.payload_type = of_type
            AND (change_number IS NULL OR member.removed_in <= change_number);
        RETURN;
    END IF;
    SELECT iov.* INTO shape
    FROM (
        SELECT present.*
        FROM (
            SELECT iov.added_in, iov.id, iov.payload_url, iov.checksum, iov.size, iov.extra, iov.major_iov, iov.minor_iov,
                iov.major_iov_end, iov.minor_iov_end
            FROM "PayloadIOV" AS iov
            WHERE iov.payload_list_id = list_id AND iov.comb_iov <= moment
            ORDER BY iov.comb_iov DESC NULLS LAST
            LIMIT 1
        ) AS present
        WHERE present.added_in <= list_version
        UNION ALL
        SELECT area.added_in, former.*
        FROM cdb_history_entry(list_id, list_version, moment) AS area
        CROSS JOIN LATERAL (
            SELECT area.iov_id AS id, area.payload_url, area.checksum, area.size, area.extra, area.major_iov, area.minor_iov,
                area.major_iov_end, area.minor_iov_end
            WHERE area.row_start IS NULL
            UNION ALL
            SELECT iov.id, iov.payload_url, iov.checksum, iov.size, iov.extra, iov.major_iov, iov.minor_iov, iov.major_iov_end,
                iov.minor_iov_end
            FROM "PayloadIOV" AS iov
            WHERE iov.payload_list_id = list_id AND iov.comb_iov = area.row_start AND iov.added_in <= list_version
            UNION ALL
            SELECT superseded.iov_id, superseded.payload_url, superseded.checksum, superseded.size, superseded.extra,
                superseded.major_iov, superseded.minor_iov, superseded.major_iov_end, superseded.minor_iov_end
            FROM cdb_history_entry(list_id, list_version, area.row_start) AS superseded
            LIMIT 1
        ) AS former
        LIMIT 1
    ) AS iov
    LIMIT 1;
    IF FOUND THEN
        area_version := shape.added_in;
        iov_id := shape.id;
        payload_url := shape.payload_url;
        checksum := shape.checksum;
        size := shape.size;
        extra := shape.extra;
        major_iov := shape.major_iov;
        minor_iov := shape.minor_iov;
        major_iov_end := shape.major_iov_end;
        minor_iov_end := shape.minor_iov_end;
        is_valid := cdb_end(shape.major_iov_end, shape.minor_iov_end, inclusive) > moment;
    ELSE
        SELECT max(area.removed_in) INTO area_version FROM "PayloadIOVHistory" AS area
        WHERE area.payload_list_id = list_id AND area.removed_in <= list_version AND area.comb_iov <= moment
            AND (area.until IS NULL OR area.until > moment);
    END IF;
    SELECT greatest(joined, max(changed.number)) INTO began FROM "PayloadListVersion" AS changed
    WHERE changed.payload_list_id = list_id AND changed.version = area_version;
END
$function$;
