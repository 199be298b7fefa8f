//! The users API on axum.

fn main() -> std::process::ExitCode {
    users::service::main(users::app_axum::serve)
}
