-- The stored counts that differ from the rows: kind of object, name, which count, stored value, actual value. No parameters.
-- The counts of a tag are compared with its rows, not with the counts of its lists.
WITH iovs_of_list AS (
    SELECT payload_list_id, count(*) AS iovs FROM "PayloadIOV" WHERE payload_list_id IS NOT NULL GROUP BY payload_list_id
),
actual_list AS (
    SELECT list.name, list.global_tag_id, list.iov_count AS stored, coalesce(iovs_of_list.iovs, 0) AS iovs
    FROM "PayloadList" AS list
    LEFT JOIN iovs_of_list ON iovs_of_list.payload_list_id = list.id
),
actual_tag AS (
    SELECT tag.name, tag.payload_lists_count, tag.payload_iov_count, count(actual_list.name) AS lists,
        coalesce(sum(actual_list.iovs), 0) AS iovs
    FROM "GlobalTag" AS tag
    LEFT JOIN actual_list ON actual_list.global_tag_id = tag.id
    GROUP BY tag.id
)
SELECT 'payload list', name, 'IOVs', stored, iovs FROM actual_list WHERE stored <> iovs
UNION ALL
SELECT 'global tag', name, 'payload lists', payload_lists_count, lists FROM actual_tag WHERE payload_lists_count <> lists
UNION ALL
SELECT 'global tag', name, 'IOVs', payload_iov_count, iovs FROM actual_tag WHERE payload_iov_count <> iovs
ORDER BY 1, 2, 3
