//! Which programs run on which platform, and which skips are acceptable there.

use super::{Platform, c_programs};

/// The packages whose tests run on any platform.
pub const PACKAGES: &[&str] = &["hip-sys", "hip", "rocblas", "hip-cuda", "clmgr", "clmgr-fft", "interop"];

/// A test program that does not test a device.
struct LeftOut {
    package: &'static str,
    program: &'static str,
    why: &'static str,
}

const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        package: "hip",
        program: "errors",
        why: "makes the software device fail on demand",
    },
    LeftOut {
        package: "hip",
        program: "leaks",
        why: "makes the software device fail on demand",
    },
    LeftOut {
        package: "hip",
        program: "releases",
        why: "works on made-up tables, without a device",
    },
    LeftOut {
        package: "hip",
        program: "functions",
        why: "reads the sources, which are not there",
    },
    LeftOut {
        package: "rocblas",
        program: "functions",
        why: "reads the sources, which are not there",
    },
    LeftOut {
        package: "rocblas",
        program: "faults",
        why: "makes the software device fail on demand",
    },
    LeftOut {
        package: "rocblas",
        program: "solver_faults",
        why: "makes the software device fail on demand",
    },
    LeftOut {
        package: "hip-cuda",
        program: "coverage",
        why: "reads the sources, which are not there",
    },
    LeftOut {
        package: "clmgr",
        program: "strict_amd",
        why: "models AMD's OpenCL over a processor's",
    },
];

/// The test programs of `interop` that take any platform; the others plan failures, devices or processes of the
/// software device.
const INTEROP: &[&str] = &[
    "shared",
    "products",
    "inverses",
    "grades",
    "pipelines",
    "large",
    "one_stream",
    "meter",
    "stream_allocations",
    "cards",
];

/// Whether a program's ignored tests run on cards: those that a processor takes too long for, or too much memory.
pub fn runs_ignored(platform: Platform, package: &str, program: &str) -> bool {
    platform != Platform::Host && (package, program) == ("interop", "large")
}

/// Why a program is left out on a device, if it is.
pub fn left_out(platform: Platform, package: &str, program: &str) -> Option<&'static str> {
    match (platform, package) {
        (Platform::Host, _) => return None,
        (Platform::Amd, "hip-cuda") => return Some("is about CUDA"),
        (Platform::Nvidia, "hip-sys") => return Some("is about AMD's library"),
        (_, "hip-sys") if program != "real_library" => return Some("works on made-up tables, without a device"),
        (Platform::Amd, "clmgr") if program == "share_cuda" => return Some("is about CUDA"),
        (Platform::Nvidia, "interop") if program == "meter" => {
            return Some("CUDA's graphs do not tell their nodes here, so that captured copies count once");
        }
        (_, "interop") if !INTEROP.contains(&program) => {
            return Some("plans what the software device does");
        }
        _ => {}
    }
    LEFT_OUT
        .iter()
        .find(|left| (left.package, left.program) == (package, program))
        .map(|left| left.why)
}

/// Whether a program runs on one card at least, and so belongs into a bundle.
pub fn runs_on_a_card(package: &str, program: &str) -> bool {
    let cards = [Platform::Amd, Platform::Nvidia];
    cards.iter().any(|card| left_out(*card, package, program).is_none())
}

/// An acceptable skip: what the hardware or its driver is known to lack. Any other skip on a device that was promised
/// is a failure.
struct Lack {
    platforms: &'static [Platform],
    /// Part of the reason that the test gives.
    reason: &'static str,
}

const LACKS: &[Lack] = &[
    // NVIDIA's OpenCL has coarse-grain SVM only.
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "lacks SvmCapabilities(FINE",
    },
    // A package of its own beside CUDA.
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "no NCCL",
    },
    // It imports semaphores, and exports none.
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "semaphores of that kind are imported only",
    },
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "the device exports no semaphore",
    },
    // ROCm's OpenCL has neither external memory nor semaphores.
    Lack {
        platforms: &[Platform::Amd],
        reason: "the device lacks cl_khr_",
    },
    // ROCm's OpenCL has work-groups of 256, private memory of 128 KiB, and in-order queues only.
    Lack {
        platforms: &[Platform::Amd],
        reason: "the device allows 256",
    },
    Lack {
        platforms: &[Platform::Amd],
        reason: "more private memory than the device has",
    },
    Lack {
        platforms: &[Platform::Amd],
        reason: "the device has no out-of-order queues",
    },
    // It builds OpenCL C and code objects, and shares no memory that it did not allocate.
    Lack {
        platforms: &[Platform::Amd],
        reason: "the device does not accept an intermediate language",
    },
    Lack {
        platforms: &[Platform::Amd],
        reason: "lacks SvmCapabilities(FINE_SYSTEM",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "are tried on processors",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "needs two devices",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "kernels cannot access the other device",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "the software device",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "is about the host platform",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "a GPU does not know which memory a pointer leads to",
    },
    // `hipcl doctor` does not prove it there.
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "the grade `callback` does not work",
    },
    // The two APIs take turns with the memory by the host alone.
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "the host hands over here in any case",
    },
    // Its driver's `clEnqueueAcquireExternalMemObjectsKHR` returns when the user event ends.
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "the caller waits too behind a user event",
    },
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "OpenCL's SVM means nothing to HIP here",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "moves memory between direct routes",
    },
    Lack {
        platforms: &[Platform::Nvidia],
        reason: "CUDA",
    },
    Lack {
        platforms: &[Platform::Amd],
        reason: "the platform has no rocSOLVER",
    },
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "the system's ICD loader",
    },
    // Settings and a linker that only this OpenCL on processors has.
    Lack {
        platforms: &[Platform::Amd, Platform::Nvidia],
        reason: "only Intel's",
    },
];

/// Whether a skip with this reason is acceptable.
pub fn is_known_lack(platform: Platform, reason: &str) -> bool {
    platform == Platform::Host
        || LACKS
            .iter()
            .any(|lack| lack.platforms.contains(&platform) && reason.contains(lack.reason))
}

/// A test that an emulated GPU cannot pass, though a card may.
pub struct Beyond {
    package: &'static str,
    program: &'static str,
    pub test: &'static str,
    pub why: &'static str,
    /// How the names of the GPUs begin that have this limit; all if empty.
    gpus: &'static str,
}

impl Beyond {
    pub fn is_in(&self, package: &str, program: &str, gpu: &str) -> bool {
        (self.package, self.program) == (package, program) && gpu.starts_with(self.gpus)
    }
}

pub const BEYOND_EMULATOR: &[Beyond] = &[
    Beyond {
        package: "hip",
        program: "ordering",
        test: "a_copy_for_the_host_that_fails_after_it_was_queued_is_waited_for",
        why: "emulated: a copy of a rectangle behind a host function never ends, in plain C too",
        gpus: "",
    },
    Beyond {
        package: "clmgr",
        program: "bridge",
        test: "offsets_above_4_gib_are_kept",
        why: "emulated: copies more than 4 GiB, at a megabyte a second",
        gpus: "",
    },
    Beyond {
        package: "clmgr",
        program: "launch",
        test: "one_kernel_serves_many_threads_without_mixing_their_arguments",
        why: "emulated: with eight threads, reads at times give what the launch before wrote, in plain C too",
        gpus: "",
    },
    Beyond {
        package: "interop",
        program: "shared",
        test: "an_impossible_allocation_is_an_error_and_the_bridge_stays_usable",
        why: "emulated: memory is the host's, and what a card would refuse is taken from it until the process is killed",
        gpus: "",
    },
    Beyond {
        package: "interop",
        program: "grades",
        test: "a_queued_ahead_hand_off_is_measured_where_there_is_one",
        why: "emulated: measures times, over thousands of launches",
        gpus: "",
    },
    Beyond {
        package: "rocblas",
        program: "mixed",
        test: "gemm_ex_is_the_product_in_every_combination_of_types",
        why: "emulated: some products of 16-bit numbers are wrong on gfx908, in plain C too",
        gpus: "gfx908",
    },
];

/// What an emulated GPU is good for.
#[derive(Clone, Copy, Debug)]
pub struct Able {
    /// Whether there is another one beside it.
    pub has_peer: bool,
}

/// Why a program is left out on an emulated GPU that runs on a card. `is_named`: its package was asked for.
pub fn left_out_emulated(package: &str, program: &str, able: Able, is_named: bool) -> Option<&'static str> {
    if package == c_programs::PACKAGE {
        return c_program_left_out(program, able);
    }
    match (package, program) {
        ("clmgr", "faults") => {
            Some("repeats its work for each driver call that may fail, which takes an emulated GPU too long")
        }
        ("rocblas", _) if !is_named => {
            Some("takes minutes for each program there, and some do not end: run it with `--package rocblas`")
        }
        ("interop", "large") => Some("allocates more than an emulated GPU has"),
        ("hip", "random_lives") => Some("takes longer than an emulated GPU is given"),
        _ => None,
    }
}

fn c_program_left_out(program: &str, able: Able) -> Option<&'static str> {
    match program {
        "binary" | "not_built" => Some("is about the software device"),
        "external" => Some("imports a file of memory, which the software device alone takes for a GPU's"),
        "cooperative" => Some("emulated: `ds_gws_init`, which cooperative launches begin with, is not implemented"),
        "ipc" => Some("emulated: an assertion of ROCr ends the export of memory that is not aligned to 2 MiB"),
        "pool" => Some("emulated: the kernel driver does not keep what is said about ranges of managed memory"),
        "levels" | "solver" => Some("takes longer than an emulated GPU is given"),
        "virtual" => Some("emulated: pages without access can be used"),
        "device" | "peer" | "hsa" if !able.has_peer => Some("needs two devices: run it with `--gpu gfx908x2`"),
        _ => None,
    }
}

/// The jobs with as little data as they take.
pub const EMULATED_JOBS: &[&str] = &[
    "doctor",
    "pipeline note --samples 4096 --iterations 2 --route svm-coarse",
    "pipeline note --samples 4096 --iterations 2 --kernels queue --route gpu-va",
    "pipeline note --samples 4096 --iterations 2 --graph --route dma-buf",
    "pipeline capon --elements 16 --segments 40 --channels 16 --step 1 --iterations 1",
    "pipeline capon --elements 16 --segments 40 --channels 16 --step 1 --iterations 1 --kernels queue",
    "pipeline gps --generate --blocks 2 --sub 1 --doppler-max 1000 --iterations 1",
    "pipeline radar --blocks 1 --channels 4 --samples 600 --pulse 160 --beams 16 --iterations 1",
];

/// An example of `interop`, which checks itself: exit status 0 is a pass.
#[derive(Debug)]
pub struct Example {
    pub name: &'static str,
    pub args: &'static [&'static str],
    /// Whether it starts a second process that uses the same GPU.
    pub shares_the_gpu: bool,
    /// Whether it shows something on two GPUs only.
    pub needs_peer: bool,
    /// Why an emulated GPU cannot run it, if so.
    pub beyond_emulator: Option<&'static str>,
}

impl Example {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            args: &[],
            shares_the_gpu: false,
            needs_peer: false,
            beyond_emulator: None,
        }
    }
}

/// The examples that run on AMD's cards. Those of `hip` are started by its tests.
pub const EXAMPLES: &[Example] = &[
    Example::new("05_svm_bridge"),
    Example::new("06_foreign_cl_mem"),
    Example {
        shares_the_gpu: true,
        ..Example::new("07_dma_buf")
    },
    Example::new("08_grades"),
    Example::new("09_double_buffer"),
    Example {
        args: &["dma-buf", "ipc-handle"],
        shares_the_gpu: true,
        ..Example::new("10_ipc")
    },
    Example {
        args: &["hip-fd"],
        shares_the_gpu: true,
        ..Example::new("10_ipc")
    },
    Example {
        needs_peer: true,
        ..Example::new("11_multi_gpu")
    },
    Example::new("13_one_stream"),
    Example::new("14_graph"),
    Example::new("15_moving"),
];

/// Commands that prove themselves: exit status 0 is a pass.
pub const JOBS: &[&str] = &[
    "doctor",
    "pipeline note --iterations 5",
    "pipeline note --iterations 5 --kernels queue",
    "pipeline note --iterations 6 --graph",
    "pipeline capon --iterations 3",
    "pipeline capon --iterations 3 --kernels queue",
    "pipeline capon --iterations 3 --graph",
    "pipeline gps --generate",
    "pipeline gps --generate --kernels queue",
    "pipeline gps --generate --graph",
    "pipeline radar",
    "pipeline radar --kernels queue",
    "pipeline radar --graph",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promised_device_may_lack_only_what_is_known() {
        let fine = "`NVIDIA H200` lacks SvmCapabilities(FINE_BUFFER)";
        assert!(is_known_lack(Platform::Nvidia, fine));
        assert!(!is_known_lack(Platform::Amd, fine));
        assert!(!is_known_lack(Platform::Nvidia, "no OpenCL device"));
        for platform in [Platform::Amd, Platform::Nvidia] {
            assert!(is_known_lack(platform, "only Intel's driver reads such settings"));
        }
    }

    #[test]
    fn an_emulated_gpu_alone_is_not_asked_for_its_peer() {
        for has_peer in [false, true] {
            let able = Able { has_peer };
            let left_out = left_out_emulated(c_programs::PACKAGE, "peer", able, false);
            assert_eq!(left_out.is_none(), has_peer);
            for package in ["hip", c_programs::PACKAGE] {
                assert!(left_out_emulated(package, "memory", able, false).is_none());
            }
            assert!(left_out_emulated("hip", "random_lives", able, true).is_some());
            for is_named in [false, true] {
                let left_out = left_out_emulated("rocblas", "products", able, is_named);
                assert_eq!(left_out.is_none(), is_named);
            }
        }
    }

    #[test]
    fn a_limit_of_one_emulated_gpu_is_not_anothers() {
        let beyond = |package, program, gpu| {
            let limits = BEYOND_EMULATOR.iter();
            limits.filter(|limit| limit.is_in(package, program, gpu)).count()
        };
        assert_eq!(beyond("rocblas", "mixed", "gfx908s"), 1);
        assert_eq!(beyond("rocblas", "mixed", "gfx1100"), 0);
        assert_eq!(
            beyond("hip", "ordering", "gfx908s"),
            beyond("hip", "ordering", "gfx1100")
        );
    }

    #[test]
    fn on_the_software_device_nothing_is_left_out() {
        assert!(left_out(Platform::Host, "hip", "errors").is_none());
        assert!(left_out(Platform::Nvidia, "hip", "errors").is_some());
        assert!(left_out(Platform::Nvidia, "hip", "memory").is_none());
        assert!(runs_on_a_card("hip", "memory") && runs_on_a_card("hip-cuda", "device"));
        assert!(!runs_on_a_card("interop", "failover"));
    }
}
