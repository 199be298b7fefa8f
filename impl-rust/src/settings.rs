//! Settings from the environment, checked before anything is opened.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::thread;

use anyhow::{anyhow, bail};

/// What the service needs to know to start.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    /// An address, never a name: a name may resolve to another address on another day.
    pub host: IpAddr,
    /// 0 takes a free port.
    pub port: u16,
    /// A JSON array of users.
    pub users_file: PathBuf,
    /// Worker threads of the runtime.
    pub workers: usize,
}

impl Settings {
    /// Reads the settings through `get`; an empty value counts as not set.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let host = match get("HOST") {
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(value) => value.parse().map_err(|_| {
                anyhow!("HOST is {value:?}, which is not an IP address such as 127.0.0.1")
            })?,
        };
        let port = match get("PORT") {
            None => 8080,
            Some(value) => whole_number("PORT", &value, 0, u16::MAX)?,
        };
        let users_file = get("USERS_FILE").unwrap_or_else(|| "../data/users.json".to_owned());
        let workers = match get("WORKERS") {
            // Knows of CPU affinity and of cgroup quotas.
            None => thread::available_parallelism().map_or(1, usize::from),
            Some(value) => usize::from(whole_number("WORKERS", &value, 1, 1024)?),
        };
        Ok(Self { host, port, users_file: users_file.into(), workers })
    }
}

fn whole_number(name: &str, value: &str, least: u16, most: u16) -> anyhow::Result<u16> {
    // `parse` would take a sign, which the other languages do not.
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(number) if digits && (least..=most).contains(&number) => Ok(number),
        _ => bail!("{name} is {value:?}, which is not a whole number from {least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> anyhow::Result<Settings> {
        Settings::read(|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn defaults() {
        let settings = read(&[("PORT", ""), ("WORKERS", "")]).unwrap();
        assert_eq!(settings.host.to_string(), "127.0.0.1");
        assert_eq!(settings.port, 8080);
        assert_eq!(settings.users_file, PathBuf::from("../data/users.json"));
        assert!(settings.workers >= 1);
    }

    #[test]
    fn values() {
        let settings =
            read(&[("HOST", "::1"), ("PORT", "0"), ("USERS_FILE", "x.json"), ("WORKERS", "3")])
                .unwrap();
        assert_eq!(settings.host.to_string(), "::1");
        assert_eq!(settings.port, 0);
        assert_eq!(settings.users_file, PathBuf::from("x.json"));
        assert_eq!(settings.workers, 3);
    }

    #[test]
    fn wrong_values_are_named() {
        for (name, value) in [
            ("HOST", "localhost"),
            ("HOST", "127.0.0.1:80"),
            ("PORT", "http"),
            ("PORT", "-1"),
            ("PORT", "+1"),
            ("PORT", "65536"),
            ("WORKERS", "0"),
            ("WORKERS", "two\nlines"),
        ] {
            let message = format!("{:#}", read(&[(name, value)]).unwrap_err());
            assert!(message.starts_with(&format!("{name} is {value:?}, which")), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
