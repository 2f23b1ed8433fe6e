"""What each status permits."""

import pytest

from cdb_rest.rules.errors import StatusChangeRefusedError, TagFrozenError, TagLockedError
from cdb_rest.rules.status import Action, check_permitted, check_status_change


@pytest.mark.parametrize("action", Action)
def test_unlocked_permits_everything(action):
    check_permitted(tag="t", status="unlocked", action=action)


@pytest.mark.parametrize("action", Action)
def test_frozen_permits_nothing(action):
    with pytest.raises(TagFrozenError):
        check_permitted(tag="t", status="frozen", action=action)


@pytest.mark.parametrize("status", ["locked", "a status of the experiment's own"])
def test_locked_and_unknown_statuses_permit_growth_only(status):
    for action in (Action.ADD_LIST, Action.ADD_IOV):
        check_permitted(tag="t", status=status, action=action)
    for action in (Action.REMOVE_LIST, Action.REMOVE_IOV, Action.DELETE, Action.REVERT):
        with pytest.raises(TagLockedError):
            check_permitted(tag="t", status=status, action=action)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("unlocked", "locked", None),
        ("unlocked", "frozen", None),
        ("unlocked", "own", None),
        ("unlocked", "unlocked", None),
        ("locked", "unlocked", None),
        ("locked", "frozen", None),
        ("locked", "locked", None),
        ("locked", "own", StatusChangeRefusedError),
        ("own", "locked", StatusChangeRefusedError),
        ("own", "own", None),
        ("own", "unlocked", None),
        ("frozen", "unlocked", TagFrozenError),
        ("frozen", "locked", TagFrozenError),
        ("frozen", "frozen", TagFrozenError),
    ],
)
def test_status_changes(old, new, error):
    if error is None:
        check_status_change(tag="t", old=old, new=new)
        return
    with pytest.raises(error):
        check_status_change(tag="t", old=old, new=new)
