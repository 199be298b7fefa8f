//! `harness users`: writes the seeded users.

use super::project::Project;
use super::{Usage, say};
use crate::cli::Users;
use crate::users;

pub fn run(project: &Project, args: &Users) -> anyhow::Result<()> {
    let file = args.out.clone().unwrap_or_else(|| project.users_file());
    let users = users::generate();
    std::fs::write(&file, users::to_json(&users))
        .map_err(|e| Usage(format!("{} cannot be written: {e}", file.display())))?;
    say(&format!("wrote {} users to {}", users.len(), file.display()));
    Ok(())
}
