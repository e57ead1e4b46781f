//! Azure Blob Storage: its emulator Azurite, which runs in Node.

use super::{BUCKET, Kind};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "azurite@3.35.0";
/// The account that every emulator has, according to its documentation.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

pub(super) const KIND: Kind = Kind {
    name: "azure",
    program: "azurite-blob",
    variable: "AZURITE_BLOB",
    install,
    inside: "node_modules/.bin/azurite-blob",
    start,
    hint: "is it of this version, and Node of version 18 or later?",
    make_bucket,
    scheme: "az",
    options: |address| format!("endpoint_url=http://{address}/{ACCOUNT} account_name={ACCOUNT} account_key={KEY}"),
    wrong: "account_key=d3Jvbmc=",
};

fn install(folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder).arg(PACKAGE);
    npm
}

fn start(program: &Path, address: SocketAddr, folder: &Path) -> Command {
    let mut server = Command::new(program);
    server.args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
    server.arg("--blobPort").arg(address.port().to_string()).arg("--location").arg(folder);
    server
}

/// Creates a container; the request is signed as the protocol requires. Node exists: the server runs in it.
const CREATE: &str = r#"
const [address, account, key, container] = process.argv.slice(1);
const date = new Date().toUTCString(), version = "2021-08-06", path = `/${account}/${container}`;
const text = `PUT${"\n".repeat(12)}x-ms-date:${date}\nx-ms-version:${version}\n/${account}${path}\nrestype:container`;
const signed = require("crypto").createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
const headers = { "x-ms-date": date, "x-ms-version": version, Authorization: `SharedKey ${account}:${signed}` };
fetch(`http://${address}${path}?restype=container`, { method: "PUT", headers })
  .then(async (answer) => {
    if (answer.status !== 201) { console.error(answer.status, await answer.text()); process.exit(1); }
  })
  .catch((error) => { console.error(error); process.exit(1); });
"#;

fn make_bucket(address: SocketAddr) -> Result<(), String> {
    let mut node = Command::new("node");
    node.args(["-e", CREATE, &address.to_string(), ACCOUNT, KEY, BUCKET]);
    match node.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the container {BUCKET} was not created: node {status}")),
        Err(e) => Err(format!("node cannot be run: {e}")),
    }
}
