SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;

CREATE FUNCTION public.cdb_answer(tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean, known text[], known_modified timestamp with time zone, with_window boolean, OUT version text, OUT status text, OUT modified timestamp with time zone, OUT answer text, OUT since numeric, OUT until numeric) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    SELECT cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
        CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
    INTO version, status, modified
    FROM "GlobalTag" AS tag
    JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
    WHERE tag.name = tag_name;
    IF NOT FOUND OR version = ANY(known) OR '*' = ANY(known) OR modified = known_modified THEN
        RETURN;
    END IF;
    answer := cdb_lookup(tag_name, major, minor, only_valid, inclusive, as_objects);
    IF with_window THEN
        SELECT answer_window.since, answer_window.until INTO since, until
        FROM cdb_window(tag_name, major, minor, only_valid, inclusive) AS answer_window;
    END IF;
END
$$;

CREATE FUNCTION public.cdb_answer_at(tag_name text, asked_revision bigint, asked_time timestamp with time zone, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean, known text[], with_window boolean, OUT revision bigint, OUT version text, OUT has_history boolean, OUT is_deleted boolean, OUT answer text, OUT since numeric, OUT until numeric) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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
$$;

CREATE FUNCTION public.cdb_answer_compiled(tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean, known text[], known_modified timestamp with time zone, with_window boolean, state_database text, state_tag bigint, state_version text, missing bigint[], OUT version text, OUT status text, OUT modified timestamp with time zone, OUT scope text, OUT answer text, OUT since numeric, OUT until numeric) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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
$$;

CREATE FUNCTION public.cdb_count_iovs() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE "PayloadList" AS list SET iov_count = list.iov_count + change.iovs
        FROM (SELECT payload_list_id, count(*) AS iovs FROM added GROUP BY payload_list_id) AS change
        WHERE list.id = change.payload_list_id;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE "PayloadList" AS list SET iov_count = list.iov_count - change.iovs
        FROM (SELECT payload_list_id, count(*) AS iovs FROM removed GROUP BY payload_list_id) AS change
        WHERE list.id = change.payload_list_id;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE "PayloadList" AS list SET iov_count = list.iov_count + change.iovs
        FROM (
            SELECT payload_list_id, sum(iovs) AS iovs
            FROM (
                SELECT payload_list_id, 1 AS iovs FROM added
                UNION ALL
                SELECT payload_list_id, -1 AS iovs FROM removed
            ) AS part
            GROUP BY payload_list_id
            HAVING sum(iovs) <> 0
        ) AS change
        WHERE list.id = change.payload_list_id;
    ELSE
        UPDATE "PayloadList" SET iov_count = 0 WHERE iov_count <> 0;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.cdb_count_lists() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        UPDATE "GlobalTag" SET payload_lists_count = 0, payload_iov_count = 0
        WHERE payload_lists_count <> 0 OR payload_iov_count <> 0;
    ELSIF TG_OP = 'UPDATE' AND OLD.global_tag_id IS NOT DISTINCT FROM NEW.global_tag_id THEN
        UPDATE "GlobalTag" SET payload_iov_count = payload_iov_count + NEW.iov_count - OLD.iov_count
        WHERE id = NEW.global_tag_id;
    ELSE
        -- Of a list that is inserted OLD is null, of one that is deleted NEW is, and so are their tags.
        UPDATE "GlobalTag"
        SET payload_lists_count = payload_lists_count - 1, payload_iov_count = payload_iov_count - OLD.iov_count
        WHERE id = OLD.global_tag_id;
        UPDATE "GlobalTag"
        SET payload_lists_count = payload_lists_count + 1, payload_iov_count = payload_iov_count + NEW.iov_count
        WHERE id = NEW.global_tag_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TABLE public."Restoration" (
    id bigint NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    first_revision bigint NOT NULL,
    retired_names jsonb NOT NULL,
    comment character varying(1000) NOT NULL,
    timeline text
);

CREATE FUNCTION public.cdb_database_identity() RETURNS text
    LANGUAGE sql
    RETURN CASE WHEN (NOT pg_is_in_recovery()) THEN (((((((SELECT pg_control_system.system_identifier FROM pg_control_system() pg_control_system(pg_control_version, catalog_version_no, system_identifier, pg_control_last_modified)) || '-'::text) || "left"(pg_walfile_name(pg_current_wal_lsn()), 8)) || '-'::text) || (SELECT pg_database.oid FROM pg_database WHERE (pg_database.datname = current_database()))) || '-'::text) || COALESCE((SELECT (("Restoration".id || '-'::text) || EXTRACT(epoch FROM "Restoration".created)) FROM public."Restoration" ORDER BY "Restoration".id DESC LIMIT 1), '0'::text)) ELSE NULL::text END;

CREATE FUNCTION public.cdb_end(major_end bigint, minor_end bigint, inclusive boolean) RETURNS numeric
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN ((minor_end = '9223372036854775807'::bigint) AND (inclusive OR (major_end = '9223372036854775807'::bigint))) THEN ((major_end)::numeric + (1)::numeric) ELSE ((major_end)::numeric + (((minor_end)::numeric + ((inclusive)::integer)::numeric) * 0.0000000000000000001)) END;

CREATE FUNCTION public.cdb_moment_json(moment numeric) RETURNS json
    LANGUAGE sql IMMUTABLE
    RETURN json_build_array((trunc(moment))::bigint, (((moment - trunc(moment)) * '10000000000000000000'::numeric))::bigint);

CREATE FUNCTION public.cdb_end_json(after numeric, inclusive boolean) RETURNS json
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (after >= '9223372036854775808'::numeric) THEN json_build_array('9223372036854775807'::bigint, '9223372036854775807'::bigint) WHEN (NOT inclusive) THEN public.cdb_moment_json(after) WHEN (after = trunc(after)) THEN json_build_array(((after - (1)::numeric))::bigint, '9223372036854775807'::bigint) ELSE public.cdb_moment_json((after - 0.0000000000000000001)) END;

CREATE FUNCTION public.cdb_fork_node(added_in integer, removed_in integer) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ((removed_in >> (32 - POSITION(('1'::"bit") IN (((added_in # removed_in))::bit(32))))) << (32 - POSITION(('1'::"bit") IN (((added_in # removed_in))::bit(32)))));

CREATE TABLE public."PayloadIOVHistory" (
    payload_list_id bigint NOT NULL,
    node integer NOT NULL,
    comb_iov numeric(38,19) NOT NULL,
    until numeric(38,19),
    added_in integer NOT NULL,
    removed_in integer NOT NULL,
    row_start numeric(38,19),
    iov_id bigint,
    payload_url character varying(255),
    checksum character varying(255),
    size bigint,
    major_iov bigint,
    minor_iov bigint,
    major_iov_end bigint,
    minor_iov_end bigint,
    extra character varying(19),
    created timestamp with time zone,
    CONSTRAINT payload_iov_history_node CHECK ((node = public.cdb_fork_node(added_in, removed_in))),
    CONSTRAINT payload_iov_history_not_empty CHECK (((added_in < removed_in) AND ((until IS NULL) OR (until > comb_iov))))
);

CREATE FUNCTION public.cdb_history_entry(list_id bigint, version integer, moment numeric) RETURNS SETOF public."PayloadIOVHistory"
    LANGUAGE sql STABLE ROWS 1
    AS $$
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
$$;

CREATE FUNCTION public.cdb_iov_at(list_id bigint, version integer, moment numeric) RETURNS TABLE(comb_iov numeric, payload_url character varying, checksum character varying, size bigint, extra character varying, major_iov bigint, minor_iov bigint, major_iov_end bigint, minor_iov_end bigint, added_in integer)
    LANGUAGE sql STABLE ROWS 1
    AS $$
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
$$;

CREATE FUNCTION public.cdb_iovs_of(list_id bigint, version integer, first numeric, before numeric) RETURNS TABLE(comb_iov numeric, payload_url character varying, checksum character varying, size bigint, extra character varying, major_iov bigint, minor_iov bigint, major_iov_end bigint, minor_iov_end bigint)
    LANGUAGE sql STABLE
    AS $$
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
$$;

CREATE FUNCTION public.cdb_lookup(tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean) RETURNS text
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
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
$$;

CREATE FUNCTION public.cdb_lookup_at(change_number bigint, of_tag bigint, major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean) RETURNS text
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
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
CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, change_number) AS source
CROSS JOIN LATERAL cdb_iov_at(source.rows_list_id, source.rows_version, moment) AS iov
WHERE member.tag_id = of_tag AND member.added_in <= change_number
    AND (member.removed_in IS NULL OR member.removed_in > change_number)
    );
END
$$;

CREATE FUNCTION public.cdb_mark_edited(list_ids bigint[]) RETURNS void
    LANGUAGE sql
    AS $$
    -- A list that shares rows, and has got one of its own, gets copies of those that it has shared. Its triggers count and note them.
    WITH shared AS (
        UPDATE "PayloadList" AS list SET base_list_id = NULL, base_version = NULL, iov_count = own.iovs
        FROM "PayloadList" AS before
        CROSS JOIN LATERAL (SELECT count(*) AS iovs FROM "PayloadIOV" AS iov WHERE iov.payload_list_id = before.id) AS own
        WHERE before.id = list.id AND list.id = ANY(list_ids) AND list.base_list_id IS NOT NULL AND own.iovs > 0
        RETURNING before.id, before.version, before.base_list_id, before.base_version
    )
    INSERT INTO "PayloadIOV" (
        payload_url, checksum, size, extra, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id, added_in
    )
    SELECT iov.payload_url, iov.checksum, iov.size, iov.extra, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
        shared.id, shared.version
    FROM shared
    CROSS JOIN LATERAL cdb_iovs_of(shared.base_list_id, shared.base_version, 0, 'Infinity') AS iov
    -- Of two rows with the same start, that of the program stays.
    ON CONFLICT DO NOTHING;

    -- The rows of a base in a version are counted once for all lists that share them.
    WITH marked AS MATERIALIZED (
        SELECT id, base_list_id, base_version FROM "PayloadList" WHERE id = ANY(list_ids)
        UNION
        SELECT id, base_list_id, base_version FROM "PayloadList" WHERE base_list_id = ANY(list_ids)
    ),
    counted AS MATERIALIZED (
        SELECT base_list_id, base_version, (
            SELECT count(*) FROM cdb_iovs_of(source.base_list_id, source.base_version, 0, 'Infinity')
        ) AS iovs
        FROM (SELECT DISTINCT base_list_id, base_version FROM marked WHERE base_list_id IS NOT NULL) AS source
    )
    UPDATE "PayloadList" AS list SET edited = stamp.number, iov_count = coalesce(counted.iovs, list.iov_count)
    FROM (SELECT nextval('cdb_change_number') AS number) AS stamp
    CROSS JOIN marked
    LEFT JOIN counted ON counted.base_list_id = marked.base_list_id AND counted.base_version = marked.base_version
    WHERE list.id = marked.id
$$;

CREATE FUNCTION public.cdb_new_floor() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN greatest(
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        greatest((SELECT max(first_revision) FROM "Restoration"), (SELECT max(revision) FROM "GlobalTag"))
            + 1000000 + (random() * 1000000)::bigint
    );
END
$$;

CREATE FUNCTION public.cdb_next_start(list_id bigint, version integer, moment numeric) RETURNS TABLE(start numeric)
    LANGUAGE sql STABLE ROWS 1
    AS $$
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
$$;

CREATE FUNCTION public.cdb_note_edited_iovs() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF current_setting('cdb.records_history', true) = 'on' THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'INSERT' THEN
        PERFORM cdb_mark_edited(array_agg(DISTINCT payload_list_id)) FROM added HAVING count(payload_list_id) > 0;
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM cdb_mark_edited(array_agg(DISTINCT payload_list_id)) FROM removed HAVING count(payload_list_id) > 0;
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM cdb_mark_edited(array_agg(DISTINCT payload_list_id))
        FROM (SELECT payload_list_id FROM added UNION ALL SELECT payload_list_id FROM removed) AS changed
        HAVING count(payload_list_id) > 0;
    ELSE
        PERFORM cdb_mark_edited(array_agg(id)) FROM "PayloadList";
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.cdb_note_list_of_other_type() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM cdb_mark_edited(ARRAY[NEW.id]);
    RETURN NULL;
END
$$;

CREATE FUNCTION public.cdb_note_renamed_type() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM cdb_mark_edited(array_agg(id)) FROM "PayloadList" WHERE payload_type_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.cdb_point_at(of_tag bigint, of_type text, change_number bigint, major bigint, minor bigint, inclusive boolean, OUT list_id bigint, OUT list_name text, OUT began bigint, OUT iov_id bigint, OUT payload_url text, OUT checksum text, OUT size bigint, OUT extra text, OUT major_iov bigint, OUT minor_iov bigint, OUT major_iov_end bigint, OUT minor_iov_end bigint, OUT is_valid boolean) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
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
$$;

CREATE FUNCTION public.cdb_revision_floor() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    here CONSTANT text := cdb_timeline();
    newest text;
    floor bigint;
BEGIN
    SELECT (array_agg(timeline ORDER BY id DESC))[1], max(first_revision) INTO newest, floor FROM "Restoration";
    IF newest = here THEN
        RETURN floor;
    END IF;
    -- An empty table knows of no earlier timeline.
    floor := CASE WHEN floor IS NULL THEN 1 ELSE cdb_new_floor() END;
    IF pg_try_advisory_xact_lock(3237998082) THEN
        -- A new statement sees what another transaction has committed since.
        SELECT (array_agg(timeline ORDER BY id DESC))[1], greatest(max(first_revision), floor) INTO newest, floor FROM "Restoration";
        IF newest IS DISTINCT FROM here THEN
            INSERT INTO "Restoration" (first_revision, retired_names, comment, timeline)
            VALUES (floor, '[]', 'The database server has another timeline: changes may have been lost.', here);
        END IF;
    END IF;
    RETURN floor;
END
$$;

CREATE FUNCTION public.cdb_rows_after(list_id bigint, change_number bigint) RETURNS TABLE(rows_list_id bigint, rows_version integer)
    LANGUAGE sql STABLE ROWS 1
    AS $$
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
$$;

CREATE FUNCTION public.cdb_rows_of(list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean) RETURNS text
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
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
$$;

CREATE FUNCTION public.cdb_second(anycompatible, anycompatible) RETURNS anycompatible
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$SELECT $2$_$;

CREATE FUNCTION public.cdb_timeline() RETURNS text
    LANGUAGE sql
    RETURN CASE WHEN (NOT pg_is_in_recovery()) THEN (((SELECT pg_control_system.system_identifier FROM pg_control_system() pg_control_system(pg_control_version, catalog_version_no, system_identifier, pg_control_last_modified)) || '-'::text) || "left"(pg_walfile_name(pg_current_wal_lsn()), 8)) ELSE NULL::text END;

CREATE FUNCTION public.cdb_version(revision bigint, updated timestamp with time zone, row_version xid) RETURNS text
    LANGUAGE sql STABLE
    RETURN ((((revision || '-'::text) || to_hex(((EXTRACT(epoch FROM updated) * (1000000)::numeric))::bigint)) || '-'::text) || row_version);

CREATE FUNCTION public.cdb_window(tag_name text, major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
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
$$;

CREATE FUNCTION public.cdb_window_at(change_number bigint, of_tag bigint, major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT max(part.since), nullif(min(part.until), 'Infinity') INTO since, until
    FROM "PayloadListMembership" AS member
    CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, change_number) AS source
    LEFT JOIN "PayloadList" AS list ON list.id = source.rows_list_id
    CROSS JOIN LATERAL cdb_window_part(
        source.rows_list_id,
        -- A list that has not changed since is read as it is now.
        CASE WHEN list.version = source.rows_version AND list.base_list_id IS NULL THEN 2147483646 ELSE source.rows_version END,
        moment, only_valid, inclusive
    ) AS part
    WHERE member.tag_id = of_tag AND member.added_in <= change_number
        AND (member.removed_in IS NULL OR member.removed_in > change_number);
END
$$;

CREATE FUNCTION public.cdb_window_of(list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
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
$$;

CREATE FUNCTION public.cdb_window_part(list_id bigint, version integer, moment numeric, only_valid boolean, inclusive boolean) RETURNS TABLE(since numeric, until numeric)
    LANGUAGE sql STABLE ROWS 1
    AS $$
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
$$;

CREATE AGGREGATE public.cdb_latest(anycompatible) (
    SFUNC = public.cdb_second,
    STYPE = anycompatible
);

CREATE TABLE public."AccessChange" (
    id bigint NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    actor character varying(255) NOT NULL,
    action character varying(20) NOT NULL,
    detail jsonb NOT NULL
);

ALTER TABLE public."AccessChange" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."AccessChange_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."AccessRule" (
    id bigint NOT NULL,
    kind character varying(10) NOT NULL,
    issuer character varying(80) NOT NULL,
    claim character varying(80) NOT NULL,
    subject character varying(255) NOT NULL,
    identity character varying(80) NOT NULL,
    role character varying(20) NOT NULL,
    tags character varying(255) NOT NULL,
    types character varying(255) NOT NULL,
    comment character varying(1000) NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT access_rule_kind CHECK (((kind)::text ~ '^(claim|token|user|group|network)$'::text)),
    CONSTRAINT access_rule_role CHECK (((role)::text ~ '^(reader|contributor|manager|publisher|administrator)$'::text))
);

ALTER TABLE public."AccessRule" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."AccessRule_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."AdoptedList" (
    id bigint NOT NULL,
    adoption_id bigint NOT NULL,
    source_id bigint NOT NULL,
    list_id bigint NOT NULL,
    version integer NOT NULL,
    iov_count bigint NOT NULL,
    rows_hash text NOT NULL
);

ALTER TABLE public."AdoptedList" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."AdoptedList_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."AdoptedTag" (
    id bigint NOT NULL,
    adoption_id bigint NOT NULL,
    source_id bigint NOT NULL,
    source_name character varying(80) NOT NULL,
    tag_id bigint NOT NULL,
    revision bigint NOT NULL,
    snapshot text NOT NULL,
    updated timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

ALTER TABLE public."AdoptedTag" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."AdoptedTag_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."Adoption" (
    id bigint NOT NULL,
    source character varying(255) NOT NULL,
    decisions jsonb NOT NULL,
    keeps_ids boolean NOT NULL,
    first_own_id bigint NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    finished timestamp with time zone
);

ALTER TABLE public."Adoption" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."Adoption_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."ApiToken" (
    id bigint NOT NULL,
    name character varying(80) NOT NULL,
    digest character varying(64) NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    expires timestamp with time zone,
    revoked timestamp with time zone,
    last_used timestamp with time zone
);

ALTER TABLE public."ApiToken" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."ApiToken_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."ChangeRequest" (
    id bigint NOT NULL,
    kind character varying(10) NOT NULL,
    global_tag character varying(80) NOT NULL,
    tag_id bigint,
    revision bigint NOT NULL,
    document jsonb NOT NULL,
    effect jsonb NOT NULL,
    reason character varying(1000) NOT NULL,
    requester character varying(255) NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    state character varying(10) NOT NULL,
    decided timestamp with time zone,
    decided_by character varying(255) NOT NULL,
    answer character varying(1000) NOT NULL,
    result_revision bigint,
    mailed character varying(10) NOT NULL
);

ALTER TABLE public."ChangeRequest" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."ChangeRequest_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."DatabaseProperty" (
    name character varying(80) NOT NULL,
    value character varying(255) NOT NULL
);

CREATE TABLE public."DeletedGlobalTag" (
    id bigint NOT NULL,
    name character varying(80) NOT NULL,
    author character varying(80) NOT NULL,
    description character varying(255) NOT NULL,
    created timestamp with time zone NOT NULL,
    deleted timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

CREATE TABLE public."GlobalTag" (
    id bigint NOT NULL,
    name character varying(80) NOT NULL,
    author character varying(80) DEFAULT ''::character varying NOT NULL,
    description character varying(255) DEFAULT ''::character varying NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    updated timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    payload_lists_count bigint DEFAULT 0 NOT NULL,
    payload_iov_count bigint DEFAULT 0 NOT NULL,
    status_id bigint NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    last_modified timestamp with time zone DEFAULT (date_trunc('second'::text, CURRENT_TIMESTAMP) + '00:00:01'::interval) NOT NULL,
    closed_until numeric(38,19),
    largest_major bigint,
    accepts_requests boolean DEFAULT false NOT NULL
);

CREATE TABLE public."GlobalTagChange" (
    id bigint NOT NULL,
    global_tag character varying(80) NOT NULL,
    revision bigint NOT NULL,
    created timestamp with time zone NOT NULL,
    actor character varying(255) NOT NULL,
    action character varying(20) NOT NULL,
    comment character varying(1000) NOT NULL,
    payload_iovs_before bigint NOT NULL,
    payload_iovs_after bigint NOT NULL,
    has_history boolean DEFAULT true NOT NULL,
    source jsonb,
    status character varying(80) DEFAULT ''::character varying NOT NULL,
    tag_id bigint,
    number bigint NOT NULL,
    "position" bigint
);

ALTER TABLE public."GlobalTagChange" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."GlobalTagChange_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."GlobalTagStatus" (
    id bigint NOT NULL,
    name character varying(80) NOT NULL,
    description character varying(255) DEFAULT ''::character varying NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

ALTER TABLE public."GlobalTagStatus" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."GlobalTagStatus_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public."GlobalTag" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."GlobalTag_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."IdempotencyRecord" (
    id bigint NOT NULL,
    actor character varying(255) DEFAULT ''::character varying NOT NULL,
    key character varying(255) NOT NULL,
    request_digest character varying(64) NOT NULL,
    response text NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

ALTER TABLE public."IdempotencyRecord" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."IdempotencyRecord_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."PayloadIOV" (
    id bigint NOT NULL,
    payload_url character varying(255) NOT NULL,
    checksum character varying(255) DEFAULT ''::character varying NOT NULL,
    size bigint DEFAULT 0 NOT NULL,
    major_iov bigint NOT NULL,
    minor_iov bigint NOT NULL,
    major_iov_end bigint DEFAULT '9223372036854775807'::bigint NOT NULL,
    minor_iov_end bigint DEFAULT '9223372036854775807'::bigint NOT NULL,
    extra character varying(19),
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    updated timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    comb_iov numeric(38,19) GENERATED ALWAYS AS (((major_iov)::numeric + ((minor_iov)::numeric * 0.0000000000000000001))) STORED,
    payload_list_id bigint,
    added_in integer DEFAULT 0 NOT NULL,
    creator character varying(255),
    left_tag character varying(80),
    CONSTRAINT payload_iov_end_not_before_start CHECK (((payload_list_id IS NULL) OR (major_iov_end > major_iov) OR ((major_iov_end = major_iov) AND (minor_iov_end >= minor_iov)))),
    CONSTRAINT payload_iov_not_negative CHECK (((payload_list_id IS NULL) OR ((major_iov >= 0) AND (major_iov_end >= 0) AND (minor_iov >= 0) AND (minor_iov_end >= 0) AND (size >= 0)))),
    CONSTRAINT payload_iov_revision_is_digits CHECK (((extra)::text ~ '^[0-9]+$'::text))
);

CREATE TABLE public."PayloadList" (
    id bigint NOT NULL,
    name character varying(100) NOT NULL,
    description character varying(255) DEFAULT ''::character varying NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    updated timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    iov_count bigint DEFAULT 0 NOT NULL,
    global_tag_id bigint,
    payload_type_id bigint NOT NULL,
    version integer DEFAULT 0 NOT NULL,
    creator character varying(255),
    left_tag character varying(80),
    base_list_id bigint,
    base_version integer,
    rows_list_id bigint GENERATED ALWAYS AS (COALESCE(base_list_id, id)) STORED,
    rows_version integer GENERATED ALWAYS AS (COALESCE(base_version, 2147483646)) STORED,
    edited bigint DEFAULT 0 NOT NULL,
    CONSTRAINT payload_list_base CHECK ((((base_list_id IS NULL) AND (base_version IS NULL)) OR ((base_list_id IS NOT NULL) AND (base_version IS NOT NULL))))
);

CREATE VIEW public."ListedPayloadIOV" AS
 SELECT iov.id,
    iov.payload_url,
    iov.checksum,
    iov.size,
    iov.major_iov,
    iov.minor_iov,
    iov.major_iov_end,
    iov.minor_iov_end,
    iov.comb_iov,
    iov.extra,
    list.id AS payload_list_id,
    iov.created,
    iov.updated
   FROM (public."PayloadList" list
     JOIN public."PayloadIOV" iov ON (((iov.payload_list_id = list.rows_list_id) AND (iov.added_in <= list.rows_version))))
UNION ALL
 SELECT area.iov_id AS id,
    area.payload_url,
    area.checksum,
    area.size,
    area.major_iov,
    area.minor_iov,
    area.major_iov_end,
    area.minor_iov_end,
    area.comb_iov,
    area.extra,
    list.id AS payload_list_id,
    area.created,
    area.created AS updated
   FROM (public."PayloadList" list
     JOIN public."PayloadIOVHistory" area ON (((area.payload_list_id = list.base_list_id) AND (area.row_start IS NULL) AND (area.added_in <= list.base_version) AND (area.removed_in > list.base_version))));

ALTER TABLE public."PayloadIOV" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."PayloadIOV_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."PayloadListMembership" (
    id bigint NOT NULL,
    tag_id bigint NOT NULL,
    payload_list_id bigint NOT NULL,
    name character varying(100) NOT NULL,
    payload_type character varying(80) NOT NULL,
    created timestamp with time zone NOT NULL,
    added_in bigint NOT NULL,
    removed_in bigint
);

ALTER TABLE public."PayloadListMembership" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."PayloadListMembership_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."PayloadListVersion" (
    payload_list_id bigint NOT NULL,
    number bigint NOT NULL,
    version integer NOT NULL,
    iov_count bigint NOT NULL,
    base_list_id bigint,
    base_version integer,
    CONSTRAINT payload_list_version_base CHECK ((((base_list_id IS NULL) AND (base_version IS NULL)) OR ((base_list_id IS NOT NULL) AND (base_version IS NOT NULL))))
);

ALTER TABLE public."PayloadList" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."PayloadList_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."PayloadType" (
    id bigint NOT NULL,
    name character varying(80) NOT NULL,
    description character varying(255) DEFAULT ''::character varying NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

CREATE TABLE public."PayloadTypeChange" (
    id bigint NOT NULL,
    payload_type character varying(80) NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    actor character varying(255) NOT NULL,
    action character varying(20) NOT NULL,
    comment character varying(1000) NOT NULL,
    before character varying(255) NOT NULL,
    after character varying(255) NOT NULL
);

ALTER TABLE public."PayloadTypeChange" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."PayloadTypeChange_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public."PayloadType" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."PayloadType_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."RequestComment" (
    id bigint NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    actor character varying(255) NOT NULL,
    text character varying(1000) NOT NULL,
    request_id bigint NOT NULL
);

ALTER TABLE public."RequestComment" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."RequestComment_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public."Restoration" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."Restoration_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."RevokedToken" (
    id bigint NOT NULL,
    issuer character varying(80) NOT NULL,
    claim character varying(10) NOT NULL,
    value character varying(255) NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

ALTER TABLE public."RevokedToken" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."RevokedToken_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public."Subscription" (
    id bigint NOT NULL,
    url character varying(1000) NOT NULL,
    secret character varying(255) NOT NULL,
    tags character varying(255) NOT NULL,
    actions jsonb NOT NULL,
    creator character varying(255) NOT NULL,
    created timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    delivered bigint NOT NULL,
    delivered_at timestamp with time zone,
    next_attempt timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    failures integer NOT NULL,
    failing_since timestamp with time zone,
    problem character varying(255) NOT NULL,
    stopped timestamp with time zone
);

ALTER TABLE public."Subscription" ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public."Subscription_id_seq"
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_group (
    id integer NOT NULL,
    name character varying(150) NOT NULL
);

ALTER TABLE public.auth_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_group_permissions (
    id bigint NOT NULL,
    group_id integer NOT NULL,
    permission_id integer NOT NULL
);

ALTER TABLE public.auth_group_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_permission (
    id integer NOT NULL,
    name character varying(255) NOT NULL,
    content_type_id integer NOT NULL,
    codename character varying(100) NOT NULL
);

ALTER TABLE public.auth_permission ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_permission_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_user (
    id integer NOT NULL,
    password character varying(128) NOT NULL,
    last_login timestamp with time zone,
    is_superuser boolean NOT NULL,
    username character varying(150) NOT NULL,
    first_name character varying(150) NOT NULL,
    last_name character varying(150) NOT NULL,
    email character varying(254) NOT NULL,
    is_staff boolean NOT NULL,
    is_active boolean NOT NULL,
    date_joined timestamp with time zone NOT NULL
);

CREATE TABLE public.auth_user_groups (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    group_id integer NOT NULL
);

ALTER TABLE public.auth_user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public.auth_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_user_user_permissions (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    permission_id integer NOT NULL
);

ALTER TABLE public.auth_user_user_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_user_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE public.cdb_change_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.django_admin_log (
    id integer NOT NULL,
    action_time timestamp with time zone NOT NULL,
    object_id text,
    object_repr character varying(200) NOT NULL,
    action_flag smallint NOT NULL,
    change_message text NOT NULL,
    content_type_id integer,
    user_id integer NOT NULL,
    CONSTRAINT django_admin_log_action_flag_check CHECK ((action_flag >= 0))
);

ALTER TABLE public.django_admin_log ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_admin_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.django_content_type (
    id integer NOT NULL,
    app_label character varying(100) NOT NULL,
    model character varying(100) NOT NULL
);

ALTER TABLE public.django_content_type ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_content_type_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL
);

ALTER TABLE public.django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.django_session (
    session_key character varying(40) NOT NULL,
    session_data text NOT NULL,
    expire_date timestamp with time zone NOT NULL
);

INSERT INTO public."DatabaseProperty" VALUES ('iov_mode', 'continuous');

INSERT INTO public."GlobalTag" VALUES (1, 'tiny', 'seed_scenario', 'small enough to inspect by hand', '2026-11-29 02:21:41.715313+00', '2026-11-29 02:21:41.746209+00', 10, 100, 1, 1, '2026-11-29 02:21:43+00', NULL, NULL, false);

INSERT INTO public."GlobalTagChange" VALUES (1, 'tiny', 1, '2026-11-29 02:21:41.746209+00', 'seed_scenario', 'seed', '', 0, 100, true, '{"scenario": {"name": "tiny", "seed": 1, "layout": "realistic"}}', 'unlocked', 1, 1, NULL);

INSERT INTO public."GlobalTagStatus" VALUES (1, 'unlocked', 'Everything may change.', '2026-11-29 02:21:39.989262+00');
INSERT INTO public."GlobalTagStatus" VALUES (2, 'locked', 'What is defined stays as it is; moments that have no payload yet may get one.', '2026-11-29 02:21:39.993285+00');
INSERT INTO public."GlobalTagStatus" VALUES (3, 'frozen', 'Nothing changes any more, ever.', '2026-11-29 02:21:39.996707+00');

INSERT INTO public."PayloadIOV" VALUES (1, 'Pixel_Alignment/tiny/000009_404d47e7.root', '404d47e78029af52d806b8013d40aa82', 264380, 137, 6129, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (2, 'Pixel_Alignment/tiny/000008_00f5e933.root', '00f5e933ae9b61ac45a713f529461f07', 4934, 117, 681, 137, 6129, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (3, 'Pixel_Alignment/tiny/000007_c074f2a8.root', 'c074f2a8dc324b97c2bba7a32596b6c5', 789303, 103, 2391, 117, 681, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (4, 'Pixel_Alignment/tiny/000006_f23b936d.root', 'f23b936d90f6d2afe68304daceaddbfa', 993185, 91, 1381, 103, 2391, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (5, 'Pixel_Alignment/tiny/000005_63d33bbf.root', '63d33bbfa441f3d02ba1fa08ba405cf0', 409883, 74, 2501, 91, 1381, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (6, 'Pixel_Alignment/tiny/000004_ab87a14d.root', 'ab87a14dbb166546bdac1df14b6efbb2', 703586, 56, 4528, 74, 2501, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (7, 'Pixel_Alignment/tiny/000003_574659e3.root', '574659e3921f4a86ecc8b40060ade15c', 358477, 43, 1570, 56, 4528, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (8, 'Pixel_Alignment/tiny/000002_e61d2867.root', 'e61d28673cce2846eaaba79fe018f73b', 943546, 25, 3014, 43, 1570, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (9, 'Pixel_Alignment/tiny/000001_1d77ee60.root', '1d77ee60fef92392ddb149135374180c', 121702, 14, 2459, 25, 3014, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (10, 'Pixel_Alignment/tiny/000000_dcd93f5b.root', 'dcd93f5b105faddf594ee445f50aeac9', 905595, 1, 0, 14, 2459, '1', '2026-11-29 02:21:41.731723+00', '2026-11-29 02:21:41.731723+00', DEFAULT, 1, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (11, 'SiliconStrip_Alignment/tiny/000009_cd1d7bcc.root', 'cd1d7bccea95d6fe0236edf6c27eca6f', 841151, 127, 5294, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (12, 'SiliconStrip_Alignment/tiny/000008_6838e4fa.root', '6838e4fa0d22e19987ca1981cf4ac9a5', 427894, 115, 4518, 127, 5294, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (13, 'SiliconStrip_Alignment/tiny/000007_a1eded50.root', 'a1eded50c5fe472fa387db9c26217d9b', 664262, 100, 3122, 115, 4518, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (14, 'SiliconStrip_Alignment/tiny/000006_c58a3d81.root', 'c58a3d81430fa65020736c309a282155', 810123, 83, 690, 100, 3122, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (15, 'SiliconStrip_Alignment/tiny/000005_8aa555ad.root', '8aa555ad0dad25f80ac515f02d9df075', 568893, 63, 244, 83, 690, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (16, 'SiliconStrip_Alignment/tiny/000004_feb71254.root', 'feb71254c4ba7ef292618634b093efc4', 1044313, 53, 1028, 63, 244, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (17, 'SiliconStrip_Alignment/tiny/000003_3ee49926.root', '3ee49926e2c167a36cf5a02c9fec4f23', 258609, 42, 6065, 53, 1028, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (18, 'SiliconStrip_Alignment/tiny/000002_e6c4d109.root', 'e6c4d1096608e348dc4136438e05ed7c', 946229, 25, 2144, 42, 6065, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (19, 'SiliconStrip_Alignment/tiny/000001_a5d4f03d.root', 'a5d4f03d7c0f4e55f8a96311bc11b10d', 680247, 16, 2772, 25, 2144, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (20, 'SiliconStrip_Alignment/tiny/000000_775bd7bb.root', '775bd7bb0dbedcf18439cc2e5639ae10', 489893, 1, 0, 16, 2772, '1', '2026-11-29 02:21:41.735667+00', '2026-11-29 02:21:41.735667+00', DEFAULT, 2, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (21, 'DriftChamber_Alignment/tiny/000009_b86633fc.root', 'b86633fce29f94aa76cda53e3943be2e', 756299, 139, 353, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (22, 'DriftChamber_Alignment/tiny/000008_32e58ede.root', '32e58ede2a23e394bad998db039db8c8', 209472, 127, 995, 136, 8229, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (23, 'DriftChamber_Alignment/tiny/000007_fd85608d.root', 'fd85608d10ef64863f839634838c6836', 1039422, 112, 7936, 127, 995, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (24, 'DriftChamber_Alignment/tiny/000006_af2bfb64.root', 'af2bfb649a1c679e9b2501cbb6896c28', 718503, 97, 4906, 112, 7936, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (25, 'DriftChamber_Alignment/tiny/000005_dcf3ef06.root', 'dcf3ef066c28dfcecb410d51a05b202c', 906022, 76, 1122, 97, 4906, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (26, 'DriftChamber_Alignment/tiny/000004_942f7ac4.root', '942f7ac4d788c22ef66ddc6142133174', 607967, 58, 2159, 76, 1122, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (27, 'DriftChamber_Alignment/tiny/000003_61bb20df.root', '61bb20df753852d00ba0a74e62459b16', 401306, 47, 8637, 58, 2159, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (28, 'DriftChamber_Alignment/tiny/000002_ad895de7.root', 'ad895de734fa963cc2e5e91536e2d9dd', 711805, 30, 9498, 47, 8637, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (29, 'DriftChamber_Alignment/tiny/000001_d6b72d67.root', 'd6b72d670ce1df853c1118c0622ec7bd', 880474, 16, 7179, 30, 9498, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (30, 'DriftChamber_Alignment/tiny/000000_d78edd8c.root', 'd78edd8c8606c0f9ea572a3887b1a042', 883925, 1, 0, 16, 7179, '1', '2026-11-29 02:21:41.736539+00', '2026-11-29 02:21:41.736539+00', DEFAULT, 3, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (31, 'TimeProjection_Alignment/tiny/000009_845a637e.root', '845a637e97231e38dcc50d00d36d8667', 543118, 242, 4269, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (32, 'TimeProjection_Alignment/tiny/000008_3eceba36.root', '3eceba36c092132302ba805ce8233df8', 258259, 216, 5600, 242, 4269, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (33, 'TimeProjection_Alignment/tiny/000007_3cceffe1.root', '3cceffe1d4da440284b21c008c35c077', 250071, 184, 5126, 216, 5600, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (34, 'TimeProjection_Alignment/tiny/000006_3dee020a.root', '3dee020ac76e72dc9551c8ce758985b6', 254664, 162, 1977, 184, 5126, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (35, 'TimeProjection_Alignment/tiny/000005_5a16be21.root', '5a16be219a01814468433e5da53d4f2d', 370003, 141, 1433, 162, 1977, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (36, 'TimeProjection_Alignment/tiny/000004_c458eda3.root', 'c458eda3a1f8b506fb993775cdf1463c', 805238, 116, 7512, 141, 1433, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (37, 'TimeProjection_Alignment/tiny/000003_3234be4f.root', '3234be4f175d29e99ac5c3e41a01dc19', 206643, 77, 377, 110, 7916, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (38, 'TimeProjection_Alignment/tiny/000002_155a9964.root', '155a99643cd799a6c41863e13ae3369f', 88465, 52, 1428, 77, 377, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (39, 'TimeProjection_Alignment/tiny/000001_8599c160.root', '8599c1601c8ddbabc06fe7346d5cb159', 548228, 19, 4173, 52, 1428, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (40, 'TimeProjection_Alignment/tiny/000000_de7af95c.root', 'de7af95c60b87ff9c17c06da48049850', 912279, 1, 0, 19, 4173, '1', '2026-11-29 02:21:41.737358+00', '2026-11-29 02:21:41.737358+00', DEFAULT, 4, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (41, 'TransitionRadiation_Alignment/tiny/000009_c3e09a07.root', 'c3e09a077eac44b748c395b9d22c182e', 803313, 485, 1644, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (42, 'TransitionRadiation_Alignment/tiny/000008_395e251d.root', '395e251dcb5ce8da001fae53dca0ef7c', 235978, 436, 4233, 485, 1644, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (43, 'TransitionRadiation_Alignment/tiny/000007_ec2dcce7.root', 'ec2dcce73d214894bfc5b8e965d35307', 968388, 382, 2942, 427, 2338, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (44, 'TransitionRadiation_Alignment/tiny/000006_314f793b.root', '314f793b999489722496e2e87fa7318e', 202975, 329, 2701, 382, 2942, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (45, 'TransitionRadiation_Alignment/tiny/000005_9b7e7fcc.root', '9b7e7fcc909dc4e5ee5f419fdd4aefe2', 637903, 263, 3309, 329, 2701, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (46, 'TransitionRadiation_Alignment/tiny/000004_16beb110.root', '16beb1109a73d473ab23242fc9c589f6', 94163, 213, 5634, 263, 3309, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (47, 'TransitionRadiation_Alignment/tiny/000003_5587a00b.root', '5587a00bafb5058cb1c3de73cb686c8a', 351330, 163, 3409, 213, 5634, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (48, 'TransitionRadiation_Alignment/tiny/000002_56f787c6.root', '56f787c6d7f8e5fa3e29b3b19f591ebb', 357216, 92, 1073, 152, 5439, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (49, 'TransitionRadiation_Alignment/tiny/000001_9773574d.root', '9773574d8cf2ee0c2dd5d11a75dbc603', 621341, 48, 2445, 92, 1073, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (50, 'TransitionRadiation_Alignment/tiny/000000_998a336c.root', '998a336c4b8bb7771c184fd0bc9aa46a', 629899, 1, 0, 48, 2445, '1', '2026-11-29 02:21:41.738378+00', '2026-11-29 02:21:41.738378+00', DEFAULT, 5, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (51, 'TimeOfFlight_Alignment/tiny/000009_167dd8d1.root', '167dd8d197acf799eae7ea2236247695', 93125, 118, 2478, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (52, 'TimeOfFlight_Alignment/tiny/000008_519b7fae.root', '519b7faecf82fdaa66947d5e74c950d4', 335263, 105, 2176, 118, 2478, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (53, 'TimeOfFlight_Alignment/tiny/000007_2255c460.root', '2255c4601d7b2791a396f577c52fc414', 141636, 89, 3839, 105, 2176, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (54, 'TimeOfFlight_Alignment/tiny/000006_5ef532bb.root', '5ef532bba4af08d4fbbf2ca59543c3fe', 389947, 68, 8509, 89, 3839, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (55, 'TimeOfFlight_Alignment/tiny/000005_2be916cb.root', '2be916cb440b94666094a68d481ac650', 180857, 56, 3898, 68, 8509, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (56, 'TimeOfFlight_Alignment/tiny/000004_c270054a.root', 'c270054a40f3d9b383fb565f4b0f7a84', 797416, 47, 5531, 56, 3898, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (57, 'TimeOfFlight_Alignment/tiny/000003_4f731055.root', '4f7310558686cfb7bf77a8433041e7da', 326425, 34, 4400, 47, 5531, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (58, 'TimeOfFlight_Alignment/tiny/000002_7a01321c.root', '7a01321c6fc619bdc5b113a59f290364', 500731, 21, 1792, 31, 5911, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (59, 'TimeOfFlight_Alignment/tiny/000001_240a3b20.root', '240a3b202b210be077d0fb7384dc905c', 148619, 10, 890, 21, 1792, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (60, 'TimeOfFlight_Alignment/tiny/000000_ba5cb19d.root', 'ba5cb19daf779662b7a9301839475011', 764339, 1, 0, 10, 890, '1', '2026-11-29 02:21:41.739148+00', '2026-11-29 02:21:41.739148+00', DEFAULT, 6, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (61, 'Cherenkov_Alignment/tiny/000009_21aa2660.root', '21aa26602929c1bc907e2900f701e736', 138890, 268, 7670, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (62, 'Cherenkov_Alignment/tiny/000008_55206b27.root', '55206b274daa037860d593d6111a8157', 349678, 232, 9153, 268, 7670, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (63, 'Cherenkov_Alignment/tiny/000007_1998bae5.root', '1998bae54bfe8be42b3d84e53fb80deb', 105843, 200, 4636, 232, 9153, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (64, 'Cherenkov_Alignment/tiny/000006_2fd09500.root', '2fd09500f18432919c5ca048c1fa219c', 196849, 166, 1431, 200, 4636, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (65, 'Cherenkov_Alignment/tiny/000005_6a635039.root', '6a635039c939b3fb1bfa351d4f3f91bf', 436765, 144, 2172, 166, 1431, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (66, 'Cherenkov_Alignment/tiny/000004_f471880d.root', 'f471880d4be4abb2e5a410c360d1ed33', 1002240, 114, 8898, 144, 2172, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (67, 'Cherenkov_Alignment/tiny/000003_36702f1c.root', '36702f1cfad0d2199a1b4df3d064a0e0', 223978, 92, 1941, 114, 8898, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (68, 'Cherenkov_Alignment/tiny/000002_4a98666c.root', '4a98666cb5742fcf1ab0d9ea32f42efe', 306542, 55, 3836, 92, 1941, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (69, 'Cherenkov_Alignment/tiny/000001_123a19d4.root', '123a19d43ea9d6cb9fd6df856c8a8dde', 75657, 27, 1583, 55, 3836, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (70, 'Cherenkov_Alignment/tiny/000000_ee2652e0.root', 'ee2652e078c5aa51053a448866514d2a', 976461, 1, 0, 27, 1583, '1', '2026-11-29 02:21:41.739773+00', '2026-11-29 02:21:41.739773+00', DEFAULT, 7, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (71, 'ElectromagneticCalorimeter_Alignment/tiny/000009_8e1f4b8f.root', '8e1f4b8fcc7e9cb04a29934c670e2bc5', 583132, 486, 2550, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (72, 'ElectromagneticCalorimeter_Alignment/tiny/000008_9897f8da.root', '9897f8da7c82ce5ee1340380b22590af', 626023, 431, 2108, 486, 2550, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (73, 'ElectromagneticCalorimeter_Alignment/tiny/000007_d4f5365c.root', 'd4f5365c331f61e8ddf6cf5de225bb06', 873275, 383, 2502, 431, 2108, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (74, 'ElectromagneticCalorimeter_Alignment/tiny/000006_bbab0400.root', 'bbab04007dca41c04f038aacd378d3ab', 769688, 328, 2419, 383, 2502, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (75, 'ElectromagneticCalorimeter_Alignment/tiny/000005_1232e34f.root', '1232e34f88b6919bd4ef569f1686aa51', 75542, 289, 1718, 328, 2419, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (76, 'ElectromagneticCalorimeter_Alignment/tiny/000004_a6a4bee3.root', 'a6a4bee32d0b7aee14178af67ec4991a', 683571, 226, 853, 289, 1718, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (77, 'ElectromagneticCalorimeter_Alignment/tiny/000003_44911142.root', '44911142024628e9aaffdfe9bb97a9b2', 281849, 173, 154, 226, 853, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (78, 'ElectromagneticCalorimeter_Alignment/tiny/000002_045cf113.root', '045cf11374e39f7efbae5c580623df4d', 18871, 116, 4556, 173, 154, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (79, 'ElectromagneticCalorimeter_Alignment/tiny/000001_2264ad8b.root', '2264ad8b72868730d09bb1def8ae5df6', 141874, 61, 2113, 116, 4556, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (80, 'ElectromagneticCalorimeter_Alignment/tiny/000000_b09c00b9.root', 'b09c00b931fcbdf63a83ed93342bb92f', 724392, 1, 0, 61, 2113, '1', '2026-11-29 02:21:41.740326+00', '2026-11-29 02:21:41.740326+00', DEFAULT, 8, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (81, 'HadronicCalorimeter_Alignment/tiny/000009_736d3de5.root', '736d3de5c35405af5dac3c3358d19167', 473787, 267, 1392, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (82, 'HadronicCalorimeter_Alignment/tiny/000008_43ef4d72.root', '43ef4d72b2826f74cbf55d5df6ab4250', 279260, 232, 7705, 267, 1392, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (83, 'HadronicCalorimeter_Alignment/tiny/000007_a53d6955.root', 'a53d695549bd1edefbd14ad65fd3f66c', 677822, 212, 3047, 232, 7705, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (84, 'HadronicCalorimeter_Alignment/tiny/000006_5f222a59.root', '5f222a5984f46c85e7addf0c6dec7335', 390666, 185, 2530, 212, 3047, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (85, 'HadronicCalorimeter_Alignment/tiny/000005_56d69de7.root', '56d69de71ce4d6df3cd8278c92ea8580', 356689, 164, 5496, 185, 2530, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (86, 'HadronicCalorimeter_Alignment/tiny/000004_20b40f63.root', '20b40f6373d75785dd84ce1240358a36', 134952, 139, 4642, 164, 5496, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (87, 'HadronicCalorimeter_Alignment/tiny/000003_acf2043f.root', 'acf2043fc3896a4c26851ebcdf46b663', 709384, 100, 3918, 139, 4642, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (88, 'HadronicCalorimeter_Alignment/tiny/000002_739caddd.root', '739cadddb0445a05e8f4a992dce6949b', 474546, 63, 2336, 100, 3918, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (89, 'HadronicCalorimeter_Alignment/tiny/000001_404d5d21.root', '404d5d21e31245d20496e938746018c2', 264381, 33, 5256, 63, 2336, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (90, 'HadronicCalorimeter_Alignment/tiny/000000_49286431.root', '492864318cd1012010e5eff14cc0e07c', 300654, 1, 0, 33, 5256, '1', '2026-11-29 02:21:41.740809+00', '2026-11-29 02:21:41.740809+00', DEFAULT, 9, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (91, 'ZeroDegreeCalorimeter_Alignment/tiny/000009_6f29a107.root', '6f29a107b97b814530bc82ad15540637', 456322, 250, 7937, 9223372036854775807, 9223372036854775807, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (92, 'ZeroDegreeCalorimeter_Alignment/tiny/000008_b85b80b7.root', 'b85b80b7843507f6f68e999f558318f7', 756128, 225, 7844, 250, 7937, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (93, 'ZeroDegreeCalorimeter_Alignment/tiny/000007_a80e7bb5.root', 'a80e7bb5dc0c2a4e5f3f58b5135fe532', 689359, 201, 9269, 225, 7844, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (94, 'ZeroDegreeCalorimeter_Alignment/tiny/000006_63981e84.root', '63981e849788808429c7fb5c60dab3ae', 408937, 165, 4465, 201, 9269, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (95, 'ZeroDegreeCalorimeter_Alignment/tiny/000005_0d93f7e5.root', '0d93f7e5a8ecaa71c7a7849352142b52', 56615, 137, 1560, 165, 4465, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (96, 'ZeroDegreeCalorimeter_Alignment/tiny/000004_97af5d6d.root', '97af5d6d5b3476de3e1119a94e020f62', 622301, 112, 6320, 137, 1560, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (97, 'ZeroDegreeCalorimeter_Alignment/tiny/000003_f5ef820c.root', 'f5ef820c0f2bbf1ef22f69aa926f57a6', 1008352, 88, 2423, 112, 6320, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (98, 'ZeroDegreeCalorimeter_Alignment/tiny/000002_540e27a0.root', '540e27a0e5a37633fef38a157561a64e', 345290, 55, 6152, 88, 2423, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (99, 'ZeroDegreeCalorimeter_Alignment/tiny/000001_80b7d7ac.root', '80b7d7ac64b73b752e4ddc089e61aefa', 528229, 34, 4247, 55, 6152, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);
INSERT INTO public."PayloadIOV" VALUES (100, 'ZeroDegreeCalorimeter_Alignment/tiny/000000_0129ce2d.root', '0129ce2dd278faff874e8e01e51725ac', 5764, 1, 0, 34, 4247, '1', '2026-11-29 02:21:41.741261+00', '2026-11-29 02:21:41.741261+00', DEFAULT, 10, 1, NULL, NULL);

INSERT INTO public."PayloadList" VALUES (1, 'Pixel_Alignment_1', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 1, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (2, 'SiliconStrip_Alignment_2', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 2, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (3, 'DriftChamber_Alignment_3', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 3, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (4, 'TimeProjection_Alignment_4', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 4, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (5, 'TransitionRadiation_Alignment_5', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 5, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (6, 'TimeOfFlight_Alignment_6', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 6, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (7, 'Cherenkov_Alignment_7', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 7, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (8, 'ElectromagneticCalorimeter_Alignment_8', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 8, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (9, 'HadronicCalorimeter_Alignment_9', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 9, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);
INSERT INTO public."PayloadList" VALUES (10, 'ZeroDegreeCalorimeter_Alignment_10', '', '2026-11-29 02:21:41.724692+00', '2026-11-29 02:21:41.724692+00', 10, 1, 10, 1, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, 0);

INSERT INTO public."PayloadListMembership" VALUES (1, 1, 1, 'Pixel_Alignment_1', 'Pixel_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (2, 1, 2, 'SiliconStrip_Alignment_2', 'SiliconStrip_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (3, 1, 3, 'DriftChamber_Alignment_3', 'DriftChamber_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (4, 1, 4, 'TimeProjection_Alignment_4', 'TimeProjection_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (5, 1, 5, 'TransitionRadiation_Alignment_5', 'TransitionRadiation_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (6, 1, 6, 'TimeOfFlight_Alignment_6', 'TimeOfFlight_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (7, 1, 7, 'Cherenkov_Alignment_7', 'Cherenkov_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (8, 1, 8, 'ElectromagneticCalorimeter_Alignment_8', 'ElectromagneticCalorimeter_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (9, 1, 9, 'HadronicCalorimeter_Alignment_9', 'HadronicCalorimeter_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);
INSERT INTO public."PayloadListMembership" VALUES (10, 1, 10, 'ZeroDegreeCalorimeter_Alignment_10', 'ZeroDegreeCalorimeter_Alignment', '2026-11-29 02:21:41.724692+00', 1, NULL);

INSERT INTO public."PayloadListVersion" VALUES (1, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (2, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (3, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (4, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (5, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (6, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (7, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (8, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (9, 1, 1, 10, NULL, NULL);
INSERT INTO public."PayloadListVersion" VALUES (10, 1, 1, 10, NULL, NULL);

INSERT INTO public."PayloadType" VALUES (1, 'Pixel_Alignment', '', '2026-11-29 02:21:41.717519+00');
INSERT INTO public."PayloadType" VALUES (2, 'SiliconStrip_Alignment', '', '2026-11-29 02:21:41.718767+00');
INSERT INTO public."PayloadType" VALUES (3, 'DriftChamber_Alignment', '', '2026-11-29 02:21:41.719686+00');
INSERT INTO public."PayloadType" VALUES (4, 'TimeProjection_Alignment', '', '2026-11-29 02:21:41.720455+00');
INSERT INTO public."PayloadType" VALUES (5, 'TransitionRadiation_Alignment', '', '2026-11-29 02:21:41.721155+00');
INSERT INTO public."PayloadType" VALUES (6, 'TimeOfFlight_Alignment', '', '2026-11-29 02:21:41.721935+00');
INSERT INTO public."PayloadType" VALUES (7, 'Cherenkov_Alignment', '', '2026-11-29 02:21:41.722594+00');
INSERT INTO public."PayloadType" VALUES (8, 'ElectromagneticCalorimeter_Alignment', '', '2026-11-29 02:21:41.723227+00');
INSERT INTO public."PayloadType" VALUES (9, 'HadronicCalorimeter_Alignment', '', '2026-11-29 02:21:41.723859+00');
INSERT INTO public."PayloadType" VALUES (10, 'ZeroDegreeCalorimeter_Alignment', '', '2026-11-29 02:21:41.724448+00');

INSERT INTO public."Restoration" VALUES (1, '2026-11-29 02:21:40.499623+00', 1, '[]', 'The first timeline that was recorded.', '7713412920709295633-00000001');

INSERT INTO public.auth_permission VALUES (1, 'Can add global tag status', 1, 'add_globaltagstatus');
INSERT INTO public.auth_permission VALUES (2, 'Can change global tag status', 1, 'change_globaltagstatus');
INSERT INTO public.auth_permission VALUES (3, 'Can delete global tag status', 1, 'delete_globaltagstatus');
INSERT INTO public.auth_permission VALUES (4, 'Can view global tag status', 1, 'view_globaltagstatus');
INSERT INTO public.auth_permission VALUES (5, 'Can add global tag', 2, 'add_globaltag');
INSERT INTO public.auth_permission VALUES (6, 'Can change global tag', 2, 'change_globaltag');
INSERT INTO public.auth_permission VALUES (7, 'Can delete global tag', 2, 'delete_globaltag');
INSERT INTO public.auth_permission VALUES (8, 'Can view global tag', 2, 'view_globaltag');
INSERT INTO public.auth_permission VALUES (9, 'Can add payload type', 3, 'add_payloadtype');
INSERT INTO public.auth_permission VALUES (10, 'Can change payload type', 3, 'change_payloadtype');
INSERT INTO public.auth_permission VALUES (11, 'Can delete payload type', 3, 'delete_payloadtype');
INSERT INTO public.auth_permission VALUES (12, 'Can view payload type', 3, 'view_payloadtype');
INSERT INTO public.auth_permission VALUES (13, 'Can add payload list', 4, 'add_payloadlist');
INSERT INTO public.auth_permission VALUES (14, 'Can change payload list', 4, 'change_payloadlist');
INSERT INTO public.auth_permission VALUES (15, 'Can delete payload list', 4, 'delete_payloadlist');
INSERT INTO public.auth_permission VALUES (16, 'Can view payload list', 4, 'view_payloadlist');
INSERT INTO public.auth_permission VALUES (17, 'Can add payload iov', 5, 'add_payloadiov');
INSERT INTO public.auth_permission VALUES (18, 'Can change payload iov', 5, 'change_payloadiov');
INSERT INTO public.auth_permission VALUES (19, 'Can delete payload iov', 5, 'delete_payloadiov');
INSERT INTO public.auth_permission VALUES (20, 'Can view payload iov', 5, 'view_payloadiov');
INSERT INTO public.auth_permission VALUES (21, 'Can add change of a global tag', 6, 'add_globaltagchange');
INSERT INTO public.auth_permission VALUES (22, 'Can change change of a global tag', 6, 'change_globaltagchange');
INSERT INTO public.auth_permission VALUES (23, 'Can delete change of a global tag', 6, 'delete_globaltagchange');
INSERT INTO public.auth_permission VALUES (24, 'Can view change of a global tag', 6, 'view_globaltagchange');
INSERT INTO public.auth_permission VALUES (25, 'Can add payload list version', 7, 'add_payloadlistversion');
INSERT INTO public.auth_permission VALUES (26, 'Can change payload list version', 7, 'change_payloadlistversion');
INSERT INTO public.auth_permission VALUES (27, 'Can delete payload list version', 7, 'delete_payloadlistversion');
INSERT INTO public.auth_permission VALUES (28, 'Can view payload list version', 7, 'view_payloadlistversion');
INSERT INTO public.auth_permission VALUES (29, 'Can add payload iov history', 8, 'add_payloadiovhistory');
INSERT INTO public.auth_permission VALUES (30, 'Can change payload iov history', 8, 'change_payloadiovhistory');
INSERT INTO public.auth_permission VALUES (31, 'Can delete payload iov history', 8, 'delete_payloadiovhistory');
INSERT INTO public.auth_permission VALUES (32, 'Can view payload iov history', 8, 'view_payloadiovhistory');
INSERT INTO public.auth_permission VALUES (33, 'Can add payload list membership', 9, 'add_payloadlistmembership');
INSERT INTO public.auth_permission VALUES (34, 'Can change payload list membership', 9, 'change_payloadlistmembership');
INSERT INTO public.auth_permission VALUES (35, 'Can delete payload list membership', 9, 'delete_payloadlistmembership');
INSERT INTO public.auth_permission VALUES (36, 'Can view payload list membership', 9, 'view_payloadlistmembership');
INSERT INTO public.auth_permission VALUES (37, 'Can add deleted global tag', 10, 'add_deletedglobaltag');
INSERT INTO public.auth_permission VALUES (38, 'Can change deleted global tag', 10, 'change_deletedglobaltag');
INSERT INTO public.auth_permission VALUES (39, 'Can delete deleted global tag', 10, 'delete_deletedglobaltag');
INSERT INTO public.auth_permission VALUES (40, 'Can view deleted global tag', 10, 'view_deletedglobaltag');
INSERT INTO public.auth_permission VALUES (41, 'Can add access rule', 11, 'add_accessrule');
INSERT INTO public.auth_permission VALUES (42, 'Can change access rule', 11, 'change_accessrule');
INSERT INTO public.auth_permission VALUES (43, 'Can delete access rule', 11, 'delete_accessrule');
INSERT INTO public.auth_permission VALUES (44, 'Can view access rule', 11, 'view_accessrule');
INSERT INTO public.auth_permission VALUES (45, 'Can add api token', 12, 'add_apitoken');
INSERT INTO public.auth_permission VALUES (46, 'Can change api token', 12, 'change_apitoken');
INSERT INTO public.auth_permission VALUES (47, 'Can delete api token', 12, 'delete_apitoken');
INSERT INTO public.auth_permission VALUES (48, 'Can view api token', 12, 'view_apitoken');
INSERT INTO public.auth_permission VALUES (49, 'Can add revoked token', 13, 'add_revokedtoken');
INSERT INTO public.auth_permission VALUES (50, 'Can change revoked token', 13, 'change_revokedtoken');
INSERT INTO public.auth_permission VALUES (51, 'Can delete revoked token', 13, 'delete_revokedtoken');
INSERT INTO public.auth_permission VALUES (52, 'Can view revoked token', 13, 'view_revokedtoken');
INSERT INTO public.auth_permission VALUES (53, 'Can add change of access', 14, 'add_accesschange');
INSERT INTO public.auth_permission VALUES (54, 'Can change change of access', 14, 'change_accesschange');
INSERT INTO public.auth_permission VALUES (55, 'Can delete change of access', 14, 'delete_accesschange');
INSERT INTO public.auth_permission VALUES (56, 'Can view change of access', 14, 'view_accesschange');
INSERT INTO public.auth_permission VALUES (57, 'Can add idempotency record', 15, 'add_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (58, 'Can change idempotency record', 15, 'change_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (59, 'Can delete idempotency record', 15, 'delete_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (60, 'Can view idempotency record', 15, 'view_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (61, 'Can add database property', 16, 'add_databaseproperty');
INSERT INTO public.auth_permission VALUES (62, 'Can change database property', 16, 'change_databaseproperty');
INSERT INTO public.auth_permission VALUES (63, 'Can delete database property', 16, 'delete_databaseproperty');
INSERT INTO public.auth_permission VALUES (64, 'Can view database property', 16, 'view_databaseproperty');
INSERT INTO public.auth_permission VALUES (65, 'Can add restoration', 17, 'add_restoration');
INSERT INTO public.auth_permission VALUES (66, 'Can change restoration', 17, 'change_restoration');
INSERT INTO public.auth_permission VALUES (67, 'Can delete restoration', 17, 'delete_restoration');
INSERT INTO public.auth_permission VALUES (68, 'Can view restoration', 17, 'view_restoration');
INSERT INTO public.auth_permission VALUES (69, 'Can add listed payload iov', 18, 'add_listedpayloadiov');
INSERT INTO public.auth_permission VALUES (70, 'Can change listed payload iov', 18, 'change_listedpayloadiov');
INSERT INTO public.auth_permission VALUES (71, 'Can delete listed payload iov', 18, 'delete_listedpayloadiov');
INSERT INTO public.auth_permission VALUES (72, 'Can view listed payload iov', 18, 'view_listedpayloadiov');
INSERT INTO public.auth_permission VALUES (73, 'Can add adoption', 19, 'add_adoption');
INSERT INTO public.auth_permission VALUES (74, 'Can change adoption', 19, 'change_adoption');
INSERT INTO public.auth_permission VALUES (75, 'Can delete adoption', 19, 'delete_adoption');
INSERT INTO public.auth_permission VALUES (76, 'Can view adoption', 19, 'view_adoption');
INSERT INTO public.auth_permission VALUES (77, 'Can add adopted tag', 20, 'add_adoptedtag');
INSERT INTO public.auth_permission VALUES (78, 'Can change adopted tag', 20, 'change_adoptedtag');
INSERT INTO public.auth_permission VALUES (79, 'Can delete adopted tag', 20, 'delete_adoptedtag');
INSERT INTO public.auth_permission VALUES (80, 'Can view adopted tag', 20, 'view_adoptedtag');
INSERT INTO public.auth_permission VALUES (81, 'Can add adopted list', 21, 'add_adoptedlist');
INSERT INTO public.auth_permission VALUES (82, 'Can change adopted list', 21, 'change_adoptedlist');
INSERT INTO public.auth_permission VALUES (83, 'Can delete adopted list', 21, 'delete_adoptedlist');
INSERT INTO public.auth_permission VALUES (84, 'Can view adopted list', 21, 'view_adoptedlist');
INSERT INTO public.auth_permission VALUES (85, 'Can add payload type change', 22, 'add_payloadtypechange');
INSERT INTO public.auth_permission VALUES (86, 'Can change payload type change', 22, 'change_payloadtypechange');
INSERT INTO public.auth_permission VALUES (87, 'Can delete payload type change', 22, 'delete_payloadtypechange');
INSERT INTO public.auth_permission VALUES (88, 'Can view payload type change', 22, 'view_payloadtypechange');
INSERT INTO public.auth_permission VALUES (89, 'Can add change request', 23, 'add_changerequest');
INSERT INTO public.auth_permission VALUES (90, 'Can change change request', 23, 'change_changerequest');
INSERT INTO public.auth_permission VALUES (91, 'Can delete change request', 23, 'delete_changerequest');
INSERT INTO public.auth_permission VALUES (92, 'Can view change request', 23, 'view_changerequest');
INSERT INTO public.auth_permission VALUES (93, 'Can add request comment', 24, 'add_requestcomment');
INSERT INTO public.auth_permission VALUES (94, 'Can change request comment', 24, 'change_requestcomment');
INSERT INTO public.auth_permission VALUES (95, 'Can delete request comment', 24, 'delete_requestcomment');
INSERT INTO public.auth_permission VALUES (96, 'Can view request comment', 24, 'view_requestcomment');
INSERT INTO public.auth_permission VALUES (97, 'Can add subscription', 25, 'add_subscription');
INSERT INTO public.auth_permission VALUES (98, 'Can change subscription', 25, 'change_subscription');
INSERT INTO public.auth_permission VALUES (99, 'Can delete subscription', 25, 'delete_subscription');
INSERT INTO public.auth_permission VALUES (100, 'Can view subscription', 25, 'view_subscription');
INSERT INTO public.auth_permission VALUES (101, 'Can add log entry', 26, 'add_logentry');
INSERT INTO public.auth_permission VALUES (102, 'Can change log entry', 26, 'change_logentry');
INSERT INTO public.auth_permission VALUES (103, 'Can delete log entry', 26, 'delete_logentry');
INSERT INTO public.auth_permission VALUES (104, 'Can view log entry', 26, 'view_logentry');
INSERT INTO public.auth_permission VALUES (105, 'Can add permission', 27, 'add_permission');
INSERT INTO public.auth_permission VALUES (106, 'Can change permission', 27, 'change_permission');
INSERT INTO public.auth_permission VALUES (107, 'Can delete permission', 27, 'delete_permission');
INSERT INTO public.auth_permission VALUES (108, 'Can view permission', 27, 'view_permission');
INSERT INTO public.auth_permission VALUES (109, 'Can add group', 28, 'add_group');
INSERT INTO public.auth_permission VALUES (110, 'Can change group', 28, 'change_group');
INSERT INTO public.auth_permission VALUES (111, 'Can delete group', 28, 'delete_group');
INSERT INTO public.auth_permission VALUES (112, 'Can view group', 28, 'view_group');
INSERT INTO public.auth_permission VALUES (113, 'Can add user', 29, 'add_user');
INSERT INTO public.auth_permission VALUES (114, 'Can change user', 29, 'change_user');
INSERT INTO public.auth_permission VALUES (115, 'Can delete user', 29, 'delete_user');
INSERT INTO public.auth_permission VALUES (116, 'Can view user', 29, 'view_user');
INSERT INTO public.auth_permission VALUES (117, 'Can add content type', 30, 'add_contenttype');
INSERT INTO public.auth_permission VALUES (118, 'Can change content type', 30, 'change_contenttype');
INSERT INTO public.auth_permission VALUES (119, 'Can delete content type', 30, 'delete_contenttype');
INSERT INTO public.auth_permission VALUES (120, 'Can view content type', 30, 'view_contenttype');
INSERT INTO public.auth_permission VALUES (121, 'Can add session', 31, 'add_session');
INSERT INTO public.auth_permission VALUES (122, 'Can change session', 31, 'change_session');
INSERT INTO public.auth_permission VALUES (123, 'Can delete session', 31, 'delete_session');
INSERT INTO public.auth_permission VALUES (124, 'Can view session', 31, 'view_session');

INSERT INTO public.django_content_type VALUES (1, 'cdb_rest', 'globaltagstatus');
INSERT INTO public.django_content_type VALUES (2, 'cdb_rest', 'globaltag');
INSERT INTO public.django_content_type VALUES (3, 'cdb_rest', 'payloadtype');
INSERT INTO public.django_content_type VALUES (4, 'cdb_rest', 'payloadlist');
INSERT INTO public.django_content_type VALUES (5, 'cdb_rest', 'payloadiov');
INSERT INTO public.django_content_type VALUES (6, 'cdb_rest', 'globaltagchange');
INSERT INTO public.django_content_type VALUES (7, 'cdb_rest', 'payloadlistversion');
INSERT INTO public.django_content_type VALUES (8, 'cdb_rest', 'payloadiovhistory');
INSERT INTO public.django_content_type VALUES (9, 'cdb_rest', 'payloadlistmembership');
INSERT INTO public.django_content_type VALUES (10, 'cdb_rest', 'deletedglobaltag');
INSERT INTO public.django_content_type VALUES (11, 'cdb_rest', 'accessrule');
INSERT INTO public.django_content_type VALUES (12, 'cdb_rest', 'apitoken');
INSERT INTO public.django_content_type VALUES (13, 'cdb_rest', 'revokedtoken');
INSERT INTO public.django_content_type VALUES (14, 'cdb_rest', 'accesschange');
INSERT INTO public.django_content_type VALUES (15, 'cdb_rest', 'idempotencyrecord');
INSERT INTO public.django_content_type VALUES (16, 'cdb_rest', 'databaseproperty');
INSERT INTO public.django_content_type VALUES (17, 'cdb_rest', 'restoration');
INSERT INTO public.django_content_type VALUES (18, 'cdb_rest', 'listedpayloadiov');
INSERT INTO public.django_content_type VALUES (19, 'cdb_rest', 'adoption');
INSERT INTO public.django_content_type VALUES (20, 'cdb_rest', 'adoptedtag');
INSERT INTO public.django_content_type VALUES (21, 'cdb_rest', 'adoptedlist');
INSERT INTO public.django_content_type VALUES (22, 'cdb_rest', 'payloadtypechange');
INSERT INTO public.django_content_type VALUES (23, 'cdb_rest', 'changerequest');
INSERT INTO public.django_content_type VALUES (24, 'cdb_rest', 'requestcomment');
INSERT INTO public.django_content_type VALUES (25, 'cdb_rest', 'subscription');
INSERT INTO public.django_content_type VALUES (26, 'admin', 'logentry');
INSERT INTO public.django_content_type VALUES (27, 'auth', 'permission');
INSERT INTO public.django_content_type VALUES (28, 'auth', 'group');
INSERT INTO public.django_content_type VALUES (29, 'auth', 'user');
INSERT INTO public.django_content_type VALUES (30, 'contenttypes', 'contenttype');
INSERT INTO public.django_content_type VALUES (31, 'sessions', 'session');

INSERT INTO public.django_migrations VALUES (1, 'contenttypes', '0001_initial', '2026-11-29 02:21:39.418427+00');
INSERT INTO public.django_migrations VALUES (2, 'auth', '0001_initial', '2026-11-29 02:21:39.470351+00');
INSERT INTO public.django_migrations VALUES (3, 'admin', '0001_initial', '2026-11-29 02:21:39.494422+00');
INSERT INTO public.django_migrations VALUES (4, 'admin', '0002_logentry_remove_auto_add', '2026-11-29 02:21:39.510937+00');
INSERT INTO public.django_migrations VALUES (5, 'admin', '0003_logentry_add_action_flag_choices', '2026-11-29 02:21:39.524084+00');
INSERT INTO public.django_migrations VALUES (6, 'contenttypes', '0002_remove_content_type_name', '2026-11-29 02:21:39.559081+00');
INSERT INTO public.django_migrations VALUES (7, 'auth', '0002_alter_permission_name_max_length', '2026-11-29 02:21:39.575449+00');
INSERT INTO public.django_migrations VALUES (8, 'auth', '0003_alter_user_email_max_length', '2026-11-29 02:21:39.59151+00');
INSERT INTO public.django_migrations VALUES (9, 'auth', '0004_alter_user_username_opts', '2026-11-29 02:21:39.606808+00');
INSERT INTO public.django_migrations VALUES (10, 'auth', '0005_alter_user_last_login_null', '2026-11-29 02:21:39.629478+00');
INSERT INTO public.django_migrations VALUES (11, 'auth', '0006_require_contenttypes_0002', '2026-11-29 02:21:39.633648+00');
INSERT INTO public.django_migrations VALUES (12, 'auth', '0007_alter_validators_add_error_messages', '2026-11-29 02:21:39.646789+00');
INSERT INTO public.django_migrations VALUES (13, 'auth', '0008_alter_user_username_max_length', '2026-11-29 02:21:39.664726+00');
INSERT INTO public.django_migrations VALUES (14, 'auth', '0009_alter_user_last_name_max_length', '2026-11-29 02:21:39.679191+00');
INSERT INTO public.django_migrations VALUES (15, 'auth', '0010_alter_group_name_max_length', '2026-11-29 02:21:39.698479+00');
INSERT INTO public.django_migrations VALUES (16, 'auth', '0011_update_proxy_permissions', '2026-11-29 02:21:39.721358+00');
INSERT INTO public.django_migrations VALUES (17, 'auth', '0012_alter_user_first_name_max_length', '2026-11-29 02:21:39.741539+00');
INSERT INTO public.django_migrations VALUES (18, 'cdb_rest', '0001_conditions_database', '2026-11-29 02:21:40.06534+00');
INSERT INTO public.django_migrations VALUES (19, 'cdb_rest', '0002_limits_and_creators', '2026-11-29 02:21:40.138281+00');
INSERT INTO public.django_migrations VALUES (20, 'cdb_rest', '0003_shared_lists', '2026-11-29 02:21:40.363759+00');
INSERT INTO public.django_migrations VALUES (21, 'cdb_rest', '0004_adoption', '2026-11-29 02:21:40.48717+00');
INSERT INTO public.django_migrations VALUES (22, 'cdb_rest', '0005_timelines', '2026-11-29 02:21:40.500506+00');
INSERT INTO public.django_migrations VALUES (23, 'cdb_rest', '0006_descriptions', '2026-11-29 02:21:40.514192+00');
INSERT INTO public.django_migrations VALUES (24, 'cdb_rest', '0007_requests', '2026-11-29 02:21:40.569577+00');
INSERT INTO public.django_migrations VALUES (25, 'sessions', '0001_initial', '2026-11-29 02:21:40.581445+00');

SELECT pg_catalog.setval('public."AccessChange_id_seq"', 1, false);

SELECT pg_catalog.setval('public."AccessRule_id_seq"', 1, false);

SELECT pg_catalog.setval('public."AdoptedList_id_seq"', 1, false);

SELECT pg_catalog.setval('public."AdoptedTag_id_seq"', 1, false);

SELECT pg_catalog.setval('public."Adoption_id_seq"', 1, false);

SELECT pg_catalog.setval('public."ApiToken_id_seq"', 1, false);

SELECT pg_catalog.setval('public."ChangeRequest_id_seq"', 1, false);

SELECT pg_catalog.setval('public."GlobalTagChange_id_seq"', 1, true);

SELECT pg_catalog.setval('public."GlobalTagStatus_id_seq"', 3, true);

SELECT pg_catalog.setval('public."GlobalTag_id_seq"', 1, true);

SELECT pg_catalog.setval('public."IdempotencyRecord_id_seq"', 1, false);

SELECT pg_catalog.setval('public."PayloadIOV_id_seq"', 100, true);

SELECT pg_catalog.setval('public."PayloadListMembership_id_seq"', 10, true);

SELECT pg_catalog.setval('public."PayloadList_id_seq"', 10, true);

SELECT pg_catalog.setval('public."PayloadTypeChange_id_seq"', 1, false);

SELECT pg_catalog.setval('public."PayloadType_id_seq"', 10, true);

SELECT pg_catalog.setval('public."RequestComment_id_seq"', 1, false);

SELECT pg_catalog.setval('public."Restoration_id_seq"', 1, true);

SELECT pg_catalog.setval('public."RevokedToken_id_seq"', 1, false);

SELECT pg_catalog.setval('public."Subscription_id_seq"', 1, false);

SELECT pg_catalog.setval('public.auth_group_id_seq', 1, false);

SELECT pg_catalog.setval('public.auth_group_permissions_id_seq', 1, false);

SELECT pg_catalog.setval('public.auth_permission_id_seq', 124, true);

SELECT pg_catalog.setval('public.auth_user_groups_id_seq', 1, false);

SELECT pg_catalog.setval('public.auth_user_id_seq', 1, false);

SELECT pg_catalog.setval('public.auth_user_user_permissions_id_seq', 1, false);

SELECT pg_catalog.setval('public.cdb_change_number', 1, true);

SELECT pg_catalog.setval('public.django_admin_log_id_seq', 1, false);

SELECT pg_catalog.setval('public.django_content_type_id_seq', 31, true);

SELECT pg_catalog.setval('public.django_migrations_id_seq', 25, true);

ALTER TABLE ONLY public."AccessChange"
    ADD CONSTRAINT "AccessChange_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."AccessRule"
    ADD CONSTRAINT "AccessRule_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."AdoptedList"
    ADD CONSTRAINT "AdoptedList_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."AdoptedTag"
    ADD CONSTRAINT "AdoptedTag_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."Adoption"
    ADD CONSTRAINT "Adoption_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."ApiToken"
    ADD CONSTRAINT "ApiToken_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."ChangeRequest"
    ADD CONSTRAINT "ChangeRequest_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."DatabaseProperty"
    ADD CONSTRAINT "DatabaseProperty_pkey" PRIMARY KEY (name);

ALTER TABLE ONLY public."DeletedGlobalTag"
    ADD CONSTRAINT "DeletedGlobalTag_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."GlobalTagChange"
    ADD CONSTRAINT "GlobalTagChange_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."GlobalTagStatus"
    ADD CONSTRAINT "GlobalTagStatus_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."GlobalTag"
    ADD CONSTRAINT "GlobalTag_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."IdempotencyRecord"
    ADD CONSTRAINT "IdempotencyRecord_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."PayloadIOVHistory"
    ADD CONSTRAINT "PayloadIOVHistory_pkey" PRIMARY KEY (payload_list_id, node, comb_iov);

ALTER TABLE ONLY public."PayloadIOV"
    ADD CONSTRAINT "PayloadIOV_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."PayloadListMembership"
    ADD CONSTRAINT "PayloadListMembership_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."PayloadListVersion"
    ADD CONSTRAINT "PayloadListVersion_pkey" PRIMARY KEY (payload_list_id, number);

ALTER TABLE ONLY public."PayloadList"
    ADD CONSTRAINT "PayloadList_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."PayloadTypeChange"
    ADD CONSTRAINT "PayloadTypeChange_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."PayloadType"
    ADD CONSTRAINT "PayloadType_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."RequestComment"
    ADD CONSTRAINT "RequestComment_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."Restoration"
    ADD CONSTRAINT "Restoration_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."RevokedToken"
    ADD CONSTRAINT "RevokedToken_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."Subscription"
    ADD CONSTRAINT "Subscription_pkey" PRIMARY KEY (id);

ALTER TABLE ONLY public."AccessRule"
    ADD CONSTRAINT access_rule_once UNIQUE (kind, issuer, claim, subject, identity, role, tags, types);

ALTER TABLE ONLY public."AdoptedList"
    ADD CONSTRAINT adopted_list_source UNIQUE (adoption_id, source_id);

ALTER TABLE ONLY public."AdoptedTag"
    ADD CONSTRAINT adopted_tag_source UNIQUE (adoption_id, source_id);

ALTER TABLE ONLY public."Adoption"
    ADD CONSTRAINT adoption_source UNIQUE (source);

ALTER TABLE ONLY public."ApiToken"
    ADD CONSTRAINT api_token_digest UNIQUE (digest);

ALTER TABLE ONLY public."ApiToken"
    ADD CONSTRAINT api_token_name UNIQUE (name);

ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_name_key UNIQUE (name);

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_permission_id_0cd325b0_uniq UNIQUE (group_id, permission_id);

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_codename_01ab375a_uniq UNIQUE (content_type_id, codename);

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_group_id_94350c0c_uniq UNIQUE (user_id, group_id);

ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_permission_id_14a6b632_uniq UNIQUE (user_id, permission_id);

ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_username_key UNIQUE (username);

ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_app_label_model_76bd3d3b_uniq UNIQUE (app_label, model);

ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.django_session
    ADD CONSTRAINT django_session_pkey PRIMARY KEY (session_key);

ALTER TABLE ONLY public."GlobalTagChange"
    ADD CONSTRAINT global_tag_change_revision UNIQUE (global_tag, revision);

ALTER TABLE ONLY public."GlobalTag"
    ADD CONSTRAINT global_tag_name UNIQUE (name);

ALTER TABLE ONLY public."GlobalTagStatus"
    ADD CONSTRAINT global_tag_status_name UNIQUE (name);

ALTER TABLE ONLY public."IdempotencyRecord"
    ADD CONSTRAINT idempotency_record_key UNIQUE (actor, key);

ALTER TABLE ONLY public."PayloadList"
    ADD CONSTRAINT payload_list_name UNIQUE (name);

ALTER TABLE ONLY public."PayloadList"
    ADD CONSTRAINT payload_list_one_per_tag_and_type UNIQUE (global_tag_id, payload_type_id);

ALTER TABLE ONLY public."PayloadType"
    ADD CONSTRAINT payload_type_name UNIQUE (name);

ALTER TABLE ONLY public."Restoration"
    ADD CONSTRAINT restoration_first_revision UNIQUE (first_revision);

ALTER TABLE ONLY public."RevokedToken"
    ADD CONSTRAINT revoked_token_once UNIQUE (issuer, claim, value);

CREATE INDEX "AdoptedList_adoption_id_2e38d32f" ON public."AdoptedList" USING btree (adoption_id);

CREATE INDEX "AdoptedTag_adoption_id_379d706b" ON public."AdoptedTag" USING btree (adoption_id);

CREATE INDEX "DatabaseProperty_name_17f14e14_like" ON public."DatabaseProperty" USING btree (name varchar_pattern_ops);

CREATE INDEX "GlobalTag_status_id_7b5018a3" ON public."GlobalTag" USING btree (status_id);

CREATE INDEX "PayloadList_payload_type_id_7d588918" ON public."PayloadList" USING btree (payload_type_id);

CREATE INDEX "RequestComment_request_id_3e6bf177" ON public."RequestComment" USING btree (request_id);

CREATE INDEX access_change_created ON public."AccessChange" USING btree (created);

CREATE INDEX adopted_list_hash ON public."AdoptedList" USING btree (adoption_id, rows_hash);

CREATE INDEX auth_group_name_a6ea08ec_like ON public.auth_group USING btree (name varchar_pattern_ops);

CREATE INDEX auth_group_permissions_group_id_b120cbf9 ON public.auth_group_permissions USING btree (group_id);

CREATE INDEX auth_group_permissions_permission_id_84c5c92e ON public.auth_group_permissions USING btree (permission_id);

CREATE INDEX auth_permission_content_type_id_2f476e4b ON public.auth_permission USING btree (content_type_id);

CREATE INDEX auth_user_groups_group_id_97559544 ON public.auth_user_groups USING btree (group_id);

CREATE INDEX auth_user_groups_user_id_6a12ed8b ON public.auth_user_groups USING btree (user_id);

CREATE INDEX auth_user_user_permissions_permission_id_1fbb5f2c ON public.auth_user_user_permissions USING btree (permission_id);

CREATE INDEX auth_user_user_permissions_user_id_a95ead1b ON public.auth_user_user_permissions USING btree (user_id);

CREATE INDEX auth_user_username_6821ab7c_like ON public.auth_user USING btree (username varchar_pattern_ops);

CREATE INDEX change_request_open ON public."ChangeRequest" USING btree (requester) WHERE ((state)::text = 'open'::text);

CREATE INDEX change_request_tag ON public."ChangeRequest" USING btree (global_tag);

CREATE INDEX change_request_unmailed ON public."ChangeRequest" USING btree (id) WHERE (NOT ((mailed)::text = (state)::text));

CREATE INDEX django_admin_log_content_type_id_c4bce8eb ON public.django_admin_log USING btree (content_type_id);

CREATE INDEX django_admin_log_user_id_c564eba6 ON public.django_admin_log USING btree (user_id);

CREATE INDEX django_session_expire_date_a5c62663 ON public.django_session USING btree (expire_date);

CREATE INDEX django_session_session_key_c0390e0f_like ON public.django_session USING btree (session_key varchar_pattern_ops);

CREATE INDEX global_tag_change_created ON public."GlobalTagChange" USING btree (global_tag, created);

CREATE INDEX global_tag_change_new ON public."GlobalTagChange" USING btree (number) WHERE ("position" IS NULL);

CREATE INDEX global_tag_change_number ON public."GlobalTagChange" USING btree (number);

CREATE INDEX global_tag_change_position ON public."GlobalTagChange" USING btree ("position");

CREATE INDEX idempotency_record_created ON public."IdempotencyRecord" USING btree (created);

CREATE INDEX payload_iov_history_uses ON public."PayloadIOVHistory" USING brin (payload_url text_bloom_ops (n_distinct_per_range='600', false_positive_rate='0.01'), checksum text_bloom_ops (n_distinct_per_range='600', false_positive_rate='0.01'), payload_url COLLATE "C") WITH (pages_per_range='16') WHERE (row_start IS NULL);

CREATE UNIQUE INDEX payload_iov_lookup ON public."PayloadIOV" USING btree (payload_list_id, comb_iov DESC NULLS LAST) INCLUDE (payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, added_in);

CREATE INDEX payload_iov_uses ON public."PayloadIOV" USING brin (payload_url text_bloom_ops (n_distinct_per_range='600', false_positive_rate='0.01'), checksum text_bloom_ops (n_distinct_per_range='600', false_positive_rate='0.01'), payload_url COLLATE "C") WITH (pages_per_range='16');

CREATE INDEX payload_list_membership_list ON public."PayloadListMembership" USING btree (payload_list_id);

CREATE INDEX payload_list_membership_tag ON public."PayloadListMembership" USING btree (tag_id);

CREATE INDEX payload_list_of_base ON public."PayloadList" USING btree (base_list_id) WHERE (base_list_id IS NOT NULL);

CREATE INDEX payload_list_version ON public."PayloadListVersion" USING btree (payload_list_id, version);

CREATE INDEX payload_list_version_of_base ON public."PayloadListVersion" USING btree (base_list_id) WHERE (base_list_id IS NOT NULL);

CREATE INDEX payload_type_change_type ON public."PayloadTypeChange" USING btree (payload_type);

CREATE TRIGGER cdb_count_deleted_iovs AFTER DELETE ON public."PayloadIOV" REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_count_iovs();

CREATE CONSTRAINT TRIGGER cdb_count_deleted_lists AFTER DELETE ON public."PayloadList" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((old.global_tag_id IS NOT NULL)) EXECUTE FUNCTION public.cdb_count_lists();

CREATE TRIGGER cdb_count_inserted_iovs AFTER INSERT ON public."PayloadIOV" REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_count_iovs();

CREATE CONSTRAINT TRIGGER cdb_count_inserted_lists AFTER INSERT ON public."PayloadList" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.global_tag_id IS NOT NULL)) EXECUTE FUNCTION public.cdb_count_lists();

CREATE TRIGGER cdb_count_truncated_iovs AFTER TRUNCATE ON public."PayloadIOV" FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_count_iovs();

CREATE TRIGGER cdb_count_truncated_lists AFTER TRUNCATE ON public."PayloadList" FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_count_lists();

CREATE TRIGGER cdb_count_updated_iovs AFTER UPDATE ON public."PayloadIOV" REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_count_iovs();

CREATE CONSTRAINT TRIGGER cdb_count_updated_lists AFTER UPDATE ON public."PayloadList" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.global_tag_id IS DISTINCT FROM new.global_tag_id) OR (old.iov_count <> new.iov_count) OR (old.edited <> new.edited))) EXECUTE FUNCTION public.cdb_count_lists();

CREATE TRIGGER cdb_note_deleted_iovs AFTER DELETE ON public."PayloadIOV" REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_note_edited_iovs();

CREATE TRIGGER cdb_note_inserted_iovs AFTER INSERT ON public."PayloadIOV" REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_note_edited_iovs();

CREATE TRIGGER cdb_note_list_of_other_type AFTER UPDATE ON public."PayloadList" FOR EACH ROW WHEN ((new.payload_type_id IS DISTINCT FROM old.payload_type_id)) EXECUTE FUNCTION public.cdb_note_list_of_other_type();

CREATE TRIGGER cdb_note_renamed_type AFTER UPDATE ON public."PayloadType" FOR EACH ROW WHEN (((new.name)::text IS DISTINCT FROM (old.name)::text)) EXECUTE FUNCTION public.cdb_note_renamed_type();

CREATE TRIGGER cdb_note_truncated_iovs AFTER TRUNCATE ON public."PayloadIOV" FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_note_edited_iovs();

CREATE TRIGGER cdb_note_updated_iovs AFTER UPDATE ON public."PayloadIOV" REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.cdb_note_edited_iovs();

ALTER TABLE ONLY public."AdoptedList"
    ADD CONSTRAINT "AdoptedList_adoption_id_2e38d32f_fk_Adoption_id" FOREIGN KEY (adoption_id) REFERENCES public."Adoption"(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public."AdoptedTag"
    ADD CONSTRAINT "AdoptedTag_adoption_id_379d706b_fk_Adoption_id" FOREIGN KEY (adoption_id) REFERENCES public."Adoption"(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public."GlobalTag"
    ADD CONSTRAINT "GlobalTag_status_id_7b5018a3_fk_GlobalTagStatus_id" FOREIGN KEY (status_id) REFERENCES public."GlobalTagStatus"(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public."PayloadIOV"
    ADD CONSTRAINT "PayloadIOV_payload_list_id_37321d74_fk_PayloadList_id" FOREIGN KEY (payload_list_id) REFERENCES public."PayloadList"(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public."PayloadList"
    ADD CONSTRAINT "PayloadList_global_tag_id_2b35c85f_fk_GlobalTag_id" FOREIGN KEY (global_tag_id) REFERENCES public."GlobalTag"(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public."PayloadList"
    ADD CONSTRAINT "PayloadList_payload_type_id_7d588918_fk_PayloadType_id" FOREIGN KEY (payload_type_id) REFERENCES public."PayloadType"(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public."RequestComment"
    ADD CONSTRAINT "RequestComment_request_id_3e6bf177_fk_ChangeRequest_id" FOREIGN KEY (request_id) REFERENCES public."ChangeRequest"(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissio_permission_id_84c5c92e_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_b120cbf9_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_2f476e4b_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_group_id_97559544_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_6a12ed8b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_content_type_id_c4bce8eb_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_user_id_c564eba6_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
