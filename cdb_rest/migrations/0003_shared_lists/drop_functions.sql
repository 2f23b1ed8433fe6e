-- The reverse of the other files, before the functions that they replaced are created again.
DROP VIEW IF EXISTS "ListedPayloadIOV";
DROP FUNCTION cdb_note_edited_iovs, cdb_note_list_of_other_type, cdb_note_renamed_type CASCADE;
DROP FUNCTION cdb_mark_edited;
DROP FUNCTION cdb_answer_compiled;
DROP FUNCTION cdb_window_part, cdb_iovs_of, cdb_next_start, cdb_iov_at, cdb_rows_after;
DROP TRIGGER IF EXISTS cdb_count_updated_lists ON "PayloadList";
CREATE CONSTRAINT TRIGGER cdb_count_updated_lists AFTER UPDATE ON "PayloadList"
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.global_tag_id, OLD.iov_count) IS DISTINCT FROM (NEW.global_tag_id, NEW.iov_count))
    EXECUTE FUNCTION cdb_count_lists();
