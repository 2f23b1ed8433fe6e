-- Increase all versions of a payload list that are higher than a given one, so that converted versions can have the lower ones.
-- The rows of the history with higher versions move to cdb_later_history. If the list left the tag, the version after that is
-- found as before.
-- Parameters: stay integer; list_id bigint; above, by integer; since bigint: first change of the stay; last bigint: the change by
--   which the list left the tag, or null.
-- Numbers for which the version `above` is stored may be in the stay, because a list that moves from one tag to another has two
-- changes. They get the version that the list then has by the changes of the stay.
WITH later AS (
    DELETE FROM "PayloadIOVHistory" WHERE payload_list_id = %(list_id)s AND removed_in > %(above)s RETURNING *
)
INSERT INTO cdb_later_history SELECT * FROM later;
UPDATE "PayloadIOV" SET added_in = added_in + %(by)s WHERE payload_list_id = %(list_id)s AND added_in > %(above)s;
UPDATE "PayloadList" SET version = version + %(by)s WHERE id = %(list_id)s;
DELETE FROM "PayloadListVersion" WHERE payload_list_id = %(list_id)s AND number = 0 AND version = %(above)s;
UPDATE "PayloadListVersion" AS list_version SET version = version + CASE
    WHEN list_version.version > %(above)s THEN %(by)s
    ELSE (
        SELECT count(DISTINCT step.number)
        FROM cdb_logged_life AS life
        CROSS JOIN LATERAL (VALUES (life.number), (life.end_number)) AS step (number)
        WHERE life.stay = %(stay)s AND step.number > %(since)s AND step.number <= list_version.number
    )
END
WHERE list_version.payload_list_id = %(list_id)s
    AND (list_version.version > %(above)s OR (list_version.version = %(above)s AND list_version.number > %(since)s));
INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count)
SELECT payload_list_id, %(last)s, version, iov_count
FROM "PayloadListVersion"
WHERE payload_list_id = %(list_id)s AND number <= %(last)s
ORDER BY number DESC
LIMIT 1
ON CONFLICT (payload_list_id, number) DO NOTHING
