-- Delete the attributes of deleted global tags that have no revision with history, up to a number of rows. Returns how many.
-- Parameters: batch integer.
WITH deleted AS (
    DELETE FROM "DeletedGlobalTag"
    WHERE id IN (
        SELECT tag.id
        FROM "DeletedGlobalTag" AS tag
        WHERE NOT EXISTS (
            SELECT FROM "GlobalTagChange" AS change
            WHERE change.tag_id = tag.id AND change.has_history AND change.action <> 'delete'
        )
        LIMIT %(batch)s
    )
    RETURNING 1
)
SELECT count(*) FROM deleted
