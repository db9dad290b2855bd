#!/usr/bin/env bash
# README's two commands on the machine that README describes: a new Debian with a C++ compiler, git and certificates, an
# ordinary user, no Python, and a fresh clone of this repository's HEAD. By hand, as root, on a machine with Rust and debootstrap.
set -euo pipefail

usage="usage: ci/fresh/machine.sh FOLDER [--suite NAME] [--with PACKAGE,...] [--keep] [--offline]

  FOLDER           where the machine is made; one that is there is used again, with a new clone
  --suite NAME     of Debian (default: bookworm, which is Debian 12)
  --with PACKAGES  what else is installed, for example python3-pip or pocl-opencl-icd,ocl-icd-libopencl1
  --keep           go on with the clone that is there and what was built in it, brought to HEAD
  --offline        fetch Rust's packages, then try the demo with neither network nor runtime: one sentence, exit status 2

Ends with the exit status of the first command that failed."

fail() { echo "error: $*" >&2; exit 2; }

folder='' suite=bookworm packages=ca-certificates,g++,git keep=no offline=no
while [ $# -gt 0 ]; do
    case $1 in
        --suite) suite=${2:?$usage}; shift ;;
        --with) packages+=,${2:?$usage}; shift ;;
        --keep) keep=yes ;;
        --offline) offline=yes ;;
        -*) fail "$usage" ;;
        *) folder=$1 ;;
    esac
    shift
done
[ -n "$folder" ] || fail "$usage"
[ "$(id -u)" = 0 ] || fail "needs root, to make a machine in a folder"
command -v debootstrap >/dev/null || fail "needs debootstrap (Debian, Ubuntu: \`apt install debootstrap\`)"
command -v rustup >/dev/null || fail "needs rustup, whose toolchain the machine gets"

# Mounts made below belong to this script alone and end with it.
if [ "${FRESH_IN_NAMESPACE:-}" != yes ]; then
    with=${packages#ca-certificates,g++,git}
    exec env FRESH_IN_NAMESPACE=yes unshare --mount "$0" "$folder" --suite "$suite" \
        ${with:+--with "${with#,}"} $([ "$keep" = no ] || echo --keep) $([ "$offline" = no ] || echo --offline)
fi

here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
root=$(cd "$folder" && pwd)

if [ ! -e "$root/made" ]; then
    # The archive that this machine uses, which may be a mirror.
    # A machine has some of these files, hardly all.
    archive=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
        grep -v '^ *#' | grep -v security | grep -oE 'https?://[^ ]+' | head -n 1 || true)
    [ -n "$archive" ] || fail "no package archive in /etc/apt/sources.list"
    debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$archive" /usr/share/debootstrap/scripts/sid
    chroot "$root" useradd --create-home --home-dir /srv/user user
    touch "$root/made"
fi
# Packages that were asked for later.
missing=$(for name in ${packages//,/ }; do
    chroot "$root" dpkg -s "$name" >/dev/null 2>&1 || echo "$name"
done)

# How this machine reaches the network, and which certificates it trusts.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
for kind in proc sys dev; do mount --rbind "/$kind" "$root/$kind"; done
if [ -n "$missing" ]; then
    chroot "$root" apt-get -q update
    # shellcheck disable=SC2086
    chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing
fi

# The toolchain of rust-toolchain.toml, as rustup would install it.
toolchain=$(cd "$here" && rustup show active-toolchain | cut -d ' ' -f 1)
rust=$root/opt/rust
if [ ! -e "$rust/rustup/toolchains/$toolchain" ]; then
    mkdir -p "$rust/rustup/toolchains" "$rust/cargo"
    cp -a "$(realpath "$(cd "$here" && rustc --print sysroot)")" "$rust/rustup/toolchains/$toolchain"
    cp -a "${RUSTUP_HOME:-$HOME/.rustup}/settings.toml" "$rust/rustup/"
    cp -a "${CARGO_HOME:-$HOME/.cargo}/bin" "$rust/cargo/"
fi
chroot "$root" chown -R user:user /opt/rust

clone=$root/srv/user/hipcl
if [ "$keep" = yes ] && [ -e "$clone" ]; then
    git -C "$clone" -c safe.directory="*" fetch --quiet origin HEAD
    git -C "$clone" -c safe.directory="*" reset --quiet --hard FETCH_HEAD
else
    rm -rf "$clone"
    git clone --quiet "$here" "$clone"
fi
chroot "$root" chown -R user:user /srv/user/hipcl

# The user's path does not lead there.
chroot=$(command -v chroot)
as_user() {
    env -i HOME=/srv/user USER=user LANG=C.UTF-8 TERM="${TERM:-dumb}" \
        RUSTUP_HOME=/opt/rust/rustup CARGO_HOME=/opt/rust/cargo PATH=/opt/rust/cargo/bin:/usr/bin:/bin \
        HTTPS_PROXY="${HTTPS_PROXY:-}" NO_PROXY="${NO_PROXY:-}" \
        "${namespace[@]}" "$chroot" --userspec=user:user "$root" bash -c "cd ~/hipcl && $*"
}
namespace=()

timed() {
    local began=$SECONDS status=0
    echo "fresh: $*"
    as_user "$@" || status=$?
    echo "fresh: $* ended with status $status after $(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s"
    return $status
}

if [ "$offline" = yes ]; then
    as_user cargo fetch --locked --quiet
    namespace=("$(command -v unshare)" --net)
    status=0
    timed cargo --offline xtask demo || status=$?
    [ "$status" = 2 ] || fail "status 2 was due"
    exit 0
fi
timed cargo xtask demo
timed cargo xtask test
echo "fresh: $(as_user du -sh target | cut -f 1) in target/"
