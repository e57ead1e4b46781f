//! `cargo xtask s3 -- COMMAND`: runs a command beside an S3 server, so that the tests which need one do not skip.
//!
//! The server is versitygw over a temporary folder, on a free port of this machine. It is taken from `$VERSITYGW`, the path, or
//! the target folder, where it is installed by Go's own client if it is nowhere.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "versitygw";
const PACKAGE: &str = "github.com/versity/versitygw/cmd/versitygw@v1.8.0";
const BUCKET: &str = "gridstone";
const KEY: &str = "gridstone-test";
const SECRET: &str = "not-a-secret";
/// How long the server may take to answer.
const START: Duration = Duration::from_secs(30);

/// Runs `command` with the server's address in its environment; its exit status, or 2 if there is no server.
pub(crate) fn run(command: &[&str]) -> ExitCode {
    match with_server(command) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("s3: {message}");
            ExitCode::from(2)
        }
    }
}

fn with_server(command: &[&str]) -> Result<u8, String> {
    let [program, arguments @ ..] = command else { return Err("name the command to run after --".to_owned()) };
    let binary = installed()?;
    let server = Server::start(&binary)?;
    let address = format!("http://{}", server.address);
    let variables = [
        ("GRIDSTONE_TEST_S3", address.as_str()),
        ("GRIDSTONE_TEST_S3_BUCKET", BUCKET),
        ("GRIDSTONE_TEST_S3_KEY", KEY),
        ("GRIDSTONE_TEST_S3_SECRET", SECRET),
    ];
    let status = Command::new(program).args(arguments).envs(variables).status();
    let status = status.map_err(|e| format!("{program} cannot be run: {e}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// The server's program.
fn installed() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("VERSITYGW") {
        return Ok(PathBuf::from(named));
    }
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let folder = target().join("s3");
    let places = std::env::split_paths(&on_path).chain([folder.clone()]);
    if let Some(found) = places.map(|place| place.join(NAME)).find(|file| file.is_file()) {
        return Ok(found);
    }
    println!("s3: installing {PACKAGE} into {} (some minutes)", folder.display());
    let status = Command::new("go").args(["install", PACKAGE]).env("GOBIN", &folder).status();
    match status {
        Ok(status) if status.success() => Ok(folder.join(NAME)),
        Ok(status) => Err(format!("go install {PACKAGE}: {status}")),
        Err(e) => Err(format!(
            "go cannot be run ({e}), which installs the server for these tests: install Go, or name a {NAME} in VERSITYGW"
        )),
    }
}

/// Where cargo builds.
fn target() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let named = std::env::var_os("CARGO_TARGET_DIR").map_or_else(beside, PathBuf::from);
    std::path::absolute(&named).unwrap_or(named)
}

/// A server that runs, and the folder it keeps its objects in; both go with this value.
struct Server {
    process: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Server {
    fn start(binary: &Path) -> Result<Self, String> {
        let broken = |what: &str, e: std::io::Error| format!("{what}: {e}");
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|e| broken("no free port", e))?;
        let folder = std::env::temp_dir().join(format!("gridstone-s3-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(BUCKET)).map_err(|e| broken("no temporary folder", e))?;
        let process = Command::new(binary)
            .args([
                "--quiet",
                "--keep-alive",
                "--port",
                &address.to_string(),
                "--access",
                KEY,
                "--secret",
                SECRET,
                "posix",
            ])
            .arg(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| broken(&binary.display().to_string(), e))?;
        let mut server = Self { process, folder, address };
        server.wait_until_it_answers()?;
        Ok(server)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!(
                    "the server ended at once: {status}; does the temporary folder know extended attributes?"
                ));
            }
            if start.elapsed() > START {
                return Err(format!("the server does not answer on {}", self.address));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
