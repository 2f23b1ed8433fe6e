-- Create a detached payload list of one type, named after the type and its own id; returns the id, or no row without the type.
-- Parameters: payload_type text.
INSERT INTO "PayloadList" (id, name, payload_type_id)
SELECT new.id, payload_type.name || '_' || new.id, payload_type.id
FROM "PayloadType" AS payload_type,
    LATERAL (SELECT nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS id) AS new
WHERE payload_type.name = %(payload_type)s
RETURNING id
