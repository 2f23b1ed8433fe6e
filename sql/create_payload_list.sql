-- Create a detached payload list of one type, named after the type and its own id; returns the id.
-- Parameters: payload_type_id bigint.
INSERT INTO "PayloadList" (id, name, payload_type_id)
SELECT new.id, payload_type.name || '_' || new.id, payload_type.id
FROM "PayloadType" AS payload_type,
    LATERAL (SELECT nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS id) AS new
WHERE payload_type.id = %(payload_type_id)s
RETURNING id
