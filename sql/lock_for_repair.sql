-- Keep writers out while something is repaired, also those that would only lock rows yet; readers go on.
LOCK TABLE "GlobalTag", "PayloadList", "PayloadIOV" IN EXCLUSIVE MODE
