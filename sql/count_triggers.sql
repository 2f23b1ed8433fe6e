-- Triggers that keep the counts: of IOVs in each payload list, of lists and IOVs in each global tag.
-- They work on whole statements, so that a bulk insert pays once, and hold for every writer, this service or not.
-- A change of a list's count is itself a change of the list, which carries on to its tag.
CREATE OR REPLACE FUNCTION cdb_count_iovs() RETURNS trigger LANGUAGE plpgsql AS $function$
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

CREATE OR REPLACE FUNCTION cdb_count_lists() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE "GlobalTag" AS tag
        SET payload_lists_count = tag.payload_lists_count + change.lists,
            payload_iov_count = tag.payload_iov_count + change.iovs
        FROM (
            SELECT global_tag_id, count(*) AS lists, sum(iov_count) AS iovs FROM added GROUP BY global_tag_id
        ) AS change
        WHERE tag.id = change.global_tag_id;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE "GlobalTag" AS tag
        SET payload_lists_count = tag.payload_lists_count - change.lists,
            payload_iov_count = tag.payload_iov_count - change.iovs
        FROM (
            SELECT global_tag_id, count(*) AS lists, sum(iov_count) AS iovs FROM removed GROUP BY global_tag_id
        ) AS change
        WHERE tag.id = change.global_tag_id;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE "GlobalTag" AS tag
        SET payload_lists_count = tag.payload_lists_count + change.lists,
            payload_iov_count = tag.payload_iov_count + change.iovs
        FROM (
            SELECT global_tag_id, sum(lists) AS lists, sum(iovs) AS iovs
            FROM (
                SELECT global_tag_id, 1 AS lists, iov_count AS iovs FROM added
                UNION ALL
                SELECT global_tag_id, -1 AS lists, -iov_count AS iovs FROM removed
            ) AS part
            GROUP BY global_tag_id
            HAVING sum(lists) <> 0 OR sum(iovs) <> 0
        ) AS change
        WHERE tag.id = change.global_tag_id;
    ELSE
        UPDATE "GlobalTag" SET payload_lists_count = 0, payload_iov_count = 0
        WHERE payload_lists_count <> 0 OR payload_iov_count <> 0;
    END IF;
    RETURN NULL;
END
$function$;

CREATE OR REPLACE TRIGGER cdb_count_inserted_iovs AFTER INSERT ON "PayloadIOV"
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();
CREATE OR REPLACE TRIGGER cdb_count_updated_iovs AFTER UPDATE ON "PayloadIOV"
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();
CREATE OR REPLACE TRIGGER cdb_count_deleted_iovs AFTER DELETE ON "PayloadIOV"
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();
CREATE OR REPLACE TRIGGER cdb_count_truncated_iovs AFTER TRUNCATE ON "PayloadIOV"
    FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_iovs();

CREATE OR REPLACE TRIGGER cdb_count_inserted_lists AFTER INSERT ON "PayloadList"
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_lists();
CREATE OR REPLACE TRIGGER cdb_count_updated_lists AFTER UPDATE ON "PayloadList"
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_lists();
CREATE OR REPLACE TRIGGER cdb_count_deleted_lists AFTER DELETE ON "PayloadList"
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_lists();
CREATE OR REPLACE TRIGGER cdb_count_truncated_lists AFTER TRUNCATE ON "PayloadList"
    FOR EACH STATEMENT EXECUTE FUNCTION cdb_count_lists();
