//! Options of `hiprtcCompileProgram`.

/// Options sorted by the step that takes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Definitions and include folders.
    pub(crate) preprocessor: Vec<String>,
    /// All others, for both steps.
    pub(crate) both: Vec<String>,
}

/// An option the host platform does not take.
#[derive(Debug, thiserror::Error)]
#[error("hip-host: option `{0}` is not supported by the host platform: remove it, or guard it by platform")]
pub(crate) struct BadOption(String);

/// Options that address AMD's compiler about the GPU.
const FOR_THE_GPU: &[&str] = &[
    "--gpu-architecture=",
    "--offload-arch=",
    "-arch=",
    "--amdgpu-target=",
    "-fgpu-",
    "-fcuda-",
    "-fhip-",
    "-munsafe-fp-atomics",
    "-mno-unsafe-fp-atomics",
    "-mcumode",
    "-mno-cumode",
    "-mwavefrontsize64",
    "-mno-wavefrontsize64",
    "--gpu-max-threads-per-block=",
    "-fno-gpu-",
    "-fno-cuda-",
];

/// Options with which a kernel could not be loaded, or which would name files of their own.
const REFUSED: &[&str] = &[
    "-fplugin",
    "-fdump",
    "-fuse-ld",
    "-fsyntax-only",
    "-fprofile",
    "-ftest-coverage",
    "-fno-pic",
    "-fno-PIC",
    // The launch calls the kernel as everything else is called.
    "-fcall-",
    "-ffixed-",
    "-fpack-struct",
    "-fpcc-struct-return",
    "-freg-struct-return",
    "-fshort-",
];

/// Options of the form `-fNAME=VALUE` whose value is a number or a word. That of others can be a file, which GCC would
/// read or write (`-fopt-info-all=`), or options for a second compilation.
const VALUED: &[&str] = &[
    "-fabi-version=",
    "-fconstexpr-cache-depth=",
    "-fconstexpr-depth=",
    "-fconstexpr-loop-limit=",
    "-fconstexpr-ops-limit=",
    "-fconstexpr-steps=",
    "-fdiagnostics-color=",
    "-ferror-limit=",
    "-fexcess-precision=",
    "-ffp-contract=",
    "-ffp-exception-behavior=",
    "-ffp-model=",
    "-finline-limit=",
    "-fmax-errors=",
    "-fmessage-length=",
    "-fsimd-cost-model=",
    "-ftemplate-backtrace-limit=",
    "-ftemplate-depth=",
    "-fvect-cost-model=",
    "-fvisibility=",
];

pub(crate) fn sort(given: &[String]) -> Result<Options, BadOption> {
    let mut options = Options::default();
    let mut given = given
        .iter()
        .map(|option| option.trim())
        .filter(|option| !option.is_empty());
    while let Some(option) = given.next() {
        let bad = || BadOption(option.to_owned());
        if FOR_THE_GPU.iter().any(|known| option.starts_with(known)) {
            continue;
        }
        match option {
            "-mllvm" | "--gpu-architecture" | "--offload-arch" | "-arch" => {
                given.next().ok_or_else(bad)?;
            }
            "-D" | "-U" | "-I" | "-isystem" | "--define-macro" | "--include-path" => {
                let value = given.next().ok_or_else(bad)?;
                let short = match option {
                    "--define-macro" => "-D",
                    "--include-path" => "-I",
                    other => other,
                };
                options.preprocessor.extend([short.to_owned(), value.to_owned()]);
            }
            "-ffast-math" | "--use_fast_math" | "-use_fast_math" => options.both.push("-ffast-math".to_owned()),
            _ if ["-D", "-U", "-I"].iter().any(|known| option.starts_with(known)) => {
                options.preprocessor.push(option.to_owned())
            }
            _ if REFUSED.iter().any(|known| option.starts_with(known)) => return Err(bad()),
            _ if option.starts_with("-f")
                && option.contains('=')
                && !VALUED.iter().any(|known| option.starts_with(known)) =>
            {
                return Err(bad());
            }
            _ if option.starts_with("--std=") => options.both.push(option[1..].to_owned()),
            "-g" | "-w" | "-pedantic" => options.both.push(option.to_owned()),
            // `-Wl,`, `-Wa,` and `-Wp,` speak to other tools.
            _ if option.starts_with("-W") && !option.contains(',') => options.both.push(option.to_owned()),
            _ if ["-O", "-std=", "-f"].iter().any(|known| option.starts_with(known)) => {
                options.both.push(option.to_owned())
            }
            _ => return Err(bad()),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(options: &[&str]) -> Result<Options, BadOption> {
        sort(&options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_reach_the_step_that_takes_them() {
        let options = sorted(&[
            "-DA=1",
            "-D",
            "B",
            "-Iinclude",
            "-O2",
            "--gpu-architecture=gfx908",
            "-mllvm",
            "-x=1",
            "--std=c++20",
        ])
        .unwrap();
        assert_eq!(options.preprocessor, ["-DA=1", "-D", "B", "-Iinclude"]);
        assert_eq!(options.both, ["-O2", "-std=c++20"]);
    }

    #[test]
    fn what_would_write_or_load_other_files_is_refused() {
        for option in [
            "-o",
            "out",
            "-fplugin=x.so",
            "-fcompare-debug=-fplugin=x.so",
            "-fopt-info-all=x",
            "-fopt-info-vec-missed=x",
            "-fsave-optimization-record=x",
            "-fcall-used-rbx",
            "-ffixed-r12",
            "-fpack-struct=1",
            "-Wl,-rpath,.",
            "@file",
            "-shared",
            "-march=armv7",
            "x.cpp",
            "-D",
        ] {
            assert!(sorted(&[option]).is_err(), "{option}");
        }
    }
}
