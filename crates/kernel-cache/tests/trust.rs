//! Which entries are trusted.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use kernel_cache::{Key, KeyBuilder, Store, Trouble};
use rustix::fs::{CWD, FileType, Mode, mknodat};

struct Fixture {
    base: tempfile::TempDir,
    store: Store,
    key: Key,
}

fn write(store: &Store, key: Key, content: &[u8]) -> Result<(), Trouble> {
    // SAFETY: the entries of these stores are compared, not run.
    unsafe { store.write(key, content) }
}

/// A store with one entry.
fn fixture() -> Fixture {
    let base = tempfile::tempdir().unwrap();
    let store = Store::new(&base.path().join("below/cache"), b"a-test-000000001", "bin");
    let key = KeyBuilder::default().part("source").finish();
    assert!(store.read(key).unwrap().is_none());
    write(&store, key, b"code").unwrap();
    Fixture { base, store, key }
}

impl Fixture {
    fn folder(&self) -> &Path {
        self.store.folder()
    }

    fn entry(&self) -> PathBuf {
        self.store.path(self.key)
    }

    #[track_caller]
    fn holds(&self) {
        let found = self.store.read(self.key).unwrap();
        assert_eq!(found.as_deref(), Some(&b"code"[..]));
    }

    #[track_caller]
    fn refuses(&self, reason: &str) {
        let error = self.store.read(self.key).unwrap_err().to_string();
        assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        assert!(error.contains(&self.folder().display().to_string()), "{error}");
    }

    /// The entry can be replaced, and is then accepted again.
    #[track_caller]
    fn heals(&self) {
        write(&self.store, self.key, b"code").unwrap();
        self.holds();
        let names = fs::read_dir(self.folder()).unwrap().count();
        assert_eq!(names, 1, "a temporary file was left");
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn folders_and_files_are_private_to_their_user() {
    let fixture = fixture();
    assert_eq!(mode(fixture.folder()), 0o700);
    assert_eq!(mode(fixture.folder().parent().unwrap()), 0o700);
    assert_eq!(mode(&fixture.entry()), 0o600);
    fixture.holds();
}

#[test]
fn an_entry_writable_by_others_is_refused_and_replaced() {
    let fixture = fixture();
    for shared in [0o620, 0o602, 0o666] {
        chmod(&fixture.entry(), shared);
        fixture.refuses("other users may write to it");
        fixture.heals();
    }
    // Read access for others is harmless.
    chmod(&fixture.entry(), 0o644);
    fixture.holds();
}

#[test]
fn a_folder_writable_by_others_is_neither_read_nor_written() {
    let fixture = fixture();
    for shared in [0o770, 0o707, 0o1777] {
        chmod(fixture.folder(), shared);
        fixture.refuses("other users may write to it");
        assert!(write(&fixture.store, fixture.key, b"other").is_err());
    }
    chmod(fixture.folder(), 0o755);
    fixture.holds();
}

#[test]
fn files_of_another_user_are_refused_even_by_root() {
    let fixture = fixture();
    // Only root can give a file away.
    if chown(fixture.entry(), Some(1), None).is_err() {
        return;
    }
    fixture.refuses("belongs to user 1");
    fixture.heals();
    chown(fixture.folder(), Some(1), None).unwrap();
    fixture.refuses("belongs to user 1");
    assert!(write(&fixture.store, fixture.key, b"other").is_err());
}

#[test]
fn an_entry_that_is_not_a_regular_file_is_refused_at_once() {
    let fixture = fixture();
    let entry = fixture.entry();
    fs::remove_file(&entry).unwrap();
    // Opening it as a file would block until a writer appears.
    mknodat(CWD, &entry, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fixture.refuses("not a regular file");
    fixture.heals();
    let elsewhere = fixture.base.path().join("elsewhere");
    fs::rename(&entry, &elsewhere).unwrap();
    symlink(&elsewhere, &entry).unwrap();
    assert!(fixture.store.read(fixture.key).is_err());
    fixture.heals();
    assert!(elsewhere.exists());
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    fixture.refuses("not a regular file");
    assert!(write(&fixture.store, fixture.key, b"code").is_err());
    assert_eq!(fs::read_dir(fixture.folder()).unwrap().count(), 1);
}

#[test]
fn a_folder_behind_a_link_is_not_used() {
    let fixture = fixture();
    let elsewhere = fixture.base.path().join("elsewhere");
    fs::rename(fixture.folder(), &elsewhere).unwrap();
    symlink(&elsewhere, fixture.folder()).unwrap();
    assert!(fixture.store.read(fixture.key).is_err());
    assert!(write(&fixture.store, fixture.key, b"code").is_err());
}
