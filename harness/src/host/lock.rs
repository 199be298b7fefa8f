//! One measurement at a time on a machine: two of them measure each other.
//!
//! An advisory lock on a file that all users share. The kernel lets go of it when its holder
//! dies, however that happens. It does not reach into containers with a `/tmp` of their own;
//! there the foreign CPU tells.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

const NAME: &str = "language-comparison-harness.lock";

/// Held while it lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another harness has it.
    #[error(
        "another harness{} is at work on this machine, and the two would measure each other; \
         wait until it is done, or end it",
        .pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
    )]
    Held {
        /// Its process number, as it sees itself.
        pid: Option<u32>,
    },
    /// The file cannot be used. Nobody knows whether there is another harness.
    #[error("{path} cannot be locked, so nobody would notice a second harness: {source}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Takes the machine's lock, without waiting.
///
/// # Errors
/// See [`LockError`].
pub fn take() -> Result<Lock, LockError> {
    // Not TMPDIR, which may be a user's own: the lock is the machine's.
    let shared = Path::new("/tmp");
    let folder = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
    take_at(&folder.join(NAME))
}

fn take_at(path: &Path) -> Result<Lock, LockError> {
    let unusable = |source| LockError::Unusable { path: path.to_path_buf(), source };
    let mut file = open(path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(LockError::Held { pid: holder(&mut file) }),
        Err(TryLockError::Error(e)) => return Err(unusable(e)),
    }
    note_holder(&mut file).map_err(unusable)?;
    Ok(Lock { _file: file })
}

/// The file, made if need be. It stays when the lock is gone: removing it would let a third
/// harness lock a new file beside a second one that waits on the old.
fn open(path: &Path) -> io::Result<File> {
    // Opened without making it first: Linux refuses to open with "make it if need be" what
    // another user has made in a folder for all (fs.protected_regular).
    let found = options().open(path);
    match found {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    match options().create_new(true).open(path) {
        Ok(file) => {
            open_to_all(&file)?;
            Ok(file)
        }
        // Another harness was faster.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => options().open(path),
        Err(e) => Err(e),
    }
}

#[cfg(unix)]
fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    // Not through a link that somebody has laid in a folder for all.
    options.read(true).write(true).custom_flags(nix::libc::O_NOFOLLOW);
    options
}

#[cfg(not(unix))]
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

/// Whatever the umask says: other users must be able to lock it.
#[cfg(unix)]
fn open_to_all(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn open_to_all(_file: &File) -> io::Result<()> {
    Ok(())
}

fn note_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_of_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let first = take_at(&path).expect("nobody has it");
        let second = take_at(&path).expect_err("the first has it").to_string();
        assert!(second.contains(&format!("(process {})", std::process::id())), "{second}");
        drop(first);
        take_at(&path).expect("it was let go of");
    }

    #[test]
    fn a_holder_that_has_not_said_who_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let file = open(&path).expect("made");
        file.lock().expect("locked");
        let error = take_at(&path).expect_err("held");
        assert!(matches!(error, LockError::Held { pid: None }));
        assert!(error.to_string().starts_with("another harness is at work"));
    }

    #[test]
    #[cfg(unix)]
    fn other_users_may_lock_it_and_links_are_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let _lock = take_at(&path).expect("nobody has it");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(matches!(take_at(&link), Err(LockError::Unusable { .. })));
    }
}
