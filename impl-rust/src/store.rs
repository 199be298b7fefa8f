//! The users in memory, behind one lock.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, ensure};

use crate::user::{NewUser, User};

/// All users by id, and the id that the next one gets.
pub struct Store {
    users: RwLock<Users>,
}

struct Users {
    by_id: HashMap<String, Arc<User>>,
    next_id: u64,
}

impl Store {
    /// Reads the users from a file that holds a JSON array of them.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read(path)
            .with_context(|| format!("cannot read the users file {path:?} (set USERS_FILE)"))?;
        serde_json::from_slice(&text)
            .map_err(anyhow::Error::from)
            .and_then(Self::new)
            .with_context(|| format!("the users file {path:?} is not a JSON array of users"))
    }

    /// Takes users whose ids are whole numbers, each given once.
    pub fn new(users: Vec<User>) -> anyhow::Result<Self> {
        ensure!(!users.is_empty(), "it holds no users");
        let mut by_id = HashMap::with_capacity(users.len());
        let mut last_id = 0;
        for user in users {
            let User { id, name, email } = &user;
            let number = id
                .parse::<u32>()
                .with_context(|| format!("the id {id:?} is not a string of digits"))?;
            ensure!(!name.is_empty(), "the user {id:?} has no name");
            ensure!(email.contains('@'), "the user {id:?} has no valid email");
            ensure!(!by_id.contains_key(id), "the id {id:?} is there twice");
            last_id = last_id.max(u64::from(number));
            by_id.insert(user.id.clone(), Arc::new(user));
        }
        Ok(Self { users: RwLock::new(Users { by_id, next_id: last_id + 1 }) })
    }

    /// The user with this id.
    pub fn get(&self, id: &str) -> Option<Arc<User>> {
        // Nothing below panics while it holds the lock, so a poisoned one is sound.
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.by_id.get(id).cloned()
    }

    /// Keeps a new user under the next id.
    pub fn add(&self, new: NewUser) -> Arc<User> {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let id = users.next_id.to_string();
        users.next_id += 1;
        let user = Arc::new(User { id: id.clone(), name: new.name, email: new.email });
        users.by_id.insert(id, Arc::clone(&user));
        user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(json: &str) -> anyhow::Result<Store> {
        Store::new(serde_json::from_str(json)?)
    }

    #[test]
    fn ids_count_up_from_the_greatest() {
        let store =
            store(r#"[{"id":"9","name":"A","email":"a@x"},{"id":"10","name":"B","email":"b@x"}]"#)
                .unwrap();
        assert_eq!(store.get("9").unwrap().name, "A");
        assert!(store.get("11").is_none());
        for id in ["11", "12"] {
            let new = NewUser { name: "C".to_owned(), email: "c@x".to_owned() };
            assert_eq!(store.add(new).id, id);
            assert_eq!(store.get(id).unwrap().name, "C");
        }
    }

    #[test]
    fn wrong_users_are_refused() {
        for json in [
            "",
            "null",
            "{}",
            "[]",
            r#"[{"id":"1","name":"A","email":"a@x"}"#,
            r#"[{"id":1,"name":"A","email":"a@x"}]"#,
            r#"[{"id":"one","name":"A","email":"a@x"}]"#,
            r#"[{"id":"1","name":"A"}]"#,
            r#"[{"id":"1","name":"","email":"a@x"}]"#,
            r#"[{"id":"1","name":"A","email":"a"}]"#,
            r#"[{"id":"1","name":"A","email":"a@x"},{"id":"1","name":"B","email":"b@x"}]"#,
        ] {
            assert!(store(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = format!("{:#}", Store::load(Path::new("no/such.json")).err().unwrap());
        assert!(message.starts_with(r#"cannot read the users file "no/such.json""#), "{message}");
    }
}
