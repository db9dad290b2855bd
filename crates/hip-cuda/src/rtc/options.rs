//! Options of `hiprtcCompileProgram`, which address clang, as NVRTC options.

use std::ffi::CString;

/// What the compiler makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// For one device.
    #[default]
    MachineCode,
    /// PTX, which the driver compiles when it loads it.
    Assembly,
}

/// Options for NVRTC.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) list: Vec<CString>,
    pub(crate) output: Output,
}

/// An option that neither compiler would take.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("hip-cuda: option `{0}` is not supported by the nvidia platform: remove it, or guard it by platform")]
pub(crate) struct BadOption(String);

const ARCHITECTURE: &[&str] = &["--offload-arch=", "--gpu-architecture=", "-arch=", "--amdgpu-target="];

/// Options about optimisation and warnings, which change no result, and about AMD's code generation.
const WITHOUT_EFFECT: &[&str] = &[
    "-O",
    "-W",
    "-w",
    "-g",
    "-pedantic",
    "-fgpu-",
    "-fcuda-",
    "-fhip-",
    "-fno-gpu-",
    "-fno-cuda-",
    "-munsafe-fp-atomics",
    "-mno-unsafe-fp-atomics",
    "-mcumode",
    "-mno-cumode",
    "-mwavefrontsize64",
    "-mno-wavefrontsize64",
    "--gpu-max-threads-per-block=",
];

/// `own` returns the device's architecture, used where the options name none.
pub(crate) fn translate(given: &[String], own: impl FnOnce() -> Option<String>) -> Result<Options, BadOption> {
    let mut options = Options::default();
    let mut architecture = None;
    let mut standard = false;
    let mut given = given
        .iter()
        .map(|option| option.trim())
        .filter(|option| !option.is_empty());
    while let Some(option) = given.next() {
        let bad = || BadOption(option.to_owned());
        let mut push = |text: String| -> Result<(), BadOption> {
            options.list.push(CString::new(text).map_err(|_| bad())?);
            Ok(())
        };
        let after = |starts: &[&str]| {
            starts
                .iter()
                .find_map(|start| option.strip_prefix(start))
                .map(str::to_owned)
        };
        if let Some(name) = after(ARCHITECTURE) {
            architecture = Some(name);
            continue;
        }
        match option {
            "--offload-arch" | "--gpu-architecture" | "-arch" => {
                architecture = Some(given.next().ok_or_else(bad)?.to_owned());
            }
            "-mllvm" => {
                given.next().ok_or_else(bad)?;
            }
            "-D" | "-U" | "-I" | "--define-macro" | "--include-path" | "-isystem" | "-include" => {
                let value = given.next().ok_or_else(bad)?;
                push(match option {
                    "-D" | "--define-macro" => format!("-D{value}"),
                    "-U" => format!("-U{value}"),
                    "-include" => format!("--pre-include={value}"),
                    _ => format!("-I{value}"),
                })?;
            }
            "-ffast-math" | "-use_fast_math" | "--use_fast_math" => push("--use_fast_math".into())?,
            "-ffp-contract=off" => push("--fmad=false".into())?,
            "-ffp-contract=fast" | "-ffp-contract=on" => push("--fmad=true".into())?,
            _ if ["-D", "-U", "-I"].iter().any(|start| option.starts_with(start)) => {
                push(option.to_owned())?;
            }
            _ => {
                if let Some(version) = after(&["-std=", "--std="]) {
                    // GNU's additions are not NVRTC's.
                    push(format!("--std={}", version.replace("gnu++", "c++")))?;
                    standard = true;
                } else if !WITHOUT_EFFECT.iter().any(|start| option.starts_with(start)) {
                    return Err(bad());
                }
            }
        }
    }
    if !standard {
        options.list.push(c"--std=c++17".to_owned());
    }
    if let Some(name) = architecture.or_else(own) {
        // `compute_90` is a virtual architecture: NVRTC makes PTX for it.
        if name.starts_with("compute_") {
            options.output = Output::Assembly;
        } else if !name.starts_with("sm_") {
            return Err(BadOption(format!("--offload-arch={name}")));
        }
        let option = CString::new(format!("--gpu-architecture={name}"));
        options.list.push(option.map_err(|_| BadOption(name))?);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(options: &[&str]) -> Result<(Vec<String>, Output), BadOption> {
        let options: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
        let found = translate(&options, || Some("sm_80".into()))?;
        let list = found.list.iter().map(|option| option.to_str().unwrap().to_owned());
        Ok((list.collect(), found.output))
    }

    #[test]
    fn clangs_words_become_nvrtcs() {
        let (list, output) = translated(&[
            "--offload-arch=sm_90",
            "-O3",
            "-Wall",
            "-D",
            "A=1",
            "-DB",
            "-ffast-math",
            "-std=gnu++20",
            "-mllvm",
            "-x=1",
        ])
        .unwrap();
        assert_eq!(
            list,
            [
                "-DA=1",
                "-DB",
                "--use_fast_math",
                "--std=c++20",
                "--gpu-architecture=sm_90"
            ]
        );
        assert_eq!(output, Output::MachineCode);
    }

    #[test]
    fn the_devices_own_code_is_made_where_nothing_else_is_asked_for() {
        let (list, output) = translated(&[]).unwrap();
        assert_eq!(list, ["--std=c++17", "--gpu-architecture=sm_80"]);
        assert_eq!(output, Output::MachineCode);
        let (_, output) = translated(&["-arch=compute_90"]).unwrap();
        assert_eq!(output, Output::Assembly);
    }

    #[test]
    fn amds_architectures_and_unknown_options_are_refused_by_name() {
        for option in ["--offload-arch=gfx908", "-fplugin=x.so", "--frobnicate"] {
            let error = translated(&[option]).unwrap_err().to_string();
            assert!(error.contains(option), "{error}");
        }
    }
}
