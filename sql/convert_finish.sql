-- Mark logged changes of a global tag as converted, and drop their documents.
-- Parameters: tag_id bigint; ids bigint[], statuses text[]: the changes, and the status after each; keep bigint: a change that keeps
--   its documents, because the state before it is not stored, or null.
UPDATE "GlobalTagChange" AS change SET tag_id = %(tag_id)s, status = logged.status, has_history = true,
    source = CASE
        WHEN change.logged_after ? 'clone_of' THEN jsonb_build_object('clone_of', change.logged_after -> 'clone_of')
        WHEN change.logged_after ? 'scenario' THEN jsonb_build_object('scenario', change.logged_after -> 'scenario')
    END,
    logged_before = CASE WHEN change.id = %(keep)s THEN change.logged_before END,
    logged_after = CASE WHEN change.id = %(keep)s THEN change.logged_after END
FROM unnest(%(ids)s::bigint[], %(statuses)s::text[]) AS logged (id, status)
WHERE change.id = logged.id
