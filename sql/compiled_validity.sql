-- The compiled tags that are still true: of each one its position in the parameters. Its revision must be one that can be asked for,
-- unless it is not in the log (changed is null). For the present state of a tag, the tag must exist, too, and, if it was frozen, have
-- the same version.
-- Parameters: names, versions text[], tag_ids, revisions bigint[], changed timestamptz[], pasts, frozens boolean[]: one element for
--   each.
SELECT compiled.position
FROM unnest(
    %(names)s::text[], %(versions)s::text[], %(tag_ids)s::bigint[], %(revisions)s::bigint[], %(changed)s::timestamptz[],
    %(pasts)s::boolean[], %(frozens)s::boolean[]
) WITH ORDINALITY AS compiled (name, version, tag_id, revision, changed, is_past, is_frozen, position)
LEFT JOIN "GlobalTag" AS tag ON tag.name = compiled.name AND tag.id = compiled.tag_id
LEFT JOIN "GlobalTagChange" AS change ON change.global_tag = compiled.name AND change.revision = compiled.revision
WHERE (compiled.changed IS NULL OR (change.has_history AND change.created = compiled.changed))
    AND (compiled.is_past OR tag.id IS NOT NULL)
    AND (NOT compiled.is_frozen OR cdb_version(tag.revision, tag.updated, tag.xmin) = compiled.version)
