//! `cargo xtask s3 -- COMMAND`, and `azure`: runs a command beside a server of object stores, so that tests which need
//! one are not skipped.
//!
//! A server listens on a free port of this machine, keeps its data in a temporary folder or in memory, and ends with
//! the command. Its program comes from an environment variable, the path, or the target folder. If it is in none of
//! them, its language's own client installs it into the target folder. The command gets these environment variables:
//!
//! - `GRIDSTONE_TEST_BUCKET`: the bucket's URI
//! - `GRIDSTONE_TEST_BUCKET_OPTIONS`: the storage options that reach it, `name=value`, separated by spaces
//! - `GRIDSTONE_TEST_BUCKET_WRONG`: the options that differ for a stranger, whom the server refuses

mod azure;
mod s3;

use crate::child;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The bucket that the tests use.
const BUCKET: &str = "gridstone";
/// How long a server may take to answer.
const START: Duration = Duration::from_secs(30);

/// A kind of server.
struct Kind {
    /// The name of the task, and of the folder that the program is installed in.
    name: &'static str,
    /// The file name of its program, and the variable that names another program.
    program: &'static str,
    variable: &'static str,
    /// The command that installs it into a folder, and its path in that folder.
    install: fn(&Path) -> Command,
    inside: &'static str,
    /// Starts the program at an address over an empty folder.
    start: fn(&Path, SocketAddr, &Path) -> Command,
    /// The hint to show if it ends at once.
    hint: &'static str,
    /// Creates the bucket, if `start` could not.
    make_bucket: fn(SocketAddr) -> Result<(), String>,
    /// The bucket's scheme, the options that reach it, and those of a stranger.
    scheme: &'static str,
    options: fn(SocketAddr) -> String,
    wrong: &'static str,
}

const KINDS: [&Kind; 2] = [&s3::KIND, &azure::KIND];

/// Runs `command` beside a server of the kind `name`. Returns its exit status, or 2 if there is no server; `None` if
/// there is no such kind.
pub(crate) fn run(name: &str, command: &[&str]) -> Option<ExitCode> {
    let kind = KINDS.into_iter().find(|kind| kind.name == name)?;
    Some(match with_server(kind, command) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::from(2)
        }
    })
}

fn with_server(kind: &Kind, command: &[&str]) -> Result<u8, String> {
    let [program, arguments @ ..] = command else { return Err("name the command to run after --".to_owned()) };
    let server = Server::start(kind, &installed(kind)?)?;
    (kind.make_bucket)(server.address)?;
    let variables = [
        ("GRIDSTONE_TEST_BUCKET", format!("{}://{BUCKET}", kind.scheme)),
        ("GRIDSTONE_TEST_BUCKET_OPTIONS", (kind.options)(server.address)),
        ("GRIDSTONE_TEST_BUCKET_WRONG", kind.wrong.to_owned()),
    ];
    let status = child::command(program).args(arguments).envs(variables).status();
    let status = status.map_err(|e| format!("{program} cannot be run: {e}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// The server's program.
fn installed(kind: &Kind) -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(kind.variable) {
        return Ok(PathBuf::from(named));
    }
    let (on_path, folder) = (std::env::var_os("PATH").unwrap_or_default(), target().join(kind.name));
    let own = folder.join(kind.inside);
    let on_path = std::env::split_paths(&on_path).map(|place| place.join(kind.program));
    if let Some(found) = on_path.chain([own.clone()]).find(|file| file.is_file()) {
        return Ok(found);
    }
    let mut install = (kind.install)(&folder);
    let shown = std::iter::once(install.get_program()).chain(install.get_args()).collect::<Vec<_>>();
    let shown = shown.join(OsStr::new(" ")).display().to_string();
    println!("{}: {shown} (some minutes)", kind.name);
    match install.status() {
        Ok(status) if status.success() => Ok(own),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(e) => Err(format!(
            "{shown} cannot be run ({e}), which installs the server for these tests: install it, or name a {} in {}",
            kind.program, kind.variable
        )),
    }
}

/// The target folder of cargo.
fn target() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let named = std::env::var_os("CARGO_TARGET_DIR").map_or_else(beside, PathBuf::from);
    std::path::absolute(&named).unwrap_or(named)
}

/// A running server, and the folder of its objects; both end with this value.
struct Server {
    process: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Server {
    fn start(kind: &Kind, binary: &Path) -> Result<Self, String> {
        let broken = |what: &str, e: std::io::Error| format!("{what}: {e}");
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|e| broken("no free port", e))?;
        let folder = std::env::temp_dir().join(format!("gridstone-{}-{}", kind.name, std::process::id()));
        std::fs::create_dir_all(folder.join(BUCKET)).map_err(|e| broken("no temporary folder", e))?;
        let process = (kind.start)(binary, address, &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| broken(&binary.display().to_string(), e))?;
        let mut server = Self { process, folder, address };
        server.wait_until_it_answers(kind.hint)?;
        Ok(server)
    }

    fn wait_until_it_answers(&mut self, hint: &str) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("the server ended at once: {status}; {hint}"));
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
