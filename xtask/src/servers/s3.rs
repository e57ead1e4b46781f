//! S3: versitygw over a folder whose file system supports extended attributes.

use super::Kind;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "github.com/versity/versitygw/cmd/versitygw@v1.8.0";
const KEY: &str = "gridstone-test";
const SECRET: &str = "not-a-secret";

pub(super) const KIND: Kind = Kind {
    name: "s3",
    program: "versitygw",
    variable: "VERSITYGW",
    install,
    inside: "versitygw",
    start,
    hint: "does the temporary folder know extended attributes?",
    // A folder in the folder that it serves.
    make_bucket: |_| Ok(()),
    scheme: "s3",
    options: |address| format!("endpoint_url=http://{address} key={KEY} secret={SECRET}"),
    wrong: "secret=wrong",
};

fn install(folder: &Path) -> Command {
    let mut go = Command::new("go");
    go.args(["install", PACKAGE]).env("GOBIN", folder);
    go
}

fn start(program: &Path, address: SocketAddr, folder: &Path) -> Command {
    let mut server = Command::new(program);
    server.args(["--quiet", "--keep-alive", "--port"]).arg(address.to_string());
    server.args(["--access", KEY, "--secret", SECRET, "posix"]).arg(folder);
    server
}
