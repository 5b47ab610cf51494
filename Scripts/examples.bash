# What the stories in Scripts/examples share: each begins with `source`, this file and the name of
# its example's command. Builds the example's daemon and client and `lockstep`, or takes them from
# LOCKSTEP_EXAMPLES: the first build takes some minutes. Makes a folder for the story; and ends with it all that the story started.
# shellcheck shell=bash
set -o errexit -o errtrace -o nounset -o pipefail
tell_failure() { # LINE
  local outermost=$((${#FUNCNAME[@]} - 2)) line=$1
  if ((outermost > 0)); then line=${BASH_LINENO[outermost]}; fi
  echo "line $line of $0 failed" >&2
}
trap 'tell_failure "$LINENO"' ERR
cd "$(dirname "${BASH_SOURCE[0]}")/.."

example=$1
if [[ -z ${LOCKSTEP_EXAMPLES:-} ]]; then
  for product in "${example}d" "$example" lockstep; do
    swift build --product "$product" >&2
  done
  LOCKSTEP_EXAMPLES=$(swift build --show-bin-path)
fi
PATH=$LOCKSTEP_EXAMPLES:$PATH

work=$(mktemp --directory)
export LOCKSTEP_SOCKET=$work/$example.sock NO_COLOR=1 COLUMNS=140
children=()
finish() {
  # One that is stopped would not hear that it is to end.
  kill -CONT "${children[@]}" 2>/dev/null || true
  kill "${children[@]}" 2>/dev/null || true
  rm --recursive --force "$work"
}
trap finish EXIT

say() { printf '\n== %s\n' "$*"; }
echo_command() { # COMMAND ...: as one would type it
  local word words=()
  for word; do
    if [[ ! $word =~ ^[[:alnum:]_./+=:-]+$ ]]; then word="'$word'"; fi
    words+=("$word")
  done
  printf '$ %s\n' "${words[*]}"
}
run() { # COMMAND ...
  echo_command "$@"
  "$@"
}
note() { printf '(%s)\n' "$*"; } # what happens by no command
show() { # COMMAND ...: run it as at a terminal, where `lockstep` writes tables for people
  echo_command "$@"
  script --quiet --return --command "$*" /dev/null </dev/null | tr --delete '\r'
}
refuse() { # COMMAND ...: run it, and it fails
  if run "$@" 2>&1; then echo "this should have failed: $*" >&2; exit 1; fi
}

exec {log}>&2
start() { # [OPTION ...]: start the daemon, which writes to descriptor `log`, until it answers
  "${example}d" --log-level warning "$@" 2>&"$log" & daemon=$!
  children+=("$daemon")
  disown "$daemon"
  await answers
}
answers() { lockstep ping --count 1 >/dev/null 2>&1; }

await() { # COMMAND ...: it comes to succeed within a minute, while the daemon runs
  local end=$((SECONDS + 60))
  until "$@"; do
    kill -0 "$daemon" 2>/dev/null || { echo "${example}d has ended, before: $*" >&2; exit 1; }
    ((SECONDS < end)) || { echo "a minute has passed without: $*" >&2; exit 1; }
    sleep 0.02
  done
}
state_is() { # PATH JSON
  [[ $(lockstep get "$1") == "$2" ]]
}
effects_are() { # COUNT
  local count
  count=$(lockstep --json effects | wc --lines) && ((count == $1))
}
has_line() { # PATTERN FILE
  grep --quiet -- "$1" "$2"
}
expect() { # PATH JSON: the daemon's state says so
  state_is "$@" || { echo "$1 is $(lockstep get "$1"), not $2" >&2; exit 1; }
}
