-- What a global tag has for a payload type at a moment, after the change with that number (null: now), and since which change.
-- began is the number of the change since which the row, or the lack of one, is there; null if it is not recorded. list_id is null
-- if the tag had no payload list of the type. iov_id is null if no row of the list started until the moment. The row is that of
-- cdb_iov_at.
CREATE OR REPLACE FUNCTION cdb_point_at(
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
    rows_list bigint;
    rows_version integer;
    joined bigint;
    area_version integer;
    shape record;
BEGIN
    IF change_number IS NULL THEN
        SELECT list.id, list.name, list.rows_list_id, list.rows_version, (
            SELECT max(member.added_in) FROM "PayloadListMembership" AS member
            WHERE member.payload_list_id = list.id AND member.removed_in IS NULL
        )
        INTO list_id, list_name, rows_list, rows_version, joined
        FROM "PayloadList" AS list
        JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
        WHERE list.global_tag_id = of_tag AND payload_type.name = of_type;
    ELSE
        SELECT member.payload_list_id, member.name, source.rows_list_id, source.rows_version, member.added_in
        INTO list_id, list_name, rows_list, rows_version, joined
        FROM "PayloadListMembership" AS member
        CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, change_number) AS source
        WHERE member.tag_id = of_tag AND member.payload_type = of_type AND member.added_in <= change_number
            AND (member.removed_in IS NULL OR member.removed_in > change_number);
    END IF;
    IF list_id IS NULL THEN
        SELECT max(member.removed_in) INTO began FROM "PayloadListMembership" AS member
        WHERE member.tag_id = of_tag AND member.payload_type = of_type
            AND (change_number IS NULL OR member.removed_in <= change_number);
        RETURN;
    END IF;
    SELECT found.* INTO shape FROM cdb_iov_at(rows_list, rows_version, moment) AS found;
    IF FOUND THEN
        area_version := shape.added_in;
        SELECT coalesce(
            (
                SELECT iov.id FROM "PayloadIOV" AS iov
                WHERE iov.payload_list_id = rows_list AND iov.comb_iov = shape.comb_iov AND iov.added_in <= rows_version
            ),
            (SELECT area.iov_id FROM cdb_history_entry(rows_list, rows_version, shape.comb_iov) AS area)
        ) INTO iov_id;
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
        WHERE area.payload_list_id = list_id AND area.removed_in <= rows_version AND area.comb_iov <= moment
            AND (area.until IS NULL OR area.until > moment);
    END IF;
    -- A list that shares rows has had them since it began to share.
    SELECT greatest(joined, max(changed.number)) INTO began FROM "PayloadListVersion" AS changed
    WHERE changed.payload_list_id = list_id AND CASE
        WHEN rows_list = list_id THEN changed.version = area_version
        ELSE shape.comb_iov IS NOT NULL AND changed.base_list_id IS NOT NULL
    END;
END
$function$;
