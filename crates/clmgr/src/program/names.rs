//! Kernel names as written in the source, where the driver compiles them under other
//! names.
//!
//! PoCL renames OpenCL built-in functions through macros (pocl: include/_builtin_renames.h), and any
//! kernel of the same name with them: `step` becomes `_cl_step`.

use std::collections::HashSet;

use crate::pocl;

const PREFIX: &str = "_cl_";

/// Maps one program's kernel names between its source and the driver.
#[derive(Default)]
pub(crate) struct Names {
    renames: bool,
    /// The prefixed names that the source itself defines.
    as_written: HashSet<String>,
}

impl Names {
    /// For a program with this source on a platform with this name.
    pub fn new(platform: &str, source: &str) -> Self {
        let renames = platform == pocl::PLATFORM;
        let mut as_written = HashSet::new();
        if renames && source.contains(PREFIX) {
            let words: HashSet<&str> = source.split(|c: char| !is_in_identifier(c)).collect();
            let is_own = |word: &&&str| {
                let rest = word.strip_prefix(PREFIX);
                rest.is_some_and(|rest| !words.contains(rest))
            };
            as_written = words.iter().filter(is_own).map(ToString::to_string).collect();
        }
        Self { renames, as_written }
    }

    /// The source name of the kernel that the driver calls `compiled`.
    pub fn written<'a>(&self, compiled: &'a str) -> &'a str {
        match compiled.strip_prefix(PREFIX) {
            Some(written) if self.renames(written, compiled) => written,
            _ => compiled,
        }
    }

    /// The name the driver may use for the kernel `written`, if it differs.
    pub fn compiled(&self, written: &str) -> Option<String> {
        let compiled = format!("{PREFIX}{written}");
        self.renames(written, &compiled).then_some(compiled)
    }

    fn renames(&self, written: &str, compiled: &str) -> bool {
        self.renames && !written.is_empty() && !self.as_written.contains(compiled)
    }
}

fn is_in_identifier(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: &str = "kernel void step(global int *x) { *x = 1; }";

    #[test]
    fn pocl_names_of_built_in_functions_map_back_to_the_source_names() {
        let names = Names::new(pocl::PLATFORM, STEP);
        assert_eq!(names.written("_cl_step"), "step");
        assert_eq!(names.compiled("step").as_deref(), Some("_cl_step"));
        for plain in ["add", "cl_step", "_cl_", ""] {
            assert_eq!(names.written(plain), plain);
        }
        assert_eq!(names.compiled(""), None);
    }

    #[test]
    fn a_name_from_the_source_is_unchanged() {
        let names = Names::new(pocl::PLATFORM, "kernel void _cl_mine(global int *x) { *x = 1; }");
        assert_eq!(names.written("_cl_mine"), "_cl_mine");
        assert_eq!(names.compiled("mine"), None);
        // A word in a comment does not hide the kernel.
        let names = Names::new(pocl::PLATFORM, &format!("// PoCL calls it _cl_step.\n{STEP}"));
        assert_eq!(names.written("_cl_step"), "step");
        assert_eq!(names.compiled("step").as_deref(), Some("_cl_step"));
    }

    #[test]
    fn other_platforms_rename_nothing() {
        for platform in ["Intel(R) OpenCL", "AMD Accelerated Parallel Processing", ""] {
            let names = Names::new(platform, STEP);
            assert_eq!(names.written("_cl_step"), "_cl_step");
            assert_eq!(names.compiled("step"), None);
        }
    }
}
