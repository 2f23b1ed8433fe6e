-- Copy all payload lists of a global tag, with their IOVs, into another tag that has none. Returns the revision of the source.
-- The IOVs are in version 1 of the new lists; the caller must record a change of the lists.
-- Parameters: source_id, target_id bigint. Placeholders for the payload columns: {payload} and {iov.payload}.
-- The copies are numbered in the order of the lists of the source, in which responses contain them.
-- A single statement sees one snapshot, so the copy is a state that the source really had, in spite of concurrent writes. It
-- takes no lock that blocks readers or writers of the source.
WITH source AS (
    SELECT id, description, payload_type_id, type_name, nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS copy_id
    FROM (
        SELECT list.id, list.description, list.payload_type_id, payload_type.name AS type_name
        FROM "PayloadList" AS list
        JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
        WHERE list.global_tag_id = %(source_id)s
        ORDER BY list.id
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
    JOIN "PayloadIOV" AS iov ON iov.payload_list_id = source.id
)
SELECT tag.revision
FROM "GlobalTag" AS tag
WHERE tag.id = %(source_id)s
