"""The options of a campaign, as its command line gives them."""

from loadtests.__main__ import own_options, parsed


def options(campaign, *words, quick=False):
    """The options of the campaign itself, with their defaults."""
    return own_options(parsed(["campaign", campaign, *(["--quick"] if quick else []), *words]))
