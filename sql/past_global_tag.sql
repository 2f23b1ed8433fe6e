-- The attributes of a global tag that exists or was deleted, and of a status: author, description, time of creation; id,
-- description and time of creation of the status (null if there is no such status).
-- Parameters: tag_id bigint, status text: the name of the status.
SELECT tag.author, tag.description, tag.created, status.id, status.description, status.created
FROM (
    SELECT author, description, created FROM "GlobalTag" WHERE id = %(tag_id)s
    UNION ALL
    SELECT author, description, created FROM "DeletedGlobalTag" WHERE id = %(tag_id)s
    LIMIT 1
) AS tag
LEFT JOIN "GlobalTagStatus" AS status ON status.name = %(status)s
