-- Make a tag with empty lists of the same types as another one's, and pair the lists, for the rest of the transaction.
-- Parameters: source, target text.
INSERT INTO "GlobalTag" (name, status_id) SELECT %(target)s, status_id FROM "GlobalTag" WHERE name = %(source)s;
CREATE TEMPORARY TABLE pair ON COMMIT DROP AS
SELECT list.id AS source_id, nextval(pg_get_serial_sequence('"PayloadList"', 'id')) AS copy_id, list.payload_type_id
FROM "PayloadList" AS list
JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
WHERE tag.name = %(source)s;
INSERT INTO "PayloadList" (id, name, global_tag_id, payload_type_id)
SELECT pair.copy_id, 'bench_' || pair.copy_id, tag.id, pair.payload_type_id
FROM pair
JOIN "GlobalTag" AS tag ON tag.name = %(target)s;
ANALYZE pair;
