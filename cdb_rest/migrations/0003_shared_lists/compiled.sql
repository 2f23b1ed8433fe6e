-- Lookups from compiled lists. cdb_rest/compiled/ describes them.
DROP FUNCTION cdb_answer_known, cdb_answer_since, cdb_is_older;

-- The identity of the database: a compiled list is used only with the database from which it was made. The system and the timeline
-- change when a server is created, when a standby is promoted, and when a backup is restored at a point in time. The time of the last
-- restoration tells apart two restorations of the same backup. Null on a standby.
CREATE OR REPLACE FUNCTION cdb_database_identity() RETURNS text
LANGUAGE sql VOLATILE
RETURN CASE WHEN NOT pg_is_in_recovery() THEN
    (SELECT system_identifier FROM pg_control_system())
    || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
    || '-' || coalesce(
        (SELECT id || '-' || extract(epoch FROM created) FROM "Restoration" ORDER BY id DESC LIMIT 1),
        '0'
    )
END;

-- The function that answers a lookup for a client that knows which payload lists the tag had in one state, in one round trip.
-- state_*: the database, the tag's id and its version in that state; missing: the lists of which the client does not have the rows.
-- scope says what the answer is: 'known': the tag is still in that state, and the answer consists of the rows that the missing lists
-- have (cdb_rows_of), and the window is that of these lists; 'all': the answer is the whole one, as that of cdb_answer. It is null if
-- the client's answer still holds, and if there is no such tag.
CREATE FUNCTION cdb_answer_compiled(
    tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean,
    known text[], known_modified timestamptz, with_window boolean,
    state_database text, state_tag bigint, state_version text, missing bigint[],
    OUT version text, OUT status text, OUT modified timestamptz, OUT scope text, OUT answer text, OUT since numeric,
    OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $function$
DECLARE
    tag_id bigint;
BEGIN
    SELECT tag.id, cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
        CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
    INTO tag_id, version, status, modified
    FROM "GlobalTag" AS tag
    JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
    WHERE tag.name = tag_name;
    IF NOT FOUND OR version = ANY(known) OR '*' = ANY(known) OR modified = known_modified THEN
        RETURN;
    END IF;
    IF version = state_version AND tag_id = state_tag AND state_database = cdb_database_identity() THEN
        scope := 'known';
        IF cardinality(missing) > 0 THEN
            answer := cdb_rows_of(missing, major, minor, only_valid, inclusive, as_objects);
            IF with_window THEN
                SELECT answer_window.since, answer_window.until INTO since, until
                FROM cdb_window_of(missing, major, minor, only_valid, inclusive) AS answer_window;
            END IF;
        END IF;
        RETURN;
    END IF;
    scope := 'all';
    answer := cdb_lookup(tag_name, major, minor, only_valid, inclusive, as_objects);
    IF with_window THEN
        SELECT answer_window.since, answer_window.until INTO since, until
        FROM cdb_window(tag_name, major, minor, only_valid, inclusive) AS answer_window;
    END IF;
END
$function$;

-- The rows of a lookup's answer for some payload lists: a line for each, with the payload type's name as JSON, a tab and the row.
-- The statement is that of cdb_lookup. Expected plan: for each list an Index Only Scan of payload_iov_lookup, Index Cond alone.
CREATE OR REPLACE FUNCTION cdb_rows_of(
    list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean
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
SELECT string_agg(
    to_json(payload_type.name)::text || E'\t' ||
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
    E'\n'
) FILTER (WHERE
    NOT only_valid
    OR (iov.major_iov_end, iov.minor_iov_end) > (major, minor)
    OR (inclusive AND (iov.major_iov_end, iov.minor_iov_end) = (major, minor))
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
)
FROM unnest(list_ids) AS chosen (id)
JOIN "PayloadList" AS list ON list.id = chosen.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL cdb_iov_at(list.rows_list_id, list.rows_version, moment) AS iov
    );
END
$function$;

-- The window of cdb_window, for some payload lists.
CREATE OR REPLACE FUNCTION cdb_window_of(
    list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric
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
    SELECT max(part.since), nullif(min(part.until), 'Infinity') INTO since, until
    FROM unnest(list_ids) AS chosen (id)
    JOIN "PayloadList" AS list ON list.id = chosen.id
    LEFT JOIN "PayloadList" AS base ON base.id = list.base_list_id
    CROSS JOIN LATERAL cdb_window_part(
        list.rows_list_id,
        CASE WHEN base.version = list.base_version THEN 2147483646 ELSE list.rows_version END,
        moment, only_valid, inclusive
    ) AS part;
END
$function$;
