//! The runtimes' library files in this process.

use std::collections::BTreeSet;

/// Libraries of which a process must hold one file only: each file has a state of its own.
pub(crate) const SINGLE: [&str; 4] = ["libhsa-runtime64", "libamdhip64", "libamdocl64", "libOpenCL"];
/// AMD's emulator of GPUs, which a process has loaded before HIP.
pub(crate) const EMULATOR: &str = "librocjitsu";
/// Further ones that show what a process works with.
const TOLD: [&str; 13] = [
    EMULATOR,
    "libhiprtc",
    "librocblas",
    "librocsolver",
    "librccl",
    "libcuda",
    "libnvrtc",
    "libcublas",
    "libcusolver",
    "libnccl",
    "libnvidia-opencl",
    "libintelocl",
    "libpocl",
];

pub(crate) fn of_this_process() -> Vec<String> {
    of_maps(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// The files in the text of a `/proc/PID/maps` (`proc_pid_maps(5)`: the path is the sixth field and may hold spaces).
pub(crate) fn of_maps(maps: &str) -> Vec<String> {
    let files: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]))
        .filter(|path| {
            let name = path.rsplit('/').next().unwrap_or_default();
            SINGLE.iter().chain(&TOLD).any(|known| is(name, known))
        })
        .collect();
    files.into_iter().map(str::to_owned).collect()
}

/// What emulates the GPU of a process with these files, if that is known.
pub(crate) fn emulator(files: &[String]) -> Option<String> {
    let name = |file: &String| is(file.rsplit('/').next().unwrap_or_default(), EMULATOR);
    files.iter().any(name).then(|| "rocjitsu".to_owned())
}

/// Whether `name` is a file of the library: `libOpenCL.so.1`, and not `libOpenCLextra.so`.
pub(crate) fn is(name: &str, library: &str) -> bool {
    name.strip_prefix(library).is_some_and(|rest| rest.starts_with(".so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_gpu_is_known_by_its_emulator() {
        let files = |name: &str| vec!["/opt/lib/libamdhip64.so.7".to_owned(), format!("/x/{name}")];
        assert_eq!(emulator(&files("librocjitsu.so")).as_deref(), Some("rocjitsu"));
        assert_eq!(emulator(&files("librocjitsus.so")), None);
    }

    #[test]
    fn each_runtime_file_of_the_maps_is_named_once() {
        let maps = "\
7f0000000000-7f0000001000 r--p 00000000 08:01 12 /opt/rocm-6.3.0/lib/libhsa-runtime64.so.1.14.60300
7f0000001000-7f0000002000 r-xp 00001000 08:01 12 /opt/rocm-6.3.0/lib/libhsa-runtime64.so.1.14.60300
7f0000002000-7f0000003000 r-xp 00001000 08:01 13 /srv/a user/wheel/libhsa-runtime64.so (deleted)
7f0000003000-7f0000004000 r-xp 00001000 08:01 14 /usr/lib/libOpenCLextra.so
7f0000004000-7f0000005000 rw-p 00000000 00:00 0
7f0000005000-7f0000006000 rw-p 00000000 00:00 0 [heap]
";
        assert_eq!(
            of_maps(maps),
            [
                "/opt/rocm-6.3.0/lib/libhsa-runtime64.so.1.14.60300",
                "/srv/a user/wheel/libhsa-runtime64.so (deleted)"
            ]
        );
    }
}
