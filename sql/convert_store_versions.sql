-- Store versions of a payload list. Parameters: list_id bigint; since, last bigint: the stay (last null: it has not ended);
--   numbers bigint[], versions integer[], counts bigint[].
-- Another number in a stay that has ended is that of the change by which the list left its former tag: a list that moved from
-- one tag to another has two changes, in any order. It has the version of the stay, which is stored.
DELETE FROM "PayloadListVersion"
WHERE payload_list_id = %(list_id)s AND number > %(since)s AND number < %(last)s AND number <> ALL(%(numbers)s::bigint[]);
INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count)
SELECT %(list_id)s, list_version.*
FROM unnest(%(numbers)s::bigint[], %(versions)s::integer[], %(counts)s::bigint[]) AS list_version
ON CONFLICT (payload_list_id, number) DO UPDATE SET version = EXCLUDED.version, iov_count = EXCLUDED.iov_count
