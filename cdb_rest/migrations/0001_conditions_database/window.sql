-- The function that finds the largest interval around a moment in which a lookup's whole answer is the same, as combined
-- moments: since is null if it begins with time, until is null if it lasts to the end of time. An inclusive end, being the last
-- moment inside, comes out as that moment plus 10^-19.
-- Of each list: the row that is in force (found), the start that may cut it short (following), and the next start after the
-- moment. Where only valid rows count, empty ones hide what was in force and bring nothing themselves.
-- Expected plan: for each list up to three Index Only Scans of payload_iov_lookup that stop at their first row.
CREATE FUNCTION cdb_window(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT
        max(CASE WHEN edge.over > moment THEN found.start ELSE edge.over END),
        nullif(min(CASE WHEN edge.over > moment THEN edge.over ELSE upcoming.start END), 'Infinity')
    INTO since, until
    FROM "GlobalTag" AS tag
    JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    LEFT JOIN LATERAL (
        SELECT iov.comb_iov AS start,
            CASE
                WHEN NOT only_valid OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
                    THEN 'Infinity'
                ELSE iov.major_iov_end + (iov.minor_iov_end + inclusive::int::numeric) * 0.0000000000000000001
            END AS over
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list.id AND iov.comb_iov <= moment
            AND (NOT only_valid OR inclusive OR (iov.major_iov_end, iov.minor_iov_end) > (iov.major_iov, iov.minor_iov)
                OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807))
        ORDER BY iov.comb_iov DESC NULLS LAST
        LIMIT 1
    ) AS found ON true
    LEFT JOIN LATERAL (
        SELECT iov.comb_iov AS start
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list.id AND iov.comb_iov > found.start
        ORDER BY iov.comb_iov NULLS FIRST
        LIMIT 1
    ) AS following ON true
    CROSS JOIN LATERAL (SELECT least(found.over, following.start) AS over) AS edge
    LEFT JOIN LATERAL (
        SELECT iov.comb_iov AS start
        FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = list.id AND iov.comb_iov > moment
            AND (NOT only_valid OR inclusive OR (iov.major_iov_end, iov.minor_iov_end) > (iov.major_iov, iov.minor_iov)
                OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807))
        ORDER BY iov.comb_iov NULLS FIRST
        LIMIT 1
    ) AS upcoming ON true
    WHERE tag.name = tag_name;
END
$function$;
