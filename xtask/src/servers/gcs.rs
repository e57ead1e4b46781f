//! Google's protocol: fake-gcs-server, which asks nobody who they are.

use super::Kind;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "github.com/fsouza/fake-gcs-server@v1.52.2";

pub(super) const KIND: Kind = Kind {
    name: "gcs",
    program: "fake-gcs-server",
    variable: "FAKE_GCS_SERVER",
    install,
    inside: "fake-gcs-server",
    start,
    hint: "is the port still free?",
    // A folder in the folder that it begins with.
    make_bucket: |_| Ok(()),
    scheme: "gs",
    options: |address| format!("endpoint_url=http://{address} anon=true"),
    wrong: "",
};

fn install(folder: &Path) -> Command {
    let mut go = Command::new("go");
    go.args(["install", PACKAGE]).env("GOBIN", folder);
    go
}

fn start(program: &Path, address: SocketAddr, folder: &Path) -> Command {
    let mut server = Command::new(program);
    server.args(["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port"]);
    server.arg(address.port().to_string()).arg("-public-host").arg(address.to_string()).arg("-data").arg(folder);
    server
}
