//! The machine's C compiler.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// A compiler that was found.
#[derive(Debug)]
pub struct Compiler {
    program: OsString,
    /// It tells errors apart by line only if each is reported where a macro is used, not where it is defined.
    arguments: &'static [&'static str],
}

impl Compiler {
    /// The one that `CC` names, else `cc`.
    ///
    /// # Errors
    /// One line, if there is none.
    pub fn find() -> Result<Self, String> {
        let named = std::env::var_os("CC").filter(|name| !name.is_empty());
        let program = named.unwrap_or_else(|| "cc".into());
        let output = Command::new(&program).arg("--version").output();
        let output = output.map_err(|error| {
            format!(
                "no C compiler ({}: {error}); install gcc or name yours in CC",
                program.display()
            )
        })?;
        let is_clang = String::from_utf8_lossy(&output.stdout).contains("clang");
        Ok(Self {
            program,
            arguments: if is_clang {
                &["-ferror-limit=0", "-fno-color-diagnostics"]
            } else {
                &["-ftrack-macro-expansion=0", "-fdiagnostics-color=never"]
            },
        })
    }

    /// The errors of a source file, as (line, message). No error means that the program, if one was asked for, is
    /// there.
    ///
    /// # Errors
    /// The compiler could not be run, or failed for a reason outside of this file.
    pub fn errors(
        &self,
        source: &Path,
        include: Option<&Path>,
        program: Option<&Path>,
    ) -> Result<Vec<(usize, String)>, String> {
        let mut command = Command::new(&self.program);
        // Quotes in messages are ASCII then.
        command.env("LC_ALL", "C");
        command.args(["-std=gnu11", "-w", "-D__HIP_PLATFORM_AMD__"]);
        // Functions that rocBLAS exports without promising to keep them.
        command.arg("-DROCBLAS_BETA_FEATURES_API");
        command.args(self.arguments);
        if let Some(folder) = include {
            command.arg("-isystem").arg(folder);
        }
        match program {
            Some(program) => command.arg("-o").arg(program),
            None => command.arg("-fsyntax-only"),
        };
        let output = command
            .arg(source)
            .output()
            .map_err(|error| format!("can't run {}: {error}", self.program.display()))?;
        if output.status.success() {
            return Ok(Vec::new());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let prefix = format!("{}:", source.display());
        let errors: Vec<(usize, String)> = text
            .lines()
            .filter_map(|line| {
                let (line_number, rest) = line.strip_prefix(&prefix)?.split_once(':')?;
                let (_column, message) = rest.split_once(": error: ")?;
                Some((line_number.parse().ok()?, message.to_owned()))
            })
            .collect();
        if errors.is_empty() {
            let first = text.lines().find(|line| line.contains("error"));
            return Err(format!(
                "the compiler failed outside of the probe: {}",
                first.unwrap_or(text.trim())
            ));
        }
        Ok(errors)
    }
}
