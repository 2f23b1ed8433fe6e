DROP FUNCTION cdb_revision_floor, cdb_new_floor, cdb_timeline;
