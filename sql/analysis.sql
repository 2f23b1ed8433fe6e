-- Differences, coverage, uses and reasons.


-- name: analysis_settings
-- Settings of this transaction for statements of cdb_rest/analysis/: they read payload lists one after the other by index, and sort
-- the rows of a list in memory.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true),
    set_config('work_mem', '64MB', true)


-- name: window_rows
-- The rows of a payload list in a version that may be valid in a window: those that start in it, and the last one that starts before
-- it; by start.
-- Parameters: since, until numeric: the window. Placeholders: {list}, {version}: where the rows of the list are; {columns}: the columns
--   besides comb_iov.
-- Expected plan: that of the function cdb_iovs_of.
-- An argument with a subquery would keep the function from becoming part of the statement.
SELECT iov.comb_iov, {columns}
FROM (
    SELECT coalesce((SELECT comb_iov FROM cdb_iov_at({list}, {version}, %(since)s)), %(since)s) AS first OFFSET 0
) AS bound
CROSS JOIN LATERAL cdb_iovs_of({list}, {version}, bound.first, %(until)s) AS iov


-- name: validity_parts
-- The parts of a window in which a payload list has a valid row, in the order of their starts, with the payload. since and until are
-- combined moments, until exclusive.
-- Parameters: since, until numeric: the window; inclusive boolean: whether ends are inclusive. Placeholder: {rows}: `window_rows`.
-- A row is valid from its start up to its end, but not beyond the next start in the list, also if the row there is empty.
-- Expected plan: that of `window_rows`.
SELECT since, until, payload_url, checksum, size, extra
FROM (
    SELECT greatest(iov.comb_iov, %(since)s) AS since,
        least(
            cdb_end(iov.major_iov_end, iov.minor_iov_end, %(inclusive)s),
            lead(iov.comb_iov) OVER (ORDER BY iov.comb_iov ASC NULLS FIRST),
            %(until)s
        ) AS until,
        payload_url, checksum, size, extra
    FROM (
        {rows}
    ) AS iov
) AS part
WHERE since < until


-- name: overlaid_parts
-- The parts of a window in which a payload is valid in the first of two or more payload lists that have a valid row, in the order of
-- their starts: the columns of `validity_parts`. Neighbours may have the same payload.
-- Placeholders: {upper}: `validity_parts` of the first list; {lower}: the parts of the others.
-- Each start of a part, and each end that no part follows at once, is an edge. Between edges nothing changes.
SELECT since, until, payload[1] AS payload_url, payload[2] AS checksum, payload[3]::bigint AS size, payload[4] AS extra
FROM (
    SELECT since, lead(since) OVER (ORDER BY since) AS until,
        CASE WHEN upper_payload[1] IS NULL THEN lower_payload ELSE upper_payload END AS payload
    FROM (
        SELECT since, cdb_latest(payload) FILTER (WHERE is_upper) OVER until_now AS upper_payload,
            cdb_latest(payload) FILTER (WHERE NOT is_upper) OVER until_now AS lower_payload
        FROM (
            SELECT is_upper, edge.since, edge.payload
            FROM (
                SELECT is_upper, since, until, lead(since) OVER (PARTITION BY is_upper ORDER BY since) AS following, payload
                FROM (
                    SELECT true AS is_upper, since, until, ARRAY[payload_url, checksum, size::text, extra] AS payload
                    FROM (
                        {upper}
                    ) AS upper_part
                    UNION ALL
                    SELECT false, since, until, ARRAY[payload_url, checksum, size::text, extra]
                    FROM (
                        {lower}
                    ) AS lower_part
                ) AS part
            ) AS single
            CROSS JOIN LATERAL (
                SELECT single.since, single.payload
                UNION ALL
                SELECT single.until, ARRAY[NULL::text] WHERE single.following IS DISTINCT FROM single.until
            ) AS edge
        ) AS event
        WINDOW until_now AS (ORDER BY since)
    ) AS state
) AS step
WHERE since < until AND payload[1] IS NOT NULL


-- name: differences
-- The intervals in which two global tags have different payloads, by payload type in the order of the parameters, then by start:
-- payload_type, since and until (combined moments, until exclusive), a and b: {key, payload_url, checksum, size, revision} in each tag;
-- the key is null if the tag has no valid payload. The intervals are maximal: neighbours with the same keys are merged.
-- Parameters: by_checksum boolean: the key is the checksum, if there is one, instead of the URL; and those of `validity_parts`.
--   Placeholders: {lists}: the payload types with their lists; {a_parts}, {b_parts}: `validity_parts` or `overlaid_parts` of the lists
--   of each tag.
-- Parts that both tags have are left out first, so that only the others are merged.
-- Expected plan: for each payload type two of the scans of `validity_parts`, one after the other; nothing is sorted across types.
SELECT list.payload_type, span.since, span.until, span.a, span.b
FROM {lists}
CROSS JOIN LATERAL (
    SELECT since, lead(since) OVER (ORDER BY since) AS until, a, b, differs
    FROM (
        SELECT step.*, differs IS DISTINCT FROM lag(differs) OVER (ORDER BY since)
            OR (a[1], b[1]) IS DISTINCT FROM lag((a[1], b[1])) OVER (ORDER BY since) AS is_edge
        FROM (
            SELECT since, a, b, a[1] IS DISTINCT FROM b[1] AS differs
            FROM (
                SELECT since, cdb_latest(payload) FILTER (WHERE side = 'a') OVER until_now AS a,
                    cdb_latest(payload) FILTER (WHERE side = 'b') OVER until_now AS b
                FROM (
                    SELECT side, edge.since, edge.payload
                    FROM (
                        SELECT part.side, part.since, part.until,
                            lead(part.since) OVER (PARTITION BY part.side ORDER BY part.since) AS following,
                            ARRAY[part.key, part.payload_url, part.checksum, part.size::text, part.extra] AS payload
                        FROM (
                            SELECT *, CASE WHEN %(by_checksum)s AND checksum <> '' THEN checksum ELSE payload_url END AS key
                            FROM (
                                {a_parts}
                            ) AS part
                        ) AS a_part
                        FULL JOIN (
                            SELECT *, CASE WHEN %(by_checksum)s AND checksum <> '' THEN checksum ELSE payload_url END AS key
                            FROM (
                                {b_parts}
                            ) AS part
                        ) AS b_part ON b_part.since = a_part.since
                        CROSS JOIN LATERAL (
                            VALUES
                            ('a', a_part.since, a_part.until, a_part.key, a_part.payload_url, a_part.checksum, a_part.size, a_part.extra),
                            ('b', b_part.since, b_part.until, b_part.key, b_part.payload_url, b_part.checksum, b_part.size, b_part.extra)
                        ) AS part (side, since, until, key, payload_url, checksum, size, extra)
                        WHERE part.since IS NOT NULL
                            AND (a_part.until IS DISTINCT FROM b_part.until OR a_part.key IS DISTINCT FROM b_part.key)
                    ) AS single
                    CROSS JOIN LATERAL (
                        SELECT single.since, single.payload
                        UNION ALL
                        SELECT single.until, ARRAY[NULL::text] WHERE single.following IS DISTINCT FROM single.until
                    ) AS edge
                ) AS event
                WINDOW until_now AS (ORDER BY since)
            ) AS state
        ) AS step
    ) AS marked
    WHERE is_edge
) AS span
WHERE span.differs


-- name: differences_jsonl
-- Send the rows of `differences`, which replace {rows}, to the client as JSON objects, one per line.
-- Parameters: those of the rows. The CSV format is that of `export_jsonl`.
COPY (
SELECT '{"payload_type":' || to_json(found.payload_type) || ',"since":' || cdb_moment_json(found.since)
    || ',"until":' || cdb_end_json(found.until, %(inclusive)s)
    || ',"a":' || CASE WHEN found.a[1] IS NULL THEN 'null' ELSE json_build_object(
        'payload_url', found.a[2], 'checksum', found.a[3], 'size', found.a[4]::bigint, 'revision', found.a[5])::text END
    || ',"b":' || CASE WHEN found.b[1] IS NULL THEN 'null' ELSE json_build_object(
        'payload_url', found.b[2], 'checksum', found.b[3], 'size', found.b[4]::bigint, 'revision', found.b[5])::text END
    || '}'
FROM (
{rows}
) AS found
) TO STDOUT WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')


-- name: keyed_rows
-- The rows of payload lists that may be valid in a window, as six 64-bit integers each: the number of the list, from 1; start, end; and
-- a number that is the same for payloads with the same key, see `differences`; by list, then by start.
-- Parameters: ids bigint[], versions integer[]: where the rows of the lists are; by_checksum boolean; seed bigint: of the hash, so that
--   two payloads with the same number cannot be made; and those of `window_rows`, whose text replaces {rows}.
-- Expected plan: for each list that of `window_rows`, one after the other; nothing is sorted across lists.
COPY (
SELECT list.place, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    hashtextextended(CASE WHEN %(by_checksum)s AND iov.checksum <> '' THEN iov.checksum ELSE iov.payload_url END, %(seed)s)
FROM unnest(%(ids)s::bigint[], %(versions)s::integer[]) WITH ORDINALITY AS list (id, version, place)
CROSS JOIN LATERAL (
    {rows}
) AS iov
) TO STDOUT WITH (FORMAT binary)


-- name: coverage
-- For each payload type: the start of the first part of the window that a payload list covers, the end of the last one, the sums of
-- the lengths of all parts and of their whole numbers (until minus since), and the starts and the ends of the gaps between them; all as
-- combined moments, the ends exclusive. Nulls, and no gaps, if no part is covered.
-- Parameters: those of `validity_parts`. Placeholders: {lists}: the payload types with their lists; {parts}: `validity_parts` or
--   `overlaid_parts` of these lists.
-- Expected plan: for each payload type the scans of `validity_parts`, and a Sort of the parts.
SELECT list.payload_type, found.*
FROM {lists}
CROSS JOIN LATERAL (
    SELECT min(since) AS first_since, max(until) AS last_until, sum(until - since) AS length,
        sum(trunc(until) - trunc(since)) AS whole, array_agg(until) FILTER (WHERE until < following) AS gaps_since,
        array_agg(following) FILTER (WHERE until < following) AS gaps_until
    FROM (
        SELECT since, until, lead(since) OVER (ORDER BY since) AS following
        FROM (
            {parts}
        ) AS part
    ) AS parts
) AS found


-- name: uses_settings
-- Settings of this transaction for `uses`. From its statistics, the planner may expect that the index excludes no pages of the table.
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)


-- name: uses
-- The uses of payloads: rows of payload lists, each with the global tag that has the list, and, if with_removed, those of the past with
-- the change of the tag by which the use ended. By payload URL in byte order, the present ones first, then by tag, payload type and start.
-- Parameters: payload_url, url_pattern, checksum text: exactly one is not null; with_removed boolean.
-- A row that several lists share has a use in each of them. ended is the number of the change by which a use of the past ended.
-- A use of the past is that of a row in one version of its list, while the tag had the list. It is left out if only the area of the row
-- changed after it (cdb_rest/models/history.py), because the use went on then, and if no revision of the tag that had it can be read.
-- Expected plan: Bitmap Heap Scans by payload_iov_uses and payload_iov_history_uses; for each row a scan of payload_list_of_base; for
-- each use of the past two scans of payload_list_version.
WITH found AS (
    SELECT payload_list_id, comb_iov, id AS iov_id, added_in, NULL::integer AS removed_in, payload_url, checksum, size, extra,
        major_iov, minor_iov, major_iov_end, minor_iov_end
    FROM "PayloadIOV"
    WHERE payload_list_id IS NOT NULL
        AND (%(payload_url)s::text IS NULL OR payload_url = %(payload_url)s)
        AND (%(url_pattern)s::text IS NULL OR payload_url LIKE %(url_pattern)s)
        AND (%(checksum)s::text IS NULL OR checksum = %(checksum)s)
    UNION ALL
    SELECT payload_list_id, comb_iov, iov_id, added_in, removed_in, payload_url, checksum, size, extra,
        major_iov, minor_iov, major_iov_end, minor_iov_end
    FROM "PayloadIOVHistory"
    WHERE row_start IS NULL
        AND (%(payload_url)s::text IS NULL OR payload_url = %(payload_url)s)
        AND (%(url_pattern)s::text IS NULL OR payload_url LIKE %(url_pattern)s)
        AND (%(checksum)s::text IS NULL OR checksum = %(checksum)s)
),
iov AS (
    SELECT payload_list_id, added_in, removed_in, payload_url, checksum, size, extra, major_iov, minor_iov, major_iov_end,
        minor_iov_end
    FROM found
    WHERE removed_in IS NULL OR %(with_removed)s
        AND NOT EXISTS (
            SELECT FROM "PayloadIOV" AS same
            WHERE same.payload_list_id = found.payload_list_id AND same.comb_iov = found.comb_iov AND same.id = found.iov_id
                AND (same.major_iov_end, same.minor_iov_end) = (found.major_iov_end, found.minor_iov_end)
                AND same.added_in = found.removed_in
        )
        AND NOT EXISTS (
            SELECT FROM "PayloadIOVHistory" AS same
            WHERE same.payload_list_id = found.payload_list_id AND same.comb_iov = found.comb_iov AND same.iov_id = found.iov_id
                AND (same.major_iov_end, same.minor_iov_end) = (found.major_iov_end, found.minor_iov_end)
                AND same.added_in = found.removed_in
        )
    UNION ALL
    SELECT sharing.payload_list_id, sharing.version, NULL, payload_url, checksum, size, extra, major_iov, minor_iov, major_iov_end,
        minor_iov_end
    FROM found
    CROSS JOIN LATERAL (
        SELECT list.id AS payload_list_id, list.version, list.base_version
        FROM "PayloadList" AS list
        WHERE list.base_list_id = found.payload_list_id
        UNION ALL
        -- A list that shared rows until it was deleted never had rows of its own.
        SELECT former.payload_list_id, min(former.version), former.base_version
        FROM "PayloadListVersion" AS former
        WHERE %(with_removed)s AND former.base_list_id = found.payload_list_id
            AND NOT EXISTS (SELECT FROM "PayloadList" AS list WHERE list.id = former.payload_list_id)
            AND NOT EXISTS (SELECT FROM "PayloadIOVHistory" AS own WHERE own.payload_list_id = former.payload_list_id)
        GROUP BY former.payload_list_id, former.base_version
    ) AS sharing
    WHERE found.added_in <= sharing.base_version AND (found.removed_in IS NULL OR found.removed_in > sharing.base_version)
)
SELECT coalesce(use.global_tag, change.global_tag) AS global_tag, use.payload_type, use.payload_list, use.payload_url, use.checksum,
    use.size, use.major_iov, use.minor_iov, use.major_iov_end, use.minor_iov_end, use.extra AS revision,
    change.revision AS removed_revision, change.created AS removed_time, change.actor AS removed_actor, change.action AS removed_action, change.comment AS removed_comment,
    use.payload_list_id, use.ended
FROM (
    SELECT tag.name AS global_tag, payload_type.name AS payload_type, list.name AS payload_list, iov.*, NULL::bigint AS tag_id,
        NULL::bigint AS ended
    FROM iov
    JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
    WHERE iov.removed_in IS NULL
    UNION ALL
    SELECT NULL, member.payload_type, member.name, iov.*, member.tag_id, least(member.removed_in, removal.number)
    FROM iov
    JOIN "PayloadListMembership" AS member ON member.payload_list_id = iov.payload_list_id
    LEFT JOIN LATERAL (
        SELECT max(number) AS number FROM "PayloadListVersion"
        WHERE payload_list_id = iov.payload_list_id AND version = iov.added_in
    ) AS addition ON true
    LEFT JOIN LATERAL (
        SELECT max(number) AS number FROM "PayloadListVersion"
        WHERE payload_list_id = iov.payload_list_id AND version = iov.removed_in
    ) AS removal ON true
    WHERE %(with_removed)s AND (iov.removed_in IS NOT NULL OR member.removed_in IS NOT NULL)
        AND coalesce(addition.number < member.removed_in, true)
        AND coalesce(removal.number > member.added_in, true)
) AS use
LEFT JOIN "GlobalTagChange" AS change ON change.tag_id = use.tag_id AND change.number = use.ended
WHERE use.tag_id IS NULL OR (
    SELECT former.has_history FROM "GlobalTagChange" AS former
    WHERE former.global_tag = change.global_tag AND former.revision < change.revision
    ORDER BY former.revision DESC
    LIMIT 1
)
ORDER BY use.payload_url COLLATE "C", change.number IS NOT NULL, coalesce(use.global_tag, change.global_tag) COLLATE "C",
    use.payload_type COLLATE "C", use.major_iov, use.minor_iov, change.number


-- name: explanation
-- For each payload type, what a global tag has at a moment, and what it had before each change at which this changed or may have
-- changed, back to the first change before which the payload was another one: the rows of the function cdb_point_at, with
-- payload_type, step (0: the state that is asked for), and is_same (whether the valid payload is that of step 0).
-- Parameters: tag_id, number bigint: the tag and the change, null for the present; payload_types text[]; major, minor bigint: the
--   moment; inclusive boolean.
WITH RECURSIVE walk AS (
    SELECT kind.name AS payload_type, 0 AS step, true AS is_same, point.*
    FROM unnest(%(payload_types)s::text[]) AS kind (name)
    CROSS JOIN LATERAL cdb_point_at(
        %(tag_id)s, kind.name, %(number)s, %(major)s, %(minor)s, %(inclusive)s
    ) AS point
    UNION ALL
    SELECT walk.payload_type, walk.step + 1,
        coalesce(walk.is_valid, false) = coalesce(point.is_valid, false) AND (
            point.is_valid IS NOT TRUE
            OR (walk.payload_url, walk.checksum, walk.size, walk.extra)
                IS NOT DISTINCT FROM (point.payload_url, point.checksum, point.size, point.extra)
        ),
        point.*
    FROM walk
    CROSS JOIN LATERAL cdb_point_at(
        %(tag_id)s, walk.payload_type, walk.began - 1, %(major)s, %(minor)s, %(inclusive)s
    ) AS point
    WHERE walk.is_same AND walk.began IS NOT NULL
)
SELECT * FROM walk ORDER BY payload_type COLLATE "C", step
