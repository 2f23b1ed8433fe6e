"""The options of all commands of the service: numbers that are checked, and help texts."""

from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from cdb_rest.management.quantities import Number

OWN = {name: app for name, app in get_commands().items() if app in ("cdb", "cdb_rest")}
OF_DJANGO = {"help", *(action.dest for action in BaseCommand().create_parser("manage.py", "any")._actions)}


def options_of(name):
    """What a command adds itself; what it inherits from a command of Django is Django's."""
    command = load_command_class(OWN[name], name)
    if "add_arguments" not in vars(type(command)):
        return []
    parser = command.create_parser("manage.py", name)
    return [action for action in parser._actions if action.dest not in OF_DJANGO]


@pytest.mark.parametrize("name", OWN)
def test_every_number_is_checked_by_one_module_and_every_option_explained(name):
    for action in options_of(name):
        assert action.type in (None, Path) or action.choices, (
            f"{action.dest}: use an action of cdb_rest.management.quantities"
        )
        assert action.help, action.dest
        takes_a_number = isinstance(action.default, int | float) and not isinstance(action.default, bool)
        assert isinstance(action, Number) or not takes_a_number, action.dest


def test_there_are_numbers_to_check():
    numbers = {(name, action.dest) for name in OWN for action in options_of(name) if isinstance(action, Number)}
    assert numbers >= {("capacity", "memory"), ("seed_scenario", "clones")}
    assert ("explain_lookup", "moment") in numbers


@pytest.mark.parametrize("name", OWN)
def test_every_command_has_a_help_text_of_sentences(name):
    command = load_command_class(OWN[name], name)
    assert command.help and command.help[0].isupper() and command.help.rstrip().endswith(".")
    # argparse fills in placeholders and takes % for one, so a text may fail to be shown.
    shown = " ".join(command.create_parser("manage.py", name).format_help().split())
    assert " ".join(command.help.split()[:5]) in shown
