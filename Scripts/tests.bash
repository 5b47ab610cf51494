# What Scripts/check, Scripts/test and others share: how tests are built and run.
# shellcheck shell=bash
# The same for all of them: with other options, everything is built again.
build_options=(--explicit-target-dependency-import-check error -Xswiftc -warnings-as-errors)
# A build that is made a single time (CI) needs no debug information, an index of the tests alone, by which
# they are found, and no second compiler that reads half of a module again: a third less of the processor's
# time. Sources/Core and the simulator are optimised (Package.swift), so that properties, and worlds, take a
# third of the time.
if [[ -n ${LOCKSTEP_SINGLE_BUILD-} ]]; then
  build_options+=(-debug-info-format none
    -Xswiftc -index-ignore-system-modules -Xswiftc -index-ignore-clang-modules
    -Xswiftc -whole-module-optimization -Xswiftc -num-threads -Xswiftc "$(nproc)")
fi

build_tests() { swift build --build-tests "${build_options[@]}"; }
# Those of the macros, which are a bundle of their own (Package.swift): it takes the place of the others'.
test_macros() {
  LOCKSTEP_MACRO_TESTS=1 build_tests
  LOCKSTEP_MACRO_TESTS=1 run_tests
}
# Tests that are built already. Each has a limit of its own, after which it is cancelled; a test that does
# not heed that would have all wait for ever.
run_tests() {
  local limit=30m status=0
  timeout --kill-after=10 "$limit" \
    swift test "${build_options[@]}" --skip-build --parallel "$@" || status=$?
  # 137: it did not heed that either, and was killed.
  if ((status == 124 || status == 137)); then
    echo "the tests did not end in $limit: of those that began above, one neither passed nor failed" >&2
  fi
  return "$status"
}

# `package_options FOLDER`: set `options` for a package outside of this one that depends on it. In our own
# build folder: what the tests have built of Lockstep, with the same options, is not built again.
package_options() {
  # shellcheck disable=SC2034 # For those who call it.
  options=(--package-path "$1" --scratch-path "$PWD/.build" "${build_options[@]}")
  # A shared library of another build would be found by programs that do not link it.
  find .build/*/debug -maxdepth 1 -name '*.so' -delete 2>/dev/null || true
}

# Tests that wait, apart from those that compute for seconds and would keep them from their turn; and
# because an exit test reaps the children of others.
# shellcheck disable=SC2034 # For those who source this.
waiting_tests='LockstepClientTests|LockstepCoreTests|LockstepTestingTests|ExamplesTests|EventLoopTests'

# `stage` TEXT: begin a part of the whole, and say when.
stage() { printf '== %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1"; }
