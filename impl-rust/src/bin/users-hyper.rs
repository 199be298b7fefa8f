//! The users API on hyper.

fn main() -> std::process::ExitCode {
    users::service::main(users::app_hyper::serve)
}
