"""Commands for requests: proposed writes, which a person with the permission for them accepts or rejects."""

from itertools import islice
from typing import Any

import click

from cdb_client.cli.options import PATH, Session, cdb
from cdb_client.cli.options import tag as of_tag
from cdb_client.rows import wire_moment

STATES = ("open", "accepted", "rejected", "withdrawn")


@cdb.group()
def request() -> None:
    """Propose writes, and accept, reject, withdraw or discuss them."""


with_reason = click.option("-m", "--reason", "comment", metavar="TEXT", required=True, help="Why.")
with_dry_run = click.option("--dry-run", is_flag=True, help="Print what would change, and store nothing.")


def _proposal(kind: str, text: str, example: str, *parameters: Any) -> None:
    """Add a command that makes a request. Its parameters, other than `tag`, are the members of the document."""

    def propose(session: Session, tag: str, comment: str, dry_run: bool, **document: Any) -> None:
        session.print_members(session.client.requests.make(kind, tag, document, reason=comment, dry_run=dry_run))

    for parameter in (with_dry_run, with_reason, *reversed(parameters)):
        propose = parameter(propose)
    text += f'\n\nExample: cdb request {kind} {example} --reason "see the elog"'
    request.command(kind, help=f"Propose to {text}")(propose)


_proposal(
    "import",
    "insert the payload IOVs of FILE into TAG. FILE is as `cdb export` writes it.",
    "prod new.csv",
    of_tag,
    click.argument("rows", type=PATH, metavar="FILE"),
)
_proposal(
    "clear",
    "leave an interval of PAYLOAD_TYPE in TAG without a payload.",
    "prod PED --since 1300 --until 1310",
    of_tag,
    click.argument("payload_type"),
    click.option("--since", type=wire_moment, metavar="MOMENT", required=True, help="First moment."),
    click.option("--until", type=wire_moment, metavar="END", required=True, help="A moment, MAJOR,end or open."),
)
_proposal("status", "give TAG another status.", "prod locked", of_tag, click.argument("status"))
clone_of, clone = click.argument("clone_of", metavar="SOURCE"), click.argument("tag", metavar="TARGET")
_proposal("clone", "copy SOURCE to a new tag TARGET.", "prod prod-2027", clone_of, clone)
_proposal("undo", "undo the change of TAG with this REVISION.", "prod 12", of_tag, click.argument("revision", type=int))


@request.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only requests in this state.")
@click.option("--tag", "global_tag", metavar="TAG", help="Only requests for this tag.")
@click.option("--requester", metavar="NAME", help="Only requests by this person or program.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N requests.")
def list_requests(session: Session, last: int | None, **filters: str | None) -> None:
    """Print the requests, the newest first.

    Example: cdb request list --state open
    """
    found = islice(session.client.requests.list(**filters), last)
    session.print(found, "number state kind global_tag requester created reason")


def _step(name: str, text: str, example: str, *parameters: Any) -> None:
    """Add a command that calls the method with this name, with the number of the request and these parameters."""

    def step(session: Session, **values: Any) -> None:
        session.print_members(getattr(session.client.requests, name)(**values))

    for parameter in (*reversed(parameters), click.argument("number", type=click.IntRange(1))):
        step = parameter(step)
    request.command(name, help=f"{text}\n\nExample: cdb request {name} {example}")(step)


_step("show", "Print request NUMBER with its comments, and the changes of the tag since then.", "5")
_step(
    "accept",
    "Make the write that request NUMBER proposes. You need the permission for it.",
    "5 --dry-run",
    click.option("-m", "--reason", "comment", metavar="TEXT", default="", help="An answer to the requester."),
    click.option("--confirm", is_flag=True, help="Also if payload IOVs are removed or gaps are made."),
    with_dry_run,
)
_step("reject", "Reject request NUMBER.", '5 --reason "run 1234 has better ones"', with_reason)
_step("withdraw", "Withdraw request NUMBER, which is your own.", "5")
_step("comment", "Add TEXT to the discussion of request NUMBER.", '5 "From which run?"', click.argument("text"))
