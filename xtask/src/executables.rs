//! The programs that cargo has built, read from its messages.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// One program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    /// The name of its target: a test's, an example's, or the package's own.
    pub name: String,
    /// The kind of its target, in cargo's words.
    pub kind: String,
    /// Whether it was built with the test harness.
    pub is_test: bool,
    /// The folder of its `Cargo.toml`, in which cargo would start it.
    pub folder: PathBuf,
}

impl Executable {
    /// The crate it belongs to, which has the folder's name.
    pub fn crate_name(&self) -> String {
        let folder = self.folder.file_name();
        folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Reads what cargo prints with `--message-format json`: one object a line.
pub fn read(messages: &str) -> impl Iterator<Item = Executable> {
    messages.lines().filter_map(|line| {
        let message = serde_json::from_str::<Value>(line).ok()?;
        let text = |value: &Value| Some(value.as_str()?.to_owned());
        Some(Executable {
            path: text(&message["executable"])?.into(),
            name: text(&message["target"]["name"])?,
            kind: text(&message["target"]["kind"][0])?,
            is_test: message["profile"]["test"] == Value::Bool(true),
            folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_passed_over() {
        let program = serde_json::json!({
            "executable": "target/debug/deps/memory-1",
            "manifest_path": "crates/hip/Cargo.toml",
            "target": {"name": "memory", "kind": ["test"]},
            "profile": {"test": true},
        });
        let mut library = program.clone();
        library["executable"] = Value::Null;
        let read: Vec<_> = read(&format!("not JSON\n{library}\n{program}\n{{}}")).collect();
        let memory = Executable {
            path: "target/debug/deps/memory-1".into(),
            name: "memory".into(),
            kind: "test".into(),
            is_test: true,
            folder: "crates/hip".into(),
        };
        assert_eq!(memory.crate_name(), "hip");
        assert_eq!(read, [memory]);
    }
}
