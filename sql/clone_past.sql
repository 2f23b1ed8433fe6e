-- Copy all payload lists that a global tag had after a change, with their IOVs of then, into another tag that has none. Returns
-- whether the history of the change was there, and the number of copied lists.
-- The IOVs are in version 1 of the new lists; the caller must record a change of the lists.
-- Parameters: tag text, revision bigint: the change; tag_id, number bigint: its tag and number; target_id bigint. Placeholders for the payload columns: {payload}
-- and {iov.payload}.
-- The copies are numbered in the order of the lists of then, in which responses contain them. A list whose payload type was
-- deleted is left out. A list that was deleted has no description any more.
-- A single statement sees one snapshot, so no rows can be missing if the history of the change is there.
WITH source AS MATERIALIZED (
    SELECT id, version, description, payload_type_id, type_name,
        nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS copy_id
    FROM (
        SELECT member.payload_list_id AS id, list_version.version, coalesce(list.description, '') AS description,
            payload_type.id AS payload_type_id, payload_type.name AS type_name
        FROM "PayloadListMembership" AS member
        CROSS JOIN LATERAL cdb_version_at(member.payload_list_id, %(number)s) AS list_version (version)
        JOIN "PayloadType" AS payload_type ON payload_type.name = member.payload_type
        LEFT JOIN "PayloadList" AS list ON list.id = member.payload_list_id
        WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
            AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
        ORDER BY member.payload_list_id
    ) AS ordered
),
copied_list AS (
    INSERT INTO "PayloadList" (id, name, description, global_tag_id, payload_type_id)
    SELECT copy_id, type_name || '_' || copy_id, description, %(target_id)s, payload_type_id FROM source
),
copied_iov AS (
    INSERT INTO "PayloadIOV" (
        {payload}, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id, added_in
    )
    SELECT {iov.payload}, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, source.copy_id, 1
    FROM source
    CROSS JOIN LATERAL (
        SELECT {payload}, major_iov, minor_iov, major_iov_end, minor_iov_end
        FROM "PayloadIOV"
        WHERE payload_list_id = source.id AND added_in <= source.version
        UNION ALL
        SELECT {payload}, major_iov, minor_iov, major_iov_end, minor_iov_end
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = source.id AND row_start IS NULL
            AND added_in <= source.version AND removed_in > source.version
    ) AS iov
)
SELECT
    EXISTS (
        SELECT FROM "GlobalTagChange"
        WHERE global_tag = %(tag)s AND revision = %(revision)s AND has_history
    ),
    (SELECT count(*) FROM source)
