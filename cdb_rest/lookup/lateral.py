"""The service's own lookup: one call of a function in the database, which returns the answer as JSON text."""

from dataclasses import dataclass

from cdb_rest import named_sql
from cdb_rest.connections.asking import ask
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import AFTER_ALL, Interval, Mode, Moment
from cdb_rest.lookup.question import Question
from cdb_rest.lookup.state import NOTHING, Known, State
from cdb_rest.metrics import counts
from cdb_rest.models import GlobalTag

CALL = named_sql.load("call_answer")
STATEMENT = named_sql.load("lookup")
BEGINNING = Moment(0, 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question and the state of the tag that it was made from.

    `text` is JSON, rows ordered by payload type name, or None if the client's answer still holds. `window` is the largest
    interval around the moment in which the text is the same, if it was asked for.
    """

    state: State
    text: str | None
    window: Interval | None


def answer(question: Question) -> str:
    """The JSON text of the answer. Raises `GlobalTagNotFoundError`."""
    return look_up(question).text


def look_up(question: Question, known: Known = NOTHING, *, with_window: bool = False) -> Answer:
    """The answer, in one round trip; without looking for it where what the client has still holds.

    Raises `GlobalTagNotFoundError`.
    """
    parameters = {"tag": question.tag} | _parameters(question)
    parameters |= {"known": list(known.versions), "known_modified": known.modified, "with_window": with_window}
    [(version, status, modified, text, since, until)] = ask(CALL, parameters, _count_started)
    counts.LOOKUPS_FINISHED.inc(1)
    if version is None:
        raise GlobalTagNotFoundError(question.tag)
    window = None
    if with_window and text is not None:
        window = Interval(
            BEGINNING if since is None else Moment.from_combined(since),
            AFTER_ALL if until is None else Moment.from_combined(until),
        )
    return Answer(State(version, status, modified), text, window)


def answer_in_the_open(question: Question) -> str:
    """The same by the function's statement sent as it is, so that its plan can be looked at; one round trip more.

    Raises `GlobalTagNotFoundError`.
    """
    [(text,)] = ask(STATEMENT, statement_parameters(question))
    return text


def statement_parameters(question: Question) -> dict:
    """The parameters of the function's statement. Raises `GlobalTagNotFoundError`."""
    tag_id = GlobalTag.objects.filter(name=question.tag).values_list("id", flat=True).first()
    if tag_id is None:
        raise GlobalTagNotFoundError(question.tag)
    return {"tag_id": tag_id, "moment": question.moment.combined} | _parameters(question)


def _count_started() -> None:
    counts.LOOKUPS_STARTED.inc(1)


def _parameters(question: Question) -> dict:
    return {
        "major": question.moment.major,
        "minor": question.moment.minor,
        "only_valid": question.only_valid,
        "inclusive": question.mode is Mode.DISCRETE,
        "as_objects": question.as_objects,
    }
