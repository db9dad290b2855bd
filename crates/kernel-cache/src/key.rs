//! Everything a compilation depends on.

use std::fmt;

/// A digest of everything that compiled code depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub(crate) blake3::Hash);

impl From<Key> for [u8; blake3::OUT_LEN] {
    fn from(key: Key) -> Self {
        key.0.into()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Builds a [`Key`]. It includes each part's length, so different lists of parts never collide.
#[derive(Debug, Default)]
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// Adds a part.
    pub fn part(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.0.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        self
    }

    /// Adds a list, with its length.
    pub fn list(&mut self, parts: impl IntoIterator<Item: AsRef<[u8]>>) -> &mut Self {
        let parts: Vec<_> = parts.into_iter().collect();
        self.part((parts.len() as u64).to_le_bytes());
        for part in parts {
            self.part(part);
        }
        self
    }

    /// The digest of the parts so far.
    #[must_use]
    pub fn finish(&self) -> Key {
        Key(self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(work: impl Fn(&mut KeyBuilder)) -> Key {
        let mut builder = KeyBuilder::default();
        work(&mut builder);
        builder.finish()
    }

    #[test]
    fn the_same_bytes_split_differently_give_another_key() {
        let keys = [
            key(|key| _ = key.part("ab").part("c")),
            key(|key| _ = key.part("a").part("bc")),
            key(|key| _ = key.list(["a", "bc"])),
            key(|key| _ = key.list(["a"]).part("bc")),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys[at + 1..].iter().all(|other| other != one), "{at}");
        }
    }
}
