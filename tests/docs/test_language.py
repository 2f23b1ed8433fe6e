"""Names and words that were replaced by standard terms do not come back (docs/glossary.md has the terms)."""

import re

import pytest

from cdb.env import ROOT

# What was replaced, and by what.
REPLACED = {
    r"[Ee]xchange(s|_of)?\b(?!_)": "request context",
    r"\bkept[_ ]answers?\b|\bKeptAnswers?\b(?!\")": "idempotency record",
    r"\banswer_(if_kept|once|lookup|write|in_the_open)\b": "conditional_get, respond_once, respond_to_lookup, …",
    r"\b(ConditionalFirst|LookupFirst|FromReplica|Observed|OwnView|NowAndThen)\b": "FastConditionalGet, FastLookup, …",
    r"\b(un)?hurr(y|ied)\b": "timeout",
    r"\bmade[_ -]ahead\b": "prefetch",
    r"\b(mend(s|ed|ing)?|tidy)\b": "repair",
    r"\bcopied_out\b|\bhang(s|ing)?[_ ]up\b": "stream_copy, close",
    r"(?<![a-z])([Ww]hoever|[Ss]omebody|[Nn]obody|[Aa]nybody)(?![a-z])": "the actor: client, worker, operator",
    r"\bbefell\b": "what happened to",
    r"(?<![a-z])[Rr]ig(?![a-z])": "test harness",
    r"\b(right|wrong) answers?\b|answers_per_s\b|per_answer|\banswers/s": "response",
}
# Names in the database, and the Unix user `nobody`.
ALLOWED = re.compile(r'"KeptAnswer"|kept_answer_(key|created)|KeptAnswer_id_seq|user `?nobody`?|getpwnam\("nobody"\)')
PLACES = (
    "cdb",
    "cdb_rest",
    "cdb_web",
    "deploy",
    "loadtests",
    "sql",
    "tests",
    "README.md",
    "CONTRIBUTING.md",
    "Makefile",
    "docs",
)
SUFFIXES = (".py", ".sql", ".md", ".conf", ".ini", ".yaml", ".yml", ".sh", "")


def texts():
    for place in PLACES:
        path = ROOT / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            # Migrations are frozen.
            left_out = {"migrations", "test_language.py"} & {*file.relative_to(ROOT).parts}
            if file.is_file() and file.suffix in SUFFIXES and not left_out:
                yield file.relative_to(ROOT), file.read_text()


@pytest.mark.parametrize(("pattern", "term"), REPLACED.items(), ids=REPLACED.values())
def test_replaced_terms_do_not_come_back(pattern, term):
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(pattern, ALLOWED.sub("", line))
    ]
    assert not found, f"write {term} instead"
