#!/usr/bin/env bash
# Whether the API still fits the version: compares the libraries with those of the last release, by cargo-semver-checks.
# The last release is the newest tag `v*` before the commit. Without one, this is the first release, and there is nothing to
# compare with; the script says so and succeeds.
#   ci/semver.sh [PACKAGE...]    # all libraries, or these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A tag on the commit itself is the release that is being made.
if ! last=$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null); then
    echo "semver: not compared, for no release precedes this commit"
    exit 0
fi

if [ $# -gt 0 ]; then
    packages=("${@/#/--package=}")
else
    # Programs and C libraries: nothing of Rust can depend on them.
    packages=(--workspace --exclude=xtask --exclude=layout-test --exclude=hipcl --exclude=hipcl-hip-host-capi
        --exclude=hipcl-interop-capi)
fi
echo "semver: compared with $last"
exec cargo semver-checks "${packages[@]}" --baseline-rev "$last"
