#!/bin/sh
# Links libhipcl from the static library that cargo builds, with the versions of symbols in libhipcl.map:
#
#   link.sh ARCHIVE LIBRARY [OPTION ...]
#
# rustc passes the linker a list of symbols without versions for a `cdylib`, and linkers refuse versions beside it. The number in
# the SONAME changes when a program must be compiled anew.
set -eu

archive=$1 library=$2
shift 2
here=$(dirname "$0")

# -z nodelete: threads of the library and callbacks of drivers run its code until the process ends.
exec "${CC:-cc}" -shared -o "$library" \
    -Wl,-soname,libhipcl.so.0 -Wl,--version-script="$here/libhipcl.map" -Wl,--no-undefined \
    -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections -Wl,--as-needed \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -lgcc_s -lpthread -ldl -lm "$@"
