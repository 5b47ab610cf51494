#!/usr/bin/env bash
# Runs the examples in C, and checks what they print.
#   examples.bash PROGRAMS BINARIES
set -o errexit -o nounset -o pipefail
programs=$1 binaries=$2
work=$(mktemp --directory)
export LOCKSTEP_SOCKET=$work/socket
# Before its daemon: it waits.
"$programs/count-libuv" 2 >"$work/counted" &
counting=$!
"$binaries/lockstepd" --log-level error --durability none &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true; rm --recursive --force "$work"' EXIT
# `until_said` TEXT FILE: wait, ten seconds at most, until a program has said this.
until_said() {
  for ((try = 0; try < 200; try++)); do
    if grep --quiet --fixed-strings -- "$1" "$2"; then return; fi
    sleep 0.05
  done
  echo "not said: $1" >&2
  cat "$2" >&2
  exit 1
}
until [[ -S $LOCKSTEP_SOCKET ]]; do sleep 0.05; done
"$programs/watch-epoll" /lamp >"$work/watched" 2>"$work/errors" &
watching=$!
until_said ' is gone' "$work/watched"
"$binaries/lockstep" set /lamp '{"on": false, "level": 3}' >/dev/null
until_said 'level' "$work/watched"
"$binaries/lockstep" set /lamp/on true >/dev/null
until_said '/on = true' "$work/watched"
"$binaries/lockstep" remove /lamp >/dev/null
wait "$counting"
kill "$daemon"
wait "$daemon" || true
until_said 'lost; connecting again' "$work/errors"
kill "$watching"
diff - "$work/counted" <<'END'
counted to 1
counted to 2
END
sed --regexp-extended 's/^[0-9]+/N/' "$work/watched" | diff - <(cat <<'END'
N  is gone
N  = {"level":3,"on":false}
N /on = true
N  is gone
END
)
