-- Let an unchanged version of a payload list begin with an earlier change. Parameters: list_id, since, number bigint: the earlier
-- change, and one for which the version is stored.
INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count)
SELECT payload_list_id, %(since)s, version, iov_count
FROM "PayloadListVersion"
WHERE payload_list_id = %(list_id)s AND number <= %(number)s
ORDER BY number DESC
LIMIT 1
ON CONFLICT (payload_list_id, number) DO NOTHING
