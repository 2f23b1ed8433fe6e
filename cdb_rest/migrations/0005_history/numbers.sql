-- Number the changes. Those of the log before there was a history cannot be asked for, except the last one of each tag.
CREATE SEQUENCE cdb_change_number;
ALTER TABLE "GlobalTagChange" ADD COLUMN number bigint;
UPDATE "GlobalTagChange" SET number = id, has_history = false;
SELECT setval('cdb_change_number', greatest(1, (SELECT max(number) FROM "GlobalTagChange")));
ALTER TABLE "GlobalTagChange" ALTER COLUMN number SET NOT NULL;
