-- Add empty unlocked tags up to a number of tags. Parameter: tags int.
INSERT INTO "GlobalTag" (name, status_id)
SELECT 'empty-' || number, status.id
FROM "GlobalTagStatus" AS status
CROSS JOIN generate_series((SELECT count(*) FROM "GlobalTag") + 1, %(tags)s) AS number
WHERE status.name = 'unlocked';
