use std::fs::Metadata;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A few bytes of gzip may expand to gigabytes.
const LONGEST_UNPACKED: u64 = 16 << 20;

/// The file system as it is, or a folder that stands for it.
#[derive(Clone, Debug)]
pub struct Root {
    folder: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Root {
    /// The tree below `folder`, instead of `/`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Whether this is the machine's own tree, so the kernel can be queried.
    pub(super) fn is_real(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// `path` begins with a slash.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn metadata(&self, path: &str) -> Option<Metadata> {
        std::fs::metadata(self.path(path)).ok()
    }

    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(path)).ok()
    }

    /// The text without blanks around it; `None` if it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = self.bytes(path)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The text of a file compressed by gzip.
    pub(super) fn unpacked(&self, path: &str) -> Option<String> {
        let packed = self.bytes(path)?;
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*packed)
            .take(LONGEST_UNPACKED)
            .read_to_string(&mut text)
            .ok()?;
        Some(text)
    }

    /// Names in a folder, in order; numbers in them count as numbers. Empty if it cannot be read.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_by_key(|name| {
            let digits: String = name.chars().filter(char::is_ascii_digit).collect();
            (digits.parse::<u64>().unwrap_or_default(), name.clone())
        });
        names
    }
}
