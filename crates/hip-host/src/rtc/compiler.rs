//! The machine's C++ compiler.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::kernel::elf;

/// A working compiler.
pub(crate) struct Compiler {
    pub(crate) command: Vec<String>,
    /// Its version text, for cache keys and logs: compilers with one text and one command count as the same.
    pub(crate) version: String,
    is_clang: bool,
    /// Whether it takes `ROUND_HALVES`, asked once.
    rounds_halves: OnceLock<bool>,
}

/// How the library is linked.
const LINK: [&str; 10] = [
    "-x",
    "none",
    "-shared",
    // Its parts run code when the library is loaded, for what no module has.
    "-nostartfiles",
    "-Wl,-Bsymbolic",
    "-Wl,--as-needed",
    "-Wl,-z,defs",
    // The table of kernels holds addresses, and must not be written once it is loaded.
    "-Wl,-z,relro",
    "-lm",
    "-o",
];

/// Each operation on halves rounds, as on a GPU. Without it GCC (13 and later) and Clang compute a whole expression in
/// `float` where the processor has no arithmetic on halves; GCC 12 rounds either way.
const ROUND_HALVES: &str = "-fexcess-precision=16";

/// Why a compiler produced nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    /// Its own messages.
    #[error("{0}")]
    Rejected(String),
    #[error("{0}")]
    NoCompiler(&'static str),
    #[error("cannot run `{command}`: {reason}")]
    NotRun { command: String, reason: String },
    #[error("{0}")]
    Sanitizer(String),
    #[error("cannot use the folder for temporary files: {0}")]
    Temporary(#[from] std::io::Error),
}

fn answers(command: Vec<String>) -> Result<Compiler, String> {
    let (program, fixed) = command.split_first().ok_or("empty command")?;
    let output = Command::new(program)
        .args(fixed)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("`--version` ended with {}", output.status));
    }
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_clang = version.contains("clang");
    Ok(Compiler {
        command,
        version,
        is_clang,
        rounds_halves: OnceLock::new(),
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn search() -> Result<Compiler, String> {
    // One that was chosen is used or reported, never passed over.
    for variable in ["HIPCL_CXX", "CXX"] {
        if let Some(chosen) = std::env::var(variable).ok().filter(|text| !text.trim().is_empty()) {
            return answers(words(&chosen)).map_err(|reason| {
                format!("hip-host: {variable}=`{chosen}` does not work as a C++ compiler ({reason}): correct it, or unset it to search for one")
            });
        }
    }
    let mut tried = Vec::new();
    for candidate in ["c++", "g++", "clang++"] {
        match answers(words(candidate)) {
            Ok(compiler) => return Ok(compiler),
            Err(reason) => tried.push(format!("{candidate}: {reason}")),
        }
    }
    Err(format!(
        "hip-host: no C++ compiler found ({}), and the host platform compiles kernels with one: install g++ or clang++ (Debian and Ubuntu: `apt install g++`), or set HIPCL_CXX to one",
        tried.join("; ")
    ))
}

/// The compiler of this machine, searched for once.
pub(crate) fn find() -> Result<&'static Compiler, CompileError> {
    static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
    FOUND
        .get_or_init(search)
        .as_ref()
        .map_err(|reason| CompileError::NoCompiler(reason))
}

/// The processor code is made for: `HIP_HOST_MARCH`, else this one.
pub(crate) fn march() -> String {
    std::env::var("HIP_HOST_MARCH")
        .ok()
        .filter(|name| !name.trim().is_empty())
        .unwrap_or_else(|| "native".to_owned())
}

/// What `-march=native` stands for here: code kept in a shared cache must not meet a lesser processor.
pub(crate) fn processor() -> &'static str {
    static FLAGS: OnceLock<String> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let lines = info.lines().take_while(|line| !line.is_empty());
        let of_interest = lines.filter(|line| {
            ["model", "cpu family", "vendor_id", "flags", "Features", "CPU "]
                .iter()
                .any(|key| line.starts_with(key))
        });
        of_interest.collect::<Vec<_>>().join("\n")
    })
}

impl Compiler {
    fn gcc_at_least(&self, wanted: u32) -> bool {
        // "g++ (Debian 12.2.0-14) 12.2.0": the version is the first line's last word but for a date some distributors
        // add.
        let line = self.version.lines().next().unwrap_or_default();
        let numbers = line.rsplit(')').next().unwrap_or_default();
        let major = numbers.trim_start().split('.').next();
        !self.is_clang
            && major
                .and_then(|major| major.parse::<u32>().ok())
                .is_some_and(|major| major >= wanted)
    }

    /// The options it was configured with.
    pub(crate) fn options(&self) -> impl Iterator<Item = &str> {
        let words = self.command.iter().skip(1).map(String::as_str);
        words.filter(|word| word.starts_with(['-', '@']))
    }

    /// Options of both steps that the caller's may override. Floating point as HIP has it: products and sums are fused,
    /// nothing sets `errno` or traps.
    fn defaults(&self) -> Vec<String> {
        let mut options: Vec<String> = [
            "-std=c++17",
            "-O3",
            "-ffp-contract=fast",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-fno-strict-aliasing",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-threadsafe-statics",
        ]
        .map(str::to_owned)
        .to_vec();
        if self.gcc_at_least(9) {
            // `x < width && y < height` stays two comparisons, of which the loop over x sheds each in its own way.
            options.push("--param=logical-op-non-short-circuit=0".to_owned());
        }
        options
    }

    /// Options of both steps without which the library could not be loaded, unloaded or read: behind the caller's.
    fn required(&self) -> Vec<String> {
        let mut options = ["-fPIC", "-fno-semantic-interposition", "-fdiagnostics-color=never"]
            .map(str::to_owned)
            .to_vec();
        if !self.is_clang {
            // A library with a unique symbol is never unloaded.
            options.push("-fno-gnu-unique".to_owned());
        }
        options.push(format!("-march={}", march()));
        options
    }

    /// All options that are not the caller's.
    pub(crate) fn all_options(&self) -> Vec<String> {
        let linked = LINK.map(str::to_owned);
        [self.defaults(), self.required(), self.checks(), linked.to_vec()].concat()
    }

    /// Whether it compiles with `ROUND_HALVES` and has nothing to say about it: kernels with messages are not cached.
    fn rounds_halves(&self) -> bool {
        *self.rounds_halves.get_or_init(|| {
            let answer = self.command.split_first().and_then(|(program, fixed)| {
                Command::new(program)
                    .args(fixed)
                    .args(self.defaults())
                    .args(self.required())
                    .args([ROUND_HALVES, "-x", "c++", "-fsyntax-only", "/dev/null"])
                    .stdin(Stdio::null())
                    .output()
                    .ok()
            });
            answer.is_some_and(|output| output.status.success() && output.stderr.is_empty())
        })
    }

    fn run(&self, folder: &Path, arguments: Vec<OsString>) -> Result<String, CompileError> {
        let (program, fixed) = self
            .command
            .split_first()
            .ok_or(CompileError::NoCompiler("hip-host: empty compiler command"))?;
        let output = Command::new(program)
            .args(fixed)
            .args(arguments)
            .stdin(Stdio::null())
            .env("LC_ALL", "C")
            // Its folders would be searched when the module is loaded, which is refused.
            .env_remove("LD_RUN_PATH")
            .output()
            .map_err(|error| CompileError::NotRun {
                command: program.clone(),
                reason: error.to_string(),
            })?;
        let prefix = format!("{}/", folder.display());
        let messages = String::from_utf8_lossy(&output.stderr)
            .replace(&format!("{prefix}include/"), "")
            .replace(&prefix, "");
        if output.status.success() {
            return Ok(messages);
        }
        let messages = if messages.trim().is_empty() {
            format!("the compiler ended with {}\n", output.status)
        } else {
            messages
        };
        Err(CompileError::Rejected(messages))
    }

    /// Runs the preprocessor; the text and the messages.
    pub(crate) fn preprocess(
        &self,
        folder: &Path,
        source: &Path,
        options: &[String],
    ) -> Result<(String, String), CompileError> {
        let out = folder.join("kernel.i");
        let mut arguments: Vec<OsString> = self.defaults().into_iter().map(OsString::from).collect();
        // Before the caller's folders: HIP's own headers, which programs find in ROCm's include folder and give with
        // `-I`, are for AMD's compiler only, and HIPRTC too takes what it has built in for them.
        arguments.extend([OsString::from("-I"), folder.join("builtin").into()]);
        arguments.extend(options.iter().map(OsString::from));
        arguments.extend(self.required().into_iter().map(OsString::from));
        arguments.extend(["-x", "c++", "-E"].map(OsString::from));
        arguments.extend([OsString::from("-I"), folder.join("include").into()]);
        arguments.extend([source.into(), OsString::from("-o"), out.clone().into()]);
        let messages = self.run(folder, arguments)?;
        Ok((String::from_utf8_lossy(&std::fs::read(out)?).into_owned(), messages))
    }

    /// The shared library with the runtime of AddressSanitizer, as the compiler names it.
    pub(crate) fn sanitizer_library(&self) -> String {
        let name = if self.is_clang {
            format!("libclang_rt.asan-{}.so", std::env::consts::ARCH)
        } else {
            "libasan.so".to_owned()
        };
        let answer = self.command.split_first().and_then(|(program, fixed)| {
            Command::new(program)
                .args(fixed)
                .arg(format!("-print-file-name={name}"))
                .stdin(Stdio::null())
                .output()
                .ok()
        });
        answer
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
            .filter(|path| !path.is_empty())
            .unwrap_or(name)
    }

    /// Options of a kernel that AddressSanitizer checks: lines for its reports, and its runtime from outside.
    fn checks(&self) -> Vec<String> {
        let mut options = ["-fsanitize=address", "-O1", "-g", "-fno-omit-frame-pointer"]
            .map(str::to_owned)
            .to_vec();
        if self.is_clang {
            options.push("-shared-libasan".to_owned());
        }
        options
    }

    /// Compiles preprocessed text, with a table of kernels of this name, to a shared library; its bytes and the messages.
    pub(crate) fn compile(
        &self,
        folder: &Path,
        text: &str,
        options: &[String],
        table: &str,
        checked: bool,
    ) -> Result<(Vec<u8>, String), CompileError> {
        let (source, out) = (folder.join("kernel.ii"), folder.join("kernel.so"));
        std::fs::write(&source, text)?;
        let mut arguments: Vec<OsString> = self.defaults().into_iter().map(OsString::from).collect();
        let has_halves = ["_Float16", "__bf16"].iter().any(|name| text.contains(name));
        if has_halves && self.rounds_halves() {
            arguments.push(ROUND_HALVES.into());
        }
        arguments.extend(options.iter().map(OsString::from));
        arguments.extend(self.required().into_iter().map(OsString::from));
        if checked {
            arguments.extend(self.checks().into_iter().map(OsString::from));
        }
        arguments.extend(["-x", "c++-cpp-output"].map(OsString::from));
        arguments.push(source.into());
        arguments.extend(LINK.map(OsString::from));
        arguments.push(out.clone().into());
        let messages = self.run(folder, arguments)?;
        let library = std::fs::read(out)?;
        if let Err(refusal) = elf::examine(&library, table, checked) {
            return Err(CompileError::Rejected(format!("{messages}error: {refusal}\n")));
        }
        Ok((library, messages))
    }
}
