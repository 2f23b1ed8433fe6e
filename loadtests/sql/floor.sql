\set major random(0, 2147483647)
\set minor random(0, 2147483647)
SELECT cdb_lookup('{tag}', :major, :minor, false, false, false);
