"""What runs in a container, where each program has one of its own: python -m cdb.serving.containers PROGRAM OPTION...

It writes the configuration of the program from the template that `make serve` uses, and becomes the program. `--help` after a
program's name lists its options; the settings are those of the environment.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from cdb import database, env
from cdb.env import ConfigurationError
from cdb.processes.machine import disk_megabytes
from cdb.serving import nginx_configuration, pgbouncer, postgresql, templates
from cdb.serving.pools import Pool, pools
from cdb.serving.program import find
from cdb_rest.management.quantities import Duration, Number, Size

# The user that the service has in PgBouncer, too.
USERS = "users.txt"
# The only place that a container needs to write to, beside volumes; in memory.
DIRECTORY = Path(tempfile.gettempdir()) / "cdb"


def main(arguments: list[str]) -> int:
    """Become a program. Returns the exit code where there is nothing to become, or something is wrong: that is one line."""
    try:
        options = _parser().parse_args(arguments)
        command = options.prepare(options)
    except (ConfigurationError, OSError) as error:
        sys.stderr.write(f"cdb: {error}\n")
        return 1
    if not options.only_write:
        os.execv(command[0], command)  # noqa: S606
    return 0


def _gunicorn(options: argparse.Namespace) -> list[str]:
    binds = [part for address in options.bind for part in ("--bind", address)]
    workers = options.workers or pools()[options.pool].workers
    graceful = ["--graceful-timeout", str(options.graceful)] if options.graceful else []
    instance = [sys.executable, "-m", "cdb.serving.gunicorn_master", options.pool]
    return [*instance, "--workers", str(workers), *graceful, *binds]


def _nginx(options: argparse.Namespace) -> list[str]:
    directory = options.directory
    # The database may be another one than before, or restored: then frozen tags have other answers.
    shutil.rmtree(options.cache, ignore_errors=True)
    for needed in (directory, options.cache, options.temporary):
        needed.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One address may stand for all three.
    lookups = (options.lookups * len(nginx_configuration.LOOKUPS))[: len(nginx_configuration.LOOKUPS)]
    place = {
        "USER": "",
        "LISTEN": options.listen,
        **dict(zip(nginx_configuration.LOOKUPS, lookups, strict=True)),
        "OTHERS": options.others,
        "CACHE": options.cache,
        "TEMPORARY": options.temporary,
        "ACCESS_LOG": "/dev/stdout",
        "ERROR_LOG": "/dev/stderr",
        **nginx_configuration.trusting(options.trust),
    }
    if options.processes:
        place["PROCESSES"] = options.processes
    templates.write(
        directory / nginx_configuration.CONFIGURATION, nginx_configuration.configuration(place, options.threads)
    )
    return [sys.executable, "-m", "cdb.serving.nginx_keeper", str(directory), options.listen]


def _pgbouncer(options: argparse.Namespace) -> list[str]:
    directory = options.directory
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = database.parts()
    user, password = target.get("user", ""), target.get("password") or env.libpq_password()
    if not user or not password:
        raise ConfigurationError("PgBouncer needs a user, in DATABASE_URL, and a password, there or as PGPASSWORD")
    # The clients' password, and by the same line PgBouncer's own for PostgreSQL.
    templates.write(directory / USERS, f"{_quoted(user)} {_quoted(password)}\n")
    place = {
        "DIRECTORY": directory,
        "LISTEN": options.listen,
        "AUTHENTICATION": f"auth_type = scram-sha-256\nauth_file = {directory / USERS}",
    }
    sizes = pools()
    for name in sizes:
        connections = getattr(options, f"{name}_connections")
        sizes[name] = Pool(name, connections, 1) if connections else sizes[name]
    templates.write(directory / pgbouncer.CONFIGURATION, pgbouncer.configuration(place, sizes))
    return [find("pgbouncer"), str(directory / pgbouncer.CONFIGURATION)]


def _postgresql(options: argparse.Namespace) -> list[str]:
    options.directory.mkdir(parents=True, exist_ok=True)
    disk = options.disk or disk_megabytes(options.directory)
    values = postgresql.sizes(options.memory, disk) | {"CONNECTIONS": options.connections}
    path = options.directory / postgresql.FILE
    templates.write(path, templates.fill(postgresql.FILE, values))
    # There is no secret in it, and PostgreSQL has another account.
    path.chmod(0o644)
    options.directory.chmod(0o755)
    return []


def _quoted(value: str) -> str:
    return '"{}"'.format(value.replace('"', '""'))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cdb.serving.containers", description=__doc__)
    programs = parser.add_subparsers(required=True, metavar="PROGRAM")

    def program(name: str, prepare: Callable[[argparse.Namespace], list[str]], meaning: str) -> argparse.ArgumentParser:
        added = programs.add_parser(name, help=meaning, description=meaning)
        added.set_defaults(prepare=prepare, only_write=False)
        return added

    _describe_gunicorn(program("gunicorn", _gunicorn, "serve requests of one pool"))
    for name, prepare, describe in (("nginx", _nginx, _describe_nginx), ("pgbouncer", _pgbouncer, _describe_pgbouncer)):
        added = program(name, prepare, f"write the configuration of {name}, and become it")
        added.add_argument("--directory", type=Path, default=DIRECTORY, help="where its files are made")
        added.add_argument("--only-write", action="store_true", help="do not become it")
        describe(added)
    _describe_postgresql(program("postgresql", _postgresql, "write settings that PostgreSQL may include"))
    return parser


def _describe_gunicorn(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", choices=list(pools()))
    parser.add_argument("--bind", nargs="+", required=True, help="HOST:PORT or unix:PATH, several of them if need be")
    parser.add_argument(
        "--workers", action=Number, kind=int, least=0, metavar="N",
        help="processes (default, and 0: those of `make serve` with CDB_WORKERS)",
    )  # fmt: skip
    parser.add_argument(
        "--graceful", action=Duration, unit="s", kind=int, least=0, metavar="TIME",
        help="longest time for requests in progress when it is stopped (default, and 0: 30s)",
    )  # fmt: skip


def _describe_nginx(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", required=True, help="port, or address and port")
    parser.add_argument("--lookups", nargs="+", required=True, help="addresses of the pool for lookups, at most three")
    parser.add_argument("--others", required=True, help="address of the other pool")
    parser.add_argument("--cache", type=Path, default=DIRECTORY / "cache", help="made anew at each start")
    parser.add_argument("--temporary", type=Path, default=DIRECTORY / "temporary", help="in memory, if possible")
    parser.add_argument("--trust", nargs="*", action="extend", default=[], help="networks of proxies to be believed")
    parser.add_argument(
        "--processes", action=Number, kind=int, least=0, metavar="N",
        help="processes of nginx (default, and 0: one for each core, at least four)",
    )  # fmt: skip
    parser.add_argument(
        "--threads", action=Number, kind=int, least=1, metavar="N",
        help="all threads that serve lookups, divided by the number of instances of nginx",
    )  # fmt: skip


def _describe_pgbouncer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", default="*", help="TCP addresses")
    for name in pools():
        parser.add_argument(
            f"--{name}-connections", action=Number, kind=int, least=0, metavar="N",
            help=f"connections of the pool {name} to PostgreSQL (default, and 0: as many as its threads)",
        )  # fmt: skip


def _describe_postgresql(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--directory", type=Path, required=True, help="where postgresql.conf is written")
    parser.add_argument(
        "--memory", action=Size, unit="MiB", kind=int, least=1, required=True, metavar="SIZE",
        help="memory that PostgreSQL may use",
    )  # fmt: skip
    parser.add_argument(
        "--disk", action=Size, unit="MiB", kind=int, least=0, metavar="SIZE",
        help="size of its disk (default, and 0: that of the disk of the directory)",
    )  # fmt: skip
    parser.add_argument(
        "--connections", action=Number, kind=int, least=1, required=True, metavar="N",
        help="largest number of connections (max_connections)",
    )  # fmt: skip
    parser.set_defaults(only_write=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
