-- Set the counts of each global tag from its payload lists, whose own counts must be correct. No parameters.
UPDATE "GlobalTag" AS tag SET payload_lists_count = actual.lists, payload_iov_count = actual.iovs
FROM (
    SELECT tag.id, count(list.id) AS lists, coalesce(sum(list.iov_count), 0) AS iovs
    FROM "GlobalTag" AS tag
    LEFT JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    GROUP BY tag.id
) AS actual
WHERE actual.id = tag.id AND (tag.payload_lists_count, tag.payload_iov_count) <> (actual.lists, actual.iovs)
