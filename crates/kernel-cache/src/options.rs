//! The options of a compilation.

use crate::scan::{NotUnderstood, Scan};

/// Options that name no file, whatever follows an `=`, unless it contains a blank.
const PLAIN: [&str; 23] = [
    "-O",
    "-cl-",
    "-std=",
    "--std=",
    "-march=",
    "-mcpu=",
    "-mtune=",
    "-arch=",
    "--gpu-architecture=",
    "--offload-arch=",
    "--amdgpu-target=",
    "--gpu-max-threads-per-block=",
    "--maxrregcount=",
    "--fmad=",
    "--ftz=",
    "--prec-div=",
    "--prec-sqrt=",
    "-ffp-contract=",
    "-fvisibility=",
    "-ftemplate-depth=",
    "-fconstexpr-depth=",
    "-fdiagnostics-color=",
    "-finline-limit=",
];

/// Options that take no value.
const ALONE: [&str; 10] = [
    "-g",
    "-w",
    "-pedantic",
    "-save-temps",
    "--use_fast_math",
    "-use_fast_math",
    "-lineinfo",
    "--generate-line-info",
    "-default-device",
    "--device-as-default-execution-space",
];

/// Prefixes of `-f` options that read files or change the meaning of a text.
const READING: [&str; 8] = [
    "-fplugin",
    "-fmodule",
    "-fprofile",
    "-fauto-profile",
    "-fbranch-prob",
    "-fpch",
    "-finput",
    "-fms-",
];

/// Beginnings of options, without their dashes, with which a compiler loads a library into the process that it runs in
/// (HIPRTC's and OpenCL's compilers run in the caller's), starts a program of the caller's choice, or takes more options:
/// from a file, or for a part of it that has such options too.
const LOADING: [&str; 21] = [
    "fplugin",
    "fpass-plugin",
    "fcas-plugin",
    "plugin",
    "load",
    "iplugindir",
    "config",
    "specs",
    "fmodule-mapper",
    "driver-mode",
    "wrapper",
    "fcompare-debug",
    "cc1",
    "ccc-",
    "X",
    "B",
    "fuse-ld",
    "fuse-linker-plugin",
    "ld-path",
    "gcc-toolchain",
    "gcc-install-dir",
];

/// The first of these options with which a compiler would load code into the process or run a program, or that hides
/// options from this test.
///
/// Compilers differ in how they split and unquote what they are given. So a word that begins so counts wherever it
/// stands: in another option, behind a quote or a backslash, or as the value of the option before it.
///
/// ```
/// assert_eq!(kernel_cache::loading(["-O3", "-DTEXT=\"a b\""]), None);
/// assert_eq!(kernel_cache::loading(["-O3", "-fplugin=x.so"]), Some("-fplugin=x.so"));
/// ```
pub fn loading<'a>(options: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    options.into_iter().find(|option| {
        let plain = option.replace(['"', '\'', '\\'], "");
        plain.split_whitespace().any(loads)
    })
}

fn loads(word: &str) -> bool {
    // `-Wl,`, `-Wa,` and the like speak to other tools, which take plug-ins too.
    if word.starts_with('@') || word.starts_with("/clang:") || word.starts_with("-W") && word.contains(',') {
        return true;
    }
    let begins = |word: &str| {
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        name.is_some_and(|name| LOADING.iter().any(|begin| name.starts_with(begin)))
    };
    // A value may be options again, as that of `-fcompare-debug=` and `-mllvm=`; that of a macro is text.
    match word.starts_with("-D") {
        true => false,
        false => word.split(['=', ',']).any(begins),
    }
}

/// Splits an option string into words; quoted blanks do not split.
#[must_use]
pub fn words(options: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut begun) = (String::new(), false, false);
    for c in options.chars() {
        match c {
            '"' => (quoted, begun) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

impl Scan {
    /// Checks that these options do not make a compiler read a file.
    ///
    /// # Errors
    ///
    /// The first option that may, or that is unknown.
    pub fn options<'a>(&mut self, options: impl IntoIterator<Item = &'a str>) -> Result<(), NotUnderstood> {
        let mut options = options.into_iter().map(str::trim_ascii);
        while let Some(option) = options.next() {
            let unknown = || NotUnderstood::new(format!("the option `{option}` may include files"));
            match option {
                "" => {}
                "-D" | "-U" | "--define-macro" => {
                    self.definition(options.next().ok_or_else(unknown)?)?;
                }
                "--gpu-architecture" | "--offload-arch" | "-arch" => {
                    options.next().ok_or_else(unknown)?;
                }
                "-mllvm" => {
                    let value = options.next().ok_or_else(unknown)?;
                    if !value.starts_with("-amdgpu-") {
                        return Err(unknown());
                    }
                }
                _ => match option.strip_prefix("-D").or_else(|| option.strip_prefix("-U")) {
                    Some(definition) => self.definition(definition)?,
                    None if is_plain(option) => {}
                    None => return Err(unknown()),
                },
            }
        }
        Ok(())
    }

    fn definition(&mut self, definition: &str) -> Result<(), NotUnderstood> {
        match self.text(definition)?.first() {
            None => Ok(()),
            Some(name) => Err(NotUnderstood::new(format!(
                "the definition `{definition}` includes `{name}`"
            ))),
        }
    }
}

fn is_plain(option: &str) -> bool {
    let begins = |list: &[&str]| list.iter().any(|begin| option.starts_with(begin));
    if option.contains(char::is_whitespace) {
        return false;
    }
    if ALONE.contains(&option) || begins(&PLAIN) {
        return true;
    }
    let is_switch = ["-f", "-m", "-W"].iter().any(|begin| {
        option
            .strip_prefix(begin)
            .is_some_and(|name| !name.is_empty() && !name.contains(['=', ',', '/']))
    });
    is_switch && !begins(&READING) && option != "-mllvm"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(options: &[&str]) -> bool {
        Scan::default().options(options.iter().copied()).is_ok()
    }

    #[test]
    fn options_that_do_not_read_files_are_accepted() {
        assert!(understood(&[
            "-DA=1",
            "-D",
            "B",
            "-UC",
            "-O3",
            "--std=c++17",
            "-cl-std=CL2.0",
            "-cl-mad-enable",
            "--gpu-architecture=gfx90a",
            "-mllvm",
            "-amdgpu-early-inline-all=true",
            "-Wall",
            "-Wno-unused",
            "-ffast-math",
            "-munsafe-fp-atomics",
            "-w",
            "",
        ]));
    }

    #[test]
    fn options_that_may_read_files_are_refused() {
        for option in [
            "-I.",
            " -I.",
            "-include",
            "--include-path=.",
            "-isystem",
            "-imacros",
            "@file",
            "-Wp,-include,a.h",
            "-fplugin=a.so",
            "-fmodules",
            "-fmodule-map-file=a",
            "-finput-charset=UTF-7",
            "-fauto-profile=a",
            "-fms-extensions",
            "-fms-compatibility",
            "-Xclang",
            "--config=a",
            "-DASK=__has_include",
            "-D",
            "-O2 -I.",
            "a.c",
        ] {
            assert!(!understood(&[option]), "{option}");
        }
        assert!(!understood(&["-D", "ASK=__has_include"]));
        assert!(!understood(&["-mllvm", "-load=a.so"]));
    }

    #[test]
    fn an_option_that_loads_code_is_found_however_it_is_written() {
        for options in [
            &["-fplugin=x.so"][..],
            &["-O2", "-fpass-plugin=x.so"],
            &["-Xclang", "-load"],
            &["-Xlinker"],
            &["--config", "x"],
            &["--config=x"],
            &["@x"],
            &["\"@x\""],
            &["-O2 '-fplugin=x.so'"],
            &["-O2\t\\-fplugin=x.so"],
            &["-mllvm", "-load=x.so"],
            &["-mllvm=--load-pass-plugin=x.so"],
            &["-Wl,-plugin,x.so"],
            &["-B."],
            &["--plugin=x.so"],
            &["-D", "-specs=x"],
            &["-fcompare-debug=-O1"],
            &["-foffload-options=nvptx-none=-B."],
            &["-fany=-O2,-fplugin=x.so"],
        ] {
            assert!(loading(options.iter().copied()).is_some(), "{options:?}");
        }
    }

    #[test]
    fn options_that_load_nothing_are_not_taken_for_some_that_do() {
        let harmless = [
            "-O3",
            "-I",
            "/srv/load",
            "-DA=@x",
            "-DPLUGIN=-fplugin",
            "-cl-mad-enable",
            "-Wno-unused",
            "-fno-math-errno",
            "-mllvm",
            "-amdgpu-early-inline-all=true",
            "--gpu-architecture=gfx908",
            "-lineinfo",
            "",
        ];
        assert_eq!(loading(harmless), None);
    }

    #[test]
    fn quoted_blanks_do_not_split_options() {
        assert_eq!(words("-I \"a b\"  -DX=1 \"\""), ["-I", "a b", "-DX=1", ""]);
    }
}
