-- Set the IOV count of each payload list to the number of its rows. No parameters.
UPDATE "PayloadList" AS list SET iov_count = actual.iovs
FROM (
    SELECT list.id, count(iov.id) AS iovs
    FROM "PayloadList" AS list
    LEFT JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.id
    GROUP BY list.id
) AS actual
WHERE actual.id = list.id AND list.iov_count <> actual.iovs
