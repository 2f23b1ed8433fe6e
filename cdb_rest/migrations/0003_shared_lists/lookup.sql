-- The function that answers a lookup in one round trip; null if there is no such tag.
-- PL/pgSQL keeps the plan of its statement for the life of the database connection, also behind a pooler that hands
-- connections from client to client.
-- The settings hold for the function alone: one plan for all moments, and that plan by index even if it was made while
-- the tables were small or not analysed yet, because it outlives their growth. Compiling it would cost more than running it.
CREATE OR REPLACE FUNCTION cdb_lookup(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean
) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
DECLARE
    tag_id bigint;
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT id INTO tag_id FROM "GlobalTag" WHERE name = tag_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN (
SELECT '[' || coalesce(string_agg(
    CASE WHEN as_objects THEN
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
    NOT only_valid
    OR (iov.major_iov_end, iov.minor_iov_end) > (major, minor)
    OR (inclusive AND (iov.major_iov_end, iov.minor_iov_end) = (major, minor))
    -- The largest pair means "open": nothing is after it, not even itself.
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
), '') || ']'
FROM "PayloadList" AS list
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL cdb_iov_at(list.rows_list_id, list.rows_version, moment) AS iov
WHERE list.global_tag_id = tag_id
    );
END
$function$;

-- The function that finds the largest interval around a moment in which a lookup's whole answer is the same, as combined
-- moments: since is null if it begins with time, until is null if it lasts to the end of time. An inclusive end, being the last
-- moment inside, comes out as that moment plus 10^-19.
-- Expected plan: for each list two Index Only Scans of payload_iov_lookup that stop at their first row.
CREATE OR REPLACE FUNCTION cdb_window(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric
)
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
    SELECT max(part.since), nullif(min(part.until), 'Infinity') INTO since, until
    FROM "GlobalTag" AS tag
    JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    LEFT JOIN "PayloadList" AS base ON base.id = list.base_list_id
    CROSS JOIN LATERAL cdb_window_part(
        list.rows_list_id,
        -- A base that has not changed since is read as it is now.
        CASE WHEN base.version = list.base_version THEN 2147483646 ELSE list.rows_version END,
        moment, only_valid, inclusive
    ) AS part
    WHERE tag.name = tag_name;
END
$function$;
