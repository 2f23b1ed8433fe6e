-- Delete memberships of payload lists that have ended and that no revision with history needs, up to a number of rows. Returns how
-- many. The changes of a tag are committed in the order of their numbers, so no later revision needs them either.
-- Parameters: batch integer.
WITH deleted AS (
    DELETE FROM "PayloadListMembership"
    WHERE id IN (
        SELECT member.id
        FROM "PayloadListMembership" AS member
        WHERE member.removed_in IS NOT NULL AND NOT EXISTS (
            SELECT FROM "GlobalTagChange" AS change
            WHERE change.tag_id = member.tag_id AND change.number >= member.added_in AND change.number < member.removed_in
                AND change.has_history AND change.action <> 'delete'
        )
        LIMIT %(batch)s
    )
    RETURNING 1
)
SELECT count(*) FROM deleted
