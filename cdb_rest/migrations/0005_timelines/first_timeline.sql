-- The first change after the promotion of a standby must differ from a change before the first restoration.
INSERT INTO "Restoration" (first_revision, retired_names, comment, timeline)
VALUES (1, '[]', 'The first timeline that was recorded.', cdb_timeline())
ON CONFLICT (first_revision) DO UPDATE SET timeline = excluded.timeline;
