#!/usr/bin/env bash
# Run `make run` and `make test` in a minimal Debian system made for the purpose, as root and as an ordinary user.
set -euo pipefail

usage() {
    cat <<'END'
Usage: tests/packaging/fresh_machine.sh [option...]

Make a minimal Debian system that has Python, venv, make and CA certificates and nothing else, put a fresh
clone of the committed state into it, and run there `make run` (until it is ready and answers a lookup, then
SIGTERM) and `make test`, as root and as an ordinary user. A table at the end has the result and the time of
each; the exit status is 1 when one failed. Needs root, Debian or a relative of it, mmdebstrap and git.

  --suite NAME      the suite of Debian: bookworm (default), trixie or a later one
  --mirror URL      where to get the suite; default: where apt on this machine gets Debian from
  --as LIST         accounts, separated by a comma, of: root, user; default: root,user
  --only COMMAND    run, test or test-all; default: run and test
  --args WORDS      ARGS of the tests, such as 'tests/unit -k moment'; default: all of them
  --base FILE       keep the minimal system in this tar archive, and take it from there when the file exists
  --logs DIRECTORY  keep the output of the commands there
  --help            this text

The commands see this machine's configuration of pip (PIP_* variables and pip's files, proxy variables, CA
certificates), because they fetch packages; apt's sources and proxies are this machine's too. Everything runs
in a namespace of its own for mounts and processes, which leaves neither of them behind.
END
}

fail() {
    echo "fresh_machine.sh: $1" >&2
    exit 2
}

say() {
    printf '%4d s  %s\n' "$SECONDS" "$1"
}

suite=bookworm mirror='' accounts=root,user only='' arguments='' base='' logs=''
original=("$@")
while [ $# -gt 0 ]; do
    case $1 in
        --help)
            usage
            exit 0
            ;;
        --suite | --mirror | --as | --only | --args | --base | --logs)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case $1 in
                --suite) suite=$2 ;;
                --mirror) mirror=$2 ;;
                --as) accounts=$2 ;;
                --only) only=$2 ;;
                --args) arguments=$2 ;;
                --base) base=$2 ;;
                --logs) logs=$2 ;;
            esac
            shift 2
            ;;
        *) fail "unknown option $1; --help lists them" ;;
    esac
done
[[ $only =~ ^(|run|test|test-all)$ ]] || fail "--only must be run, test or test-all (got $only)"
[[ $accounts =~ ^(root|user|root,user|user,root)$ ]] || fail "--as must be root, user or root,user (got $accounts)"
[[ $suite =~ ^[a-z]+$ ]] || fail "--suite must be the name of a Debian suite, such as bookworm (got $suite)"
[ "$(id -u)" = 0 ] || fail "root is needed, to make a system and its namespaces"
for program in mmdebstrap:mmdebstrap git:git unshare:util-linux chroot:coreutils tar:tar; do
    command -v "${program%:*}" >/dev/null || fail "${program%:*} is missing: apt-get install ${program#*:}"
done
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# --- Outside of the namespace -----------------------------------------------------------------------------------------

remove_system() {
    trap '' INT TERM
    # Its death ends every process of the namespace, and with the last one its mounts are gone.
    [ -z "$namespace" ] || { kill -KILL "$namespace" && wait "$namespace"; } 2>/dev/null || true
    local deadline=$((SECONDS + 30))
    # The last of them may still write.
    while [ "$SECONDS" -lt "$deadline" ]; do
        rm -rf --one-file-system "$directory" 2>/dev/null && return
        sleep 0.2
    done
    echo "fresh_machine.sh: $directory could not be removed" >&2
}

if [ -z "${CDB_FRESH_MACHINE:-}" ]; then
    unshare --mount --pid --fork true 2>/dev/null || fail "namespaces for mounts and processes are not allowed here"
    directory=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/cdb-fresh-XXXXXX")")
    namespace=
    trap remove_system EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    # In the background, because a trap would wait for the end of a command in the foreground. It ends when we are killed.
    CDB_FRESH_MACHINE=$directory setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc -- \
        bash "${BASH_SOURCE[0]}" ${original[@]+"${original[@]}"} &
    namespace=$!
    status=0
    wait "$namespace" || status=$?
    namespace=
    exit "$status"
fi

# --- In the namespace -------------------------------------------------------------------------------------------------

directory=$CDB_FRESH_MACHINE
root=$directory/root
user=physicist
unset CDB_FRESH_MACHINE

# The address that apt on this machine has for Debian itself.
mirror_of_this_machine() {
    # shellcheck disable=SC2016  # apt replaces these names.
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -F '|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
}

make_system() {
    mkdir "$root"
    if [ -n "$base" ] && [ -e "$base" ]; then
        say "Unpacking the minimal system from $base"
        tar --extract --file "$base" --directory "$root" --numeric-owner --exclude='./dev/*'
    else
        local options=()
        mirror=${mirror:-$(mirror_of_this_machine)}
        mapfile -t options < <(
            apt-config dump | sed -nE 's/^(Acquire::(https?|Check-|Retries)[^ ]* ".+";)$/--aptopt=\1/p'
        )
        say "Making a minimal Debian $suite with python3, python3-venv, make and ca-certificates"
        mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,make,ca-certificates \
            ${options[@]+"${options[@]}"} "$suite" "$root" ${mirror:+"$mirror"}
        [ -z "$base" ] || tar --create --file "$base" --directory "$root" --numeric-owner --exclude='./dev/*' .
    fi
    chroot "$root" python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "--suite must be one that has Python 3.11 or newer (got $suite)"
    chroot "$root" useradd --create-home --shell /bin/sh "$user"
}

mount_system() {
    local device
    mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
    mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
    for device in null zero full random urandom tty; do
        touch "$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"
    ln -s fd/1 "$root/dev/stdout"
    ln -s fd/2 "$root/dev/stderr"
}

# Make a file or directory of this machine readable at the same place in the system.
share() {
    if [ -f "$1" ]; then
        install -D --mode=644 "$1" "$root$1"
    elif [ -d "$1" ]; then
        mkdir -p "$root$1"
        mount --bind "$1" "$root$1"
        mount -o remount,bind,ro "$root$1"
    fi
}

# What programs need to know about the network: names, CA certificates, and where pip fetches packages.
share_network() {
    local file home value configurations=(/etc/pip.conf ~/.pip/pip.conf ~/.config/pip/pip.conf)
    [ -z "${PIP_CONFIG_FILE:-}" ] || configurations+=("$PIP_CONFIG_FILE")
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf "${PIP_CONFIG_FILE:-}"; do
        share "$file"
    done
    for home in /root "/home/$user"; do
        for file in .pip/pip.conf .config/pip/pip.conf; do
            [ ! -e ~/"$file" ] || install -D --mode=644 ~/"$file" "$root$home/$file"
        done
    done
    # What the configuration names: certificates, and directories of packages.
    while read -r value; do
        case $value in /*) share "$value" ;; esac
    done < <(
        env | sed -nE 's/^(PIP_CERT|PIP_CLIENT_CERT|PIP_FIND_LINKS|SSL_CERT_FILE|REQUESTS_CA_BUNDLE)=//p'
        cat "${configurations[@]}" 2>/dev/null | sed -nE 's/^ *(cert|client-cert|find-links) *[=:] *//p'
    )
    while IFS= read -r -d '' value; do
        if [[ $value =~ ^(PIP_[A-Z_]+|SSL_CERT_FILE|REQUESTS_CA_BUNDLE)= || ${value,,} =~ ^(https?|no|all)_proxy= ]]; then
            network+=("$value")
        fi
    done < <(env --null)
}

clone() {
    local home
    commit=$(git -C "$repository" rev-parse --short HEAD)
    [ -z "$(git -C "$repository" status --porcelain)" ] || say "Leaving out what is not committed"
    for home in /root "/home/$user"; do
        git clone --quiet --no-hardlinks "$repository" "$root$home/cdb"
    done
    chroot "$root" chown -R "$user:" "/home/$user"
}

# Become a command in an account's clone.
become() {
    local account=$1 home=/root path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    shift
    [ "$account" = root ] || home=/home/$account path=/usr/local/bin:/usr/bin:/bin
    # shellcheck disable=SC2016  # The shell inside replaces these names.
    exec chroot --userspec="$account" "$root" \
        /usr/bin/env -i HOME="$home" USER="$account" LOGNAME="$account" PATH="$path" \
        ${network[@]+"${network[@]}"} /bin/sh -c 'cd "$HOME/cdb" && exec "$@"' sh "$@"
}

# The processes that run in the system, by number and command line. Those that have ended have no root directory.
processes() {
    local path
    for path in /proc/[0-9]*; do
        [ "$(readlink "$path/root" 2>/dev/null)" = "$root" ] || continue
        echo "${path#/proc/} $(tr '\0' ' ' 2>/dev/null <"$path/cmdline")"
    done
}

# Wait until no process of the system is left. Fails after half a minute, having named and killed those that are.
all_ended() {
    local left deadline=$((SECONDS + 30))
    while left=$(processes) && [ -n "$left" ]; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            printf 'left running:\n%s\n' "$left"
            awk '{ print $1 }' <<<"$left" | xargs kill -KILL 2>/dev/null || true
            return 1
        fi
        sleep 0.2
    done
}

# Whether the service responds to a path with 200 and a text in the body.
responds() {
    (become root /usr/bin/python3 - "$1" "$2") 2>/dev/null <<'END'
import sys
from urllib.request import ProxyHandler, build_opener

url, text = sys.argv[1:]
with build_opener(ProxyHandler({})).open(url, timeout=10) as response:
    sys.exit(response.status != 200 or text not in response.read().decode())
END
}

FREE_PORT='import socket; probe = socket.socket(); probe.bind(("127.0.0.1", 0)); print(probe.getsockname()[1])'

# Serve, ask for a lookup and stop. Sets `result`.
make_run() {
    local account=$1 log=$2 pid port url started=$SECONDS ready
    port=$(become root /usr/bin/python3 -c "$FREE_PORT")
    url=http://127.0.0.1:$port
    become "$account" make run "PORT=$port" >"$log" 2>&1 </dev/null &
    pid=$!
    until responds "$url/health/ready" ''; do
        if ! kill -0 "$pid" 2>/dev/null; then
            result="ended before it was ready"
            return 1
        elif [ $((SECONDS - started)) -ge 900 ]; then
            result="not ready after 15 minutes"
            return 1
        fi
        sleep 0.5
    done
    ready=$((SECONDS - started))
    if ! responds "$url/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0" '[["'; then
        result="ready after $ready s, but a lookup in tiny failed"
        return 1
    fi
    kill -TERM "$pid"
    started=$SECONDS
    if ! all_ended >>"$log"; then
        result="processes were left 30 s after SIGTERM"
        return 1
    fi
    result="ready after $ready s, a lookup answered, ended $((SECONDS - started)) s after SIGTERM"
}

# Run `make test` or `make test-all`. Sets `result`.
make_test() {
    local account=$1 log=$2 target=$3 status=0
    (become "$account" make "$target" ${arguments:+"ARGS=$arguments"}) >"$log" 2>&1 </dev/null || status=$?
    result=$(grep -E '^=+ .* in [0-9.]+s' "$log" | tail -n 1 | sed -E 's/^=+ | =+$//g')
    if [ "$status" != 0 ]; then
        result=${result:-no tests ran}
        return 1
    elif ! all_ended >>"$log"; then
        result="$result, but processes were left"
        return 1
    fi
}

[ -z "$logs" ] || mkdir -p "$logs"
failures=0 table=() network=() result=''
make_system
mount_system
share_network
clone
for account in ${accounts//,/ }; do
    [ "$account" = root ] || account=$user
    for command in ${only:-run test}; do
        log=${logs:-$directory}/$suite-$account-$command.log
        say "make $command as $account"
        begun=$SECONDS
        if ! "make_${command%-all}" "$account" "$log" "$command"; then
            failures=$((failures + 1))
            result="FAILED: $result"
            # What may still run would disturb the next one.
            all_ended >>"$log" || true
            tail -n 200 "$log"
        else
            # What was skipped, and why.
            sed -n '/^=* skipped tests =*$/,/^=* .* in .*s/p' "$log"
        fi
        say "make $command as $account: $result"
        table+=("$(printf '%-10s %-13s %7d  %s' "$account" "make $command" $((SECONDS - begun)) "$result")")
    done
done
# shellcheck source=/dev/null
version=$(. "$root/etc/os-release" && echo "$PRETTY_NAME")
printf '\n%s, %s, commit %s\n' "$version" "$(chroot "$root" python3 -V)" "$commit"
printf '%-10s %-13s %7s  %s\n' account command seconds result
printf '%s\n' "${table[@]}"
[ "$failures" = 0 ]
