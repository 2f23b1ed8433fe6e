"""Play random histories and races of writers for as long as told: python -m tests.soak --minutes 10

Each round is a run of pytest with other random choices, on all cores. The first round that fails ends it; its seed plays the
same histories again.
"""

import argparse
import os
import subprocess
import sys
import time

from tqdm import tqdm

from cdb_rest.management.quantities import Duration

TESTS = (
    *("tests/histories", "tests/writes/test_concurrency.py", "tests/lookup/test_oracle.py"),
    "tests/adopt/test_adoption.py",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.split(":")[0] + ".")
    parser.add_argument(
        "--minutes", action=Duration, unit="min", above=0, default=10, metavar="TIME", help="default: 10min"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first round; default: the time")
    arguments = parser.parse_args()
    begin, rounds = time.monotonic(), 0
    total = round(arguments.minutes * 60)
    with tqdm(total=total, unit="s", bar_format="{l_bar}{bar}| {n}/{total} s{postfix}", disable=None) as bar:
        while rounds == 0 or time.monotonic() - begin < total:
            seed = arguments.seed + rounds
            bar.set_postfix_str(f"rounds: {rounds}, seed {seed}")
            command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count()), "--hypothesis-profile=soak"]
            played = subprocess.run(
                [*command, f"--hypothesis-seed={seed}", *TESTS],
                env=os.environ | {"SOAK_SEED": str(seed)},
                capture_output=True,
                text=True,
            )
            if played.returncode:
                sys.stdout.write(f"{played.stdout}\nRound {rounds + 1} failed; --seed {seed} plays it again.\n")
                return 1
            rounds += 1
            bar.n = min(round(time.monotonic() - begin), total)
            bar.refresh()
    sys.stdout.write(
        f"Nothing went wrong: {rounds} rounds from seed {arguments.seed}; the last one: {_last_line(played)}\n"
    )
    return 0


def _last_line(played: subprocess.CompletedProcess) -> str:
    return played.stdout.strip().splitlines()[-1].strip("= ")


if __name__ == "__main__":
    sys.exit(main())
