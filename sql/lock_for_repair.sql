-- Keep writers out while counts are repaired; readers go on.
LOCK TABLE "GlobalTag", "PayloadList", "PayloadIOV" IN SHARE ROW EXCLUSIVE MODE
