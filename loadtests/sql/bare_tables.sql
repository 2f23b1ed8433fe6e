-- Tables like the service's without its foreign key and triggers: with the combined column and its index, with the column
-- alone, and with neither.
DROP SCHEMA IF EXISTS bare CASCADE;
CREATE SCHEMA bare;
CREATE TABLE bare.with_both (LIKE "PayloadIOV" INCLUDING ALL);
CREATE TABLE bare.without_index (LIKE "PayloadIOV" INCLUDING ALL EXCLUDING INDEXES, PRIMARY KEY (id));
CREATE TABLE bare.without_column (LIKE "PayloadIOV" INCLUDING ALL EXCLUDING INDEXES EXCLUDING GENERATED, PRIMARY KEY (id));
ALTER TABLE bare.without_column DROP COLUMN comb_iov;
