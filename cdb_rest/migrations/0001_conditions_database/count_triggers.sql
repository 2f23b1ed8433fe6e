-- Triggers that keep the counts: of IOVs in each payload list, of lists and IOVs in each global tag.
-- IOVs are counted by whole statements, so that a bulk insert pays once, and for every writer, this service or not.
-- A change of a list's count is itself a change of the list, which carries on to its tag, but only when the transaction
-- commits: until then writers to other lists of the tag need not wait.
CREATE FUNCTION cdb_count_iovs() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE "PayloadList" AS list SET iov_count = list.iov_count + change.iovs
        FROM (SELECT payload_list_id, count(*) AS iovs FROM added GROUP BY payload_list_id) AS change
        WHERE list.id = change.payload_list_id;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE "PayloadList" AS list SET iov_count = list.iov_count - change.iovs
        FROM (SELECT payload_list_id, count(*) AS iovs FROM removed GROUP BY payload_list_id) AS change
        WHERE list.id = change.payload_list_id;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE "PayloadList" AS list SET iov_count = list.iov_count + change.iovs
        FROM (
            SELECT payload_list_id, sum(iovs) AS iovs
            FROM (
                SELECT payload_list_id, 1 AS iovs FROM added
                UNION ALL
                SELECT payload_list_id, -1 AS iovs FROM removed
            ) AS part
            GROUP BY payload_list_id
            HAVING sum(iovs) <> 0
        ) AS change
        WHERE list.id = change.payload_list_id;
    ELSE
        UPDATE "PayloadList" SET iov_count = 0 WHERE iov_count <> 0;
    END IF;
    RETURN NULL;
END
$function$;

CREATE FUNCTION cdb_count_lists() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        UPDATE "GlobalTag" SET payload_lists_count = 0, payload_iov_count = 0
        WHERE payload_lists_count <> 0 OR payload_iov_count <> 0;
    ELSIF TG_OP = 'UPDATE' AND OLD.global_tag_id IS NOT DISTINCT FROM NEW.global_tag_id THEN
        UPDATE "GlobalTag" SET payload_iov_count = payload_iov_count + NEW.iov_count - OLD.iov_count
        WHERE id = NEW.global_tag_id;
    ELSE
        -- Of a list that is inserted OLD is null, of one that is deleted NEW is, and so are their tags.
        UPDATE "GlobalTag"
        SET payload_lists_count = payload_lists_count - 1, payload_iov_count = payload_iov_count - OLD.iov_count
        WHERE id = OLD.global_tag_id;
        UPDATE "GlobalTag"
        SET payload_lists_count = payload_lists_count + 1, payload_iov_count = payload_iov_count + NEW.iov_count
        WHERE id = NEW.global_tag_id;
    END IF;
    RETURN NULL;
END
$function$;

CREATE TRIGGER cdb_count_inserted_iovs AFTER INSERT ON "PayloadIOV"
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();
CREATE TRIGGER cdb_count_updated_iovs AFTER UPDATE ON "PayloadIOV"
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();
CREATE TRIGGER cdb_count_deleted_iovs AFTER DELETE ON "PayloadIOV"
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();
CREATE TRIGGER cdb_count_truncated_iovs AFTER TRUNCATE ON "PayloadIOV"
    FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();

CREATE CONSTRAINT TRIGGER cdb_count_inserted_lists AFTER INSERT ON "PayloadList"
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.global_tag_id IS NOT NULL) EXECUTE FUNCTION cdb_count_lists();
CREATE CONSTRAINT TRIGGER cdb_count_updated_lists AFTER UPDATE ON "PayloadList"
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.global_tag_id, OLD.iov_count) IS DISTINCT FROM (NEW.global_tag_id, NEW.iov_count))
    EXECUTE FUNCTION cdb_count_lists();
CREATE CONSTRAINT TRIGGER cdb_count_deleted_lists AFTER DELETE ON "PayloadList"
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.global_tag_id IS NOT NULL) EXECUTE FUNCTION cdb_count_lists();
CREATE TRIGGER cdb_count_truncated_lists AFTER TRUNCATE ON "PayloadList"
    FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_lists();
