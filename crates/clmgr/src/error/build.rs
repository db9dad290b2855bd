//! Programs that do not build.

use std::fmt;

use opencl_sys::cl_int;

use super::Error;
use super::code::code_name;

/// A program that does not build.
#[derive(Debug)]
pub struct BuildFailure {
    /// OpenCL's code.
    pub code: cl_int,
    /// The options of the build.
    pub options: String,
    /// The device's name.
    pub device: String,
    /// The compiler's whole log.
    pub log: String,
    /// The line number and text of the source line that the log's first error names.
    pub source_line: Option<(usize, String)>,
}

impl fmt::Display for BuildFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`clBuildProgram(options \"{}\")` failed on `{}`: {} ({})",
            self.options,
            self.device,
            code_name(self.code),
            self.code
        )?;
        let first = self
            .log
            .lines()
            .find(|line| line.contains("error"))
            .or_else(|| self.log.lines().find(|line| !line.trim().is_empty()));
        if let Some(message) = first {
            write!(f, "; {}", message.trim())?;
        }
        if let Some((number, text)) = &self.source_line {
            write!(f, "; line {number}: `{}`", text.trim())?;
        }
        Ok(())
    }
}

impl From<BuildFailure> for Error {
    fn from(failure: BuildFailure) -> Self {
        Self::Build(Box::new(failure))
    }
}

/// The source line that the first error of a compiler's log points at.
///
/// The compilers agree on `:LINE:COLUMN:` and differ in what stands around it.
pub(crate) fn failing_line(log: &str, source: &str) -> Option<(usize, String)> {
    log.lines()
        .filter(|message| message.contains("error"))
        .find_map(|message| {
            let mut numbers = message
                .split(':')
                .map(|field| field.parse::<usize>().ok())
                .skip_while(Option::is_none)
                .map_while(|number| number);
            // Intel puts the number of the source text before the line.
            let (first, second, third) = (numbers.next()?, numbers.next()?, numbers.next());
            let line = if third.is_some() { second } else { first };
            let text = source.lines().nth(line.checked_sub(1)?)?;
            Some((line, text.to_owned()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_source_line_is_found_in_every_compilers_log() {
        let source = "kernel void f() {\n  int x = y;\n}\n";
        for log in [
            "1:2:11: error: use of undeclared identifier 'y'",
            "<kernel>:2:11: error: use of undeclared identifier 'y'",
            "/tmp/comgr-1/CompileSource:2:11: error: use of undeclared identifier 'y'",
            "Compilation started\n1:2:11: error: use",
            "warning: 1:1:1: no\nerror: /tmp/cache/tempfile_a.cl:2:11: use of undeclared identifier 'y'",
        ] {
            assert_eq!(failing_line(log, source), Some((2, "  int x = y;".to_owned())), "{log}");
        }
        assert_eq!(failing_line("error: no line here", source), None);
        assert_eq!(failing_line("1:0:1: error: line zero", source), None);
    }
}
