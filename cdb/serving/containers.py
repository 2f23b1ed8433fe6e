"""The entry point of containers, each of which runs one program: python -m cdb.serving.containers PROGRAM OPTION...

For nginx and pgbouncer it writes the configuration from the same template as `make serve`, and then executes the
program. For gunicorn it executes the program, which needs no other configuration. For postgresql it only writes a
postgresql.conf. `--help` after the program's name lists its options. Settings are read from environment variables.
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

# The file with the user and password with which the service connects to PgBouncer.
USERS = "users.txt"
# The only directory, besides volumes, that a container writes to. It is in memory.
DIRECTORY = Path(tempfile.gettempdir()) / "cdb"


def main(arguments: list[str]) -> int:
    """Write the configuration and execute the program, which replaces this process.

    Returns the exit code if only the configuration was written, or after an error, which is printed in one line.
    Raises `SystemExit` if an option is invalid.
    """
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
    # The database may have been replaced or restored, so cached responses for frozen tags may be wrong.
    shutil.rmtree(options.cache, ignore_errors=True)
    for needed in (directory, options.cache, options.temporary):
        needed.mkdir(mode=0o700, parents=True, exist_ok=True)
    most = len(nginx_configuration.LOOKUPS)
    if len(options.lookups) > most:
        raise ConfigurationError(f"--lookups must have one to {most} addresses (got {len(options.lookups)})")
    # A single address is used for all three.
    lookups = (options.lookups * most)[:most]
    placeholders = {
        "USER": "",
        "LISTEN": options.listen,
        **dict(zip(nginx_configuration.LOOKUPS, lookups, strict=True)),
        "OTHERS": options.others,
        "CACHE": options.cache,
        "TEMPORARY": options.temporary,
        "ACCESS_LOG": "/dev/stdout",
        "ERROR_LOG": "/dev/stderr",
        **nginx_configuration.trusted_proxies(options.trust),
    }
    if options.processes:
        placeholders["PROCESSES"] = options.processes
    templates.write(
        directory / nginx_configuration.CONFIGURATION, nginx_configuration.configuration(placeholders, options.threads)
    )
    return [sys.executable, "-m", "cdb.serving.nginx_keeper", str(directory), options.listen]


def _pgbouncer(options: argparse.Namespace) -> list[str]:
    directory = options.directory
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = database.parts()
    user, password = target.get("user", ""), target.get("password") or env.libpq_password()
    if not user or not password:
        raise ConfigurationError("PgBouncer needs a user in DATABASE_URL, and a password there or in PGPASSWORD")
    # PgBouncer checks clients against this line, and also uses its password to connect to PostgreSQL.
    templates.write(directory / USERS, f"{_quote(user)} {_quote(password)}\n")
    placeholders = {
        "DIRECTORY": directory,
        "LISTEN": options.listen,
        "AUTHENTICATION": f"auth_type = scram-sha-256\nauth_file = {directory / USERS}",
    }
    sizes = pools()
    for name in sizes:
        connections = getattr(options, f"{name}_connections")
        sizes[name] = Pool(name, connections, 1) if connections else sizes[name]
    templates.write(directory / pgbouncer.CONFIGURATION, pgbouncer.configuration(placeholders, sizes))
    return [find("pgbouncer"), str(directory / pgbouncer.CONFIGURATION)]


def _postgresql(options: argparse.Namespace) -> list[str]:
    options.directory.mkdir(parents=True, exist_ok=True)
    disk = options.disk or disk_megabytes(options.directory)
    values = postgresql.sizes(options.memory, disk) | {"CONNECTIONS": options.connections}
    path = options.directory / postgresql.FILE
    templates.write(path, templates.fill(postgresql.FILE, values))
    # PostgreSQL runs with another account; the file has no secrets.
    path.chmod(0o644)
    options.directory.chmod(0o755)
    return []


def _quote(value: str) -> str:
    return '"{}"'.format(value.replace('"', '""'))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cdb.serving.containers", description=__doc__)
    programs = parser.add_subparsers(required=True, metavar="PROGRAM")

    def program(name: str, prepare: Callable[[argparse.Namespace], list[str]], meaning: str) -> argparse.ArgumentParser:
        added = programs.add_parser(name, help=meaning, description=meaning)
        added.set_defaults(prepare=prepare, only_write=False)
        return added

    _add_gunicorn_options(program("gunicorn", _gunicorn, "serve requests of one pool"))
    for name, prepare, add_options in (
        ("nginx", _nginx, _add_nginx_options),
        ("pgbouncer", _pgbouncer, _add_pgbouncer_options),
    ):
        added = program(name, prepare, f"write the configuration of {name}, and execute it")
        added.add_argument(
            "--directory", type=Path, default=DIRECTORY, help="directory of its files (default: %(default)s)"
        )
        added.add_argument("--only-write", action="store_true", help="write the configuration only")
        add_options(added)
    _add_postgresql_options(program("postgresql", _postgresql, "write a postgresql.conf that PostgreSQL can include"))
    return parser


def _add_gunicorn_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", choices=list(pools()))
    parser.add_argument("--bind", nargs="+", required=True, help="addresses to listen on, each HOST:PORT or unix:PATH")
    parser.add_argument(
        "--workers",
        action=Number,
        kind=int,
        least=0,
        metavar="N",
        help="number of worker processes (default, and 0: as for `make serve`, by CDB_WORKERS)",
    )
    parser.add_argument(
        "--graceful",
        action=Duration,
        unit="s",
        kind=int,
        least=0,
        metavar="TIME",
        help="maximum time for requests in progress when gunicorn is stopped (default, and 0: 30s)",
    )


def _add_nginx_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", required=True, help="PORT or HOST:PORT to listen on")
    parser.add_argument("--lookups", nargs="+", required=True, help="addresses of the pool for lookups: one to three")
    parser.add_argument("--others", required=True, help="address of the other pool")
    parser.add_argument(
        "--cache", type=Path, default=DIRECTORY / "cache", help="directory of the cache, emptied at each start"
    )
    parser.add_argument(
        "--temporary",
        type=Path,
        default=DIRECTORY / "temporary",
        help="directory of temporary files, preferably in memory",
    )
    parser.add_argument("--trust", nargs="*", action="extend", default=[], help="networks of trusted proxies")
    parser.add_argument(
        "--processes",
        action=Number,
        kind=int,
        least=0,
        metavar="N",
        help="number of nginx processes (default, and 0: one for each core, at least four)",
    )
    parser.add_argument(
        "--threads",
        action=Number,
        kind=int,
        least=1,
        metavar="N",
        help="total number of threads that serve lookups, divided by the number of nginx instances",
    )


def _add_pgbouncer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", default="*", help="TCP addresses to listen on (default: all)")
    for name in pools():
        parser.add_argument(
            f"--{name}-connections",
            action=Number,
            kind=int,
            least=0,
            metavar="N",
            help=f"number of connections of the pool {name} to PostgreSQL (default, and 0: its number of threads)",
        )


def _add_postgresql_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--directory", type=Path, required=True, help="directory for postgresql.conf")
    parser.add_argument(
        "--memory",
        action=Size,
        unit="MiB",
        kind=int,
        least=1,
        required=True,
        metavar="SIZE",
        help="memory that PostgreSQL may use",
    )
    parser.add_argument(
        "--disk",
        action=Size,
        unit="MiB",
        kind=int,
        least=0,
        metavar="SIZE",
        help="size of its disk (default, and 0: that of the disk of --directory)",
    )
    parser.add_argument(
        "--connections",
        action=Number,
        kind=int,
        least=1,
        required=True,
        metavar="N",
        help="maximum number of connections (max_connections)",
    )
    parser.set_defaults(only_write=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
