//! `harness users`: writes the seeded users.

use super::project::Project;
use super::say;
use crate::cli::Users;
use crate::users;
use anyhow::Context;

pub fn run(project: &Project, args: &Users) -> anyhow::Result<()> {
    let file = args.out.clone().unwrap_or_else(|| project.users_file());
    let users = users::generate();
    // Beside and then in place: a full disk must not cost the users that are there.
    let beside = file.with_extension("json.part");
    std::fs::write(&beside, users::to_json(&users))
        .and_then(|()| std::fs::rename(&beside, &file))
        .with_context(|| format!("{} cannot be written", file.display()))?;
    say(&format!("wrote {} users to {}", users.len(), file.display()));
    Ok(())
}
