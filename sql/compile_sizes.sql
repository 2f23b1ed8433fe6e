-- The numbers of payload lists and IOVs of global tags, by name. Parameters: names text[].
SELECT name, payload_lists_count, payload_iov_count FROM "GlobalTag" WHERE name = ANY(%(names)s)
