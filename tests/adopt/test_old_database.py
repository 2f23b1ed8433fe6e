"""Each variant of nopayloaddb's schema can be made, and holds the faults that are planted in it."""

import pytest

from tests.adopt.faults import faults_of, plant
from tests.adopt.old_database import FORMS, INDEXES, OldDatabase

FORMS_AND_INDEXES = [*((*form, None) for form in FORMS), *(("V7", True, index) for index in INDEXES)]


@pytest.mark.parametrize(("variant", "identity", "index"), FORMS_AND_INDEXES)
def test_every_fault_in_every_variant(scratch, variant, identity, index):
    schema = "public" if variant > "V5" else "django"
    database = OldDatabase(scratch, variant, identity=identity, schema=schema, index=index).create()
    for name in faults_of(variant):
        assert plant(database, name), name
