-- Carry the counts of payload lists on to their tags now, and for the rest of the transaction at once, not at its commit.
SET CONSTRAINTS ALL IMMEDIATE
