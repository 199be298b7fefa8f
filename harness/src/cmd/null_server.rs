//! `harness null-server`.

use super::{Usage, print};
use crate::cli::NullServer;
use crate::host::limits;
use crate::load::null;
use crate::process::Interrupt;
use std::net::{Ipv4Addr, SocketAddr};

pub fn run(args: &NullServer) -> anyhow::Result<()> {
    let interrupt = Interrupt::install()?;
    // A descriptor for every connection: as many as may be had.
    limits::ensure_descriptors(0).map_err(Usage)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let server = null::Server::bind(address, null::Behaviour::default())
        .map_err(|e| Usage(format!("cannot listen on {address}: {e}; choose another port")))?;
    let address = server.address()?;
    print(&format!(
        "ready {{\"host\":\"{}\",\"port\":{},\"workers\":1,\"runtime\":\"null {}\"}}\n",
        address.ip(),
        address.port(),
        env!("CARGO_PKG_VERSION")
    ))?;
    server.run(&interrupt.flag())?;
    Ok(())
}
