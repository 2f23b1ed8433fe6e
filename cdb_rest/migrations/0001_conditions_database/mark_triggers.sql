-- Triggers that make writes of other programs visible as changes of payload lists and global tags, on which compiled tags and HTTP
-- caches rely. The writes of this service change a list's version and raise a tag's revision with every change, and set added_in
-- of every row that they change. Inserted and deleted rows change the counts of lists and tags. What is left are rows that
-- another program updates, and payload types that it renames.

-- A new version of the row of each tag and of each list, without any other change. Tags come first, as in all writes.
CREATE FUNCTION cdb_mark_changed(list_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM FROM "GlobalTag" AS tag
    WHERE tag.id IN (SELECT list.global_tag_id FROM "PayloadList" AS list WHERE list.id = ANY(list_ids))
    ORDER BY tag.id FOR UPDATE;
    UPDATE "GlobalTag" AS tag SET payload_iov_count = tag.payload_iov_count
    WHERE tag.id IN (SELECT list.global_tag_id FROM "PayloadList" AS list WHERE list.id = ANY(list_ids));
    UPDATE "PayloadList" AS list SET iov_count = list.iov_count WHERE list.id = ANY(list_ids);
END
$function$;

CREATE FUNCTION cdb_mark_updated_iovs() RETURNS trigger LANGUAGE plpgsql AS $function$
DECLARE
    list_ids bigint[];
BEGIN
    SELECT array_agg(DISTINCT new_row.payload_list_id) INTO list_ids
    FROM added AS new_row
    JOIN removed AS old_row USING (id)
    WHERE new_row.added_in = old_row.added_in AND new_row.payload_list_id IS NOT NULL
        AND new_row.payload_list_id IS NOT DISTINCT FROM old_row.payload_list_id;
    IF list_ids IS NOT NULL THEN
        PERFORM cdb_mark_changed(list_ids);
    END IF;
    RETURN NULL;
END
$function$;

CREATE FUNCTION cdb_mark_changed_type() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM cdb_mark_changed(array_agg(list.id)) FROM "PayloadList" AS list WHERE list.payload_type_id = NEW.id;
    RETURN NULL;
END
$function$;

CREATE FUNCTION cdb_mark_changed_list() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM cdb_mark_changed(ARRAY[NEW.id]);
    RETURN NULL;
END
$function$;

CREATE TRIGGER cdb_mark_updated_iovs AFTER UPDATE ON "PayloadIOV"
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_mark_updated_iovs();
CREATE TRIGGER cdb_mark_renamed_type AFTER UPDATE ON "PayloadType"
    FOR EACH ROW WHEN (NEW.name IS DISTINCT FROM OLD.name) EXECUTE FUNCTION cdb_mark_changed_type();
CREATE TRIGGER cdb_mark_list_of_other_type AFTER UPDATE ON "PayloadList"
    FOR EACH ROW WHEN (NEW.payload_type_id IS DISTINCT FROM OLD.payload_type_id)
    EXECUTE FUNCTION cdb_mark_changed_list();
