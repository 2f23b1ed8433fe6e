-- Global tags whose revision is lower than the last one in their change log: name, revision, last revision in the log.
-- Parameters: tag text: check this tag only (null: all tags).
SELECT tag.name, tag.revision, max(change.revision)
FROM "GlobalTag" AS tag
JOIN "GlobalTagChange" AS change ON change.global_tag = tag.name
WHERE %(tag)s IS NULL OR tag.name = %(tag)s
GROUP BY tag.id
HAVING tag.revision < max(change.revision)
ORDER BY tag.name
