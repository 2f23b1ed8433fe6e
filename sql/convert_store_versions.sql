-- Store versions of a payload list. Parameters: list_id bigint; numbers bigint[], versions integer[], counts bigint[].
INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count)
SELECT %(list_id)s, list_version.*
FROM unnest(%(numbers)s::bigint[], %(versions)s::integer[], %(counts)s::bigint[]) AS list_version
ON CONFLICT (payload_list_id, number) DO UPDATE SET version = EXCLUDED.version, iov_count = EXCLUDED.iov_count
