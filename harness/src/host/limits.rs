//! The limit of open descriptors: every connection takes one here and one in its service.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that the harness needs besides connections: three standard streams, three for
/// each thread of the generator, up to four for each service, some files.
const OWN_DESCRIPTORS: u64 = 64;

/// Raises the soft limit to the hard one (services inherit it) and checks that
/// `connections` fit.
///
/// # Errors
/// Names the limit and how to raise it.
pub fn ensure_descriptors(connections: u64) -> Result<(), String> {
    let needed = connections.saturating_add(OWN_DESCRIPTORS);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|e| format!("the limit of open files cannot be read: {e}"))?;
    if soft < hard {
        // Refused where the hard limit is "unlimited" but the kernel's own is not; what
        // counts is what holds afterwards.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|e| format!("the limit of open files cannot be read: {e}"))?;
    if soft < needed {
        return Err(format!(
            "{connections} connections need {needed} open files, but the limit is {soft} \
             (ulimit -n); ask for fewer connections or raise the hard limit, for example \
             with `ulimit -Hn {needed}` as root"
        ));
    }
    Ok(())
}
