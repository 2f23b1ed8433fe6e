-- Create payload lists, each named after its type and its own id, detached or in a global tag. Returns their ids in order.
-- Parameters: payload_type_ids bigint[], global_tag_ids bigint[] (null: detached), one element for each list.
INSERT INTO "PayloadList" (id, name, payload_type_id, global_tag_id)
SELECT new.id, payload_type.name || '_' || new.id, payload_type.id, new.global_tag_id
FROM (
    SELECT nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS id, payload_type_id, global_tag_id, position
    FROM unnest(%(payload_type_ids)s::bigint[], %(global_tag_ids)s::bigint[])
        WITH ORDINALITY AS wanted (payload_type_id, global_tag_id, position)
) AS new
JOIN "PayloadType" AS payload_type ON payload_type.id = new.payload_type_id
ORDER BY new.position
RETURNING id
