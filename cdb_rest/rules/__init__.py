"""The domain layer: the rules for global tags, payload lists and intervals, without Django, database or HTTP."""
