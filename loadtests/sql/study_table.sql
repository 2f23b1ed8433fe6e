-- The table of the load study (docs/load-tests.md) with the rows of one tag: a plain combined column and an index that does not cover.
-- Parameter: tag text.
DROP SCHEMA IF EXISTS study CASCADE;
CREATE SCHEMA study;
CREATE TABLE study."PayloadIOV" (
    id bigint NOT NULL,
    payload_url varchar(255) NOT NULL,
    checksum varchar(255) NOT NULL,
    size bigint NOT NULL,
    major_iov bigint NOT NULL,
    minor_iov bigint NOT NULL,
    major_iov_end bigint NOT NULL,
    minor_iov_end bigint NOT NULL,
    payload_list_id bigint,
    extra varchar(19),
    comb_iov numeric(38, 19) NOT NULL,
    created timestamptz NOT NULL,
    updated timestamptz NOT NULL
);
INSERT INTO study."PayloadIOV"
SELECT iov.id, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    iov.payload_list_id, iov.extra, iov.comb_iov, iov.created, iov.updated
FROM "PayloadIOV" AS iov
JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
WHERE tag.name = %(tag)s
ORDER BY iov.id;
ALTER TABLE study."PayloadIOV" ADD PRIMARY KEY (id);
CREATE INDEX study_lookup ON study."PayloadIOV" (payload_list_id, comb_iov DESC NULLS LAST);
