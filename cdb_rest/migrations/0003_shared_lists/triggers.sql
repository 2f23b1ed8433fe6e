-- Triggers that make writes of other programs visible as changes of payload lists and global tags, on which compiled lists and HTTP
-- caches rely. The writes of this service change a list's version and raise a tag's revision with every change, and store in the history
-- what they change. They say so by the setting cdb.records_history.
DROP FUNCTION cdb_mark_changed_list, cdb_mark_changed_type, cdb_mark_updated_iovs CASCADE;
DROP FUNCTION cdb_mark_changed;

-- Note that another program has changed the rows of payload lists, and so those of the lists that share them. When the transaction
-- commits, the change carries on to their tags.
CREATE FUNCTION cdb_mark_edited(list_ids bigint[]) RETURNS void LANGUAGE sql
AS $function$
    -- A list that shares rows, and has got one of its own, gets copies of those that it has shared. Its triggers count and note them.
    WITH shared AS (
        UPDATE "PayloadList" AS list SET base_list_id = NULL, base_version = NULL, iov_count = own.iovs
        FROM "PayloadList" AS before
        CROSS JOIN LATERAL (SELECT count(*) AS iovs FROM "PayloadIOV" AS iov WHERE iov.payload_list_id = before.id) AS own
        WHERE before.id = list.id AND list.id = ANY(list_ids) AND list.base_list_id IS NOT NULL AND own.iovs > 0
        RETURNING before.id, before.version, before.base_list_id, before.base_version
    )
    INSERT INTO "PayloadIOV" (
        payload_url, checksum, size, extra, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id, added_in
    )
    SELECT iov.payload_url, iov.checksum, iov.size, iov.extra, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
        shared.id, shared.version
    FROM shared
    CROSS JOIN LATERAL cdb_iovs_of(shared.base_list_id, shared.base_version, 0, 'Infinity') AS iov
    -- Of two rows with the same start, that of the program stays.
    ON CONFLICT DO NOTHING;

    -- The rows of a base in a version are counted once for all lists that share them.
    WITH marked AS MATERIALIZED (
        SELECT id, base_list_id, base_version FROM "PayloadList" WHERE id = ANY(list_ids)
        UNION
        SELECT id, base_list_id, base_version FROM "PayloadList" WHERE base_list_id = ANY(list_ids)
    ),
    counted AS MATERIALIZED (
        SELECT base_list_id, base_version, (
            SELECT count(*) FROM cdb_iovs_of(source.base_list_id, source.base_version, 0, 'Infinity')
        ) AS iovs
        FROM (SELECT DISTINCT base_list_id, base_version FROM marked WHERE base_list_id IS NOT NULL) AS source
    )
    UPDATE "PayloadList" AS list SET edited = stamp.number, iov_count = coalesce(counted.iovs, list.iov_count)
    FROM (SELECT nextval('cdb_change_number') AS number) AS stamp
    CROSS JOIN marked
    LEFT JOIN counted ON counted.base_list_id = marked.base_list_id AND counted.base_version = marked.base_version
    WHERE list.id = marked.id
$function$;

CREATE FUNCTION cdb_note_edited_iovs() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    IF current_setting('cdb.records_history', true) = 'on' THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'INSERT' THEN
        PERFORM cdb_mark_edited(array_agg(DISTINCT payload_list_id)) FROM added HAVING count(payload_list_id) > 0;
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM cdb_mark_edited(array_agg(DISTINCT payload_list_id)) FROM removed HAVING count(payload_list_id) > 0;
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM cdb_mark_edited(array_agg(DISTINCT payload_list_id))
        FROM (SELECT payload_list_id FROM added UNION ALL SELECT payload_list_id FROM removed) AS changed
        HAVING count(payload_list_id) > 0;
    ELSE
        PERFORM cdb_mark_edited(array_agg(id)) FROM "PayloadList";
    END IF;
    RETURN NULL;
END
$function$;

CREATE FUNCTION cdb_note_renamed_type() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM cdb_mark_edited(array_agg(id)) FROM "PayloadList" WHERE payload_type_id = NEW.id;
    RETURN NULL;
END
$function$;

CREATE FUNCTION cdb_note_list_of_other_type() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM cdb_mark_edited(ARRAY[NEW.id]);
    RETURN NULL;
END
$function$;

CREATE TRIGGER cdb_note_inserted_iovs AFTER INSERT ON "PayloadIOV"
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_note_edited_iovs();
CREATE TRIGGER cdb_note_updated_iovs AFTER UPDATE ON "PayloadIOV"
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_note_edited_iovs();
CREATE TRIGGER cdb_note_deleted_iovs AFTER DELETE ON "PayloadIOV"
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION cdb_note_edited_iovs();
CREATE TRIGGER cdb_note_truncated_iovs AFTER TRUNCATE ON "PayloadIOV"
    FOR EACH STATEMENT EXECUTE FUNCTION cdb_note_edited_iovs();
CREATE TRIGGER cdb_note_renamed_type AFTER UPDATE ON "PayloadType"
    FOR EACH ROW WHEN (NEW.name IS DISTINCT FROM OLD.name) EXECUTE FUNCTION cdb_note_renamed_type();
CREATE TRIGGER cdb_note_list_of_other_type AFTER UPDATE ON "PayloadList"
    FOR EACH ROW WHEN (NEW.payload_type_id IS DISTINCT FROM OLD.payload_type_id)
    EXECUTE FUNCTION cdb_note_list_of_other_type();

-- A list that was edited carries the change on to its tag, as one whose count changed.
DROP TRIGGER cdb_count_updated_lists ON "PayloadList";
CREATE CONSTRAINT TRIGGER cdb_count_updated_lists AFTER UPDATE ON "PayloadList"
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (
        OLD.global_tag_id IS DISTINCT FROM NEW.global_tag_id OR OLD.iov_count <> NEW.iov_count OR OLD.edited <> NEW.edited
    )
    EXECUTE FUNCTION cdb_count_lists();
