//! Four ways of reading parts of a file, warm and cold.

use super::failed;
use super::scratch::{Folder, Map, drop_pages};
use crate::blocks::measure::{median, turns};
use gridstone::base::{Error, Result};
use gridstone_testkit::Dice;
use io_uring::{IoUring, opcode, types};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Instant;

const FILE_BYTES: u64 = 400 << 20;
/// The alignment of the parts: a page.
const PAGE_BYTES: u64 = 4 << 10;
const IN_FLIGHT: usize = 64;
/// The length in which parts are advised: the system starts no more of one than its own read-ahead.
const TOLD_BYTES_MAX: usize = 128 << 10;
/// The number of parts read, and their length.
const READS: [(usize, usize); 2] = [(1_000, 8 << 10), (64, 256 << 10)];

enum Way {
    Pread,
    Told,
    Ring(Box<IoUring>),
    Mapped,
}

/// The table of all ways.
///
/// # Errors
/// Storage if the system refuses something; Unsupported if files cannot be made cold; Input if bytes are wrong.
pub fn ways(repeats: usize) -> Result<String> {
    let folder = Folder::new()?;
    let path = folder.path().join("words");
    let file = made(&path)?;
    let mut ways = vec![Way::Pread, Way::Told];
    match IoUring::new(IN_FLIGHT as u32) {
        Ok(ring) => ways.push(Way::Ring(Box::new(ring))),
        Err(error) => eprintln!("reads: io_uring is left out, the system refuses it: {error}"),
    }
    ways.push(Way::Mapped);
    let names: String = ways.iter().map(|way| format!(" {} |", way.name())).collect();
    let mut text = format!("| reads, ms |{names}\n|---|{}\n", "--:|".repeat(ways.len()));
    for (count, len) in READS {
        for cold in [false, true] {
            let times = compared(&file, &mut ways, (count, len), cold, repeats)?;
            let kind = if cold { "cold" } else { "warm" };
            let _ = write!(text, "| {count} of {} KiB, {kind} |", len >> 10);
            times.into_iter().for_each(|list| text.push_str(&format!(" {:.1} |", 1e3 * median(list))));
            text.push('\n');
        }
    }
    Ok(text)
}

/// Seconds of each way, for every round. In a round all read the same parts.
fn compared(
    file: &File,
    ways: &mut [Way],
    (count, len): (usize, usize),
    cold: bool,
    repeats: usize,
) -> Result<Vec<Vec<f64>>> {
    let mut dice = Dice::new(17);
    let mut times = vec![Vec::new(); ways.len()];
    let mut out = vec![0; count * len];
    if !cold {
        warm(file)?;
    }
    for repeat in 0..repeats {
        let pages = (FILE_BYTES - len as u64) / PAGE_BYTES;
        let mut places: Vec<u64> = (0..count).map(|_| dice.below(pages as usize) as u64 * PAGE_BYTES).collect();
        places.sort_unstable();
        for at in turns(ways.len(), repeat) {
            let Some((way, times)) = ways.get_mut(at).zip(times.get_mut(at)) else { continue };
            out.fill(0);
            if cold {
                drop_pages(file)?;
            }
            let start = Instant::now();
            way.read(file, &places, len, &mut out).map_err(|e| failed(way.name(), e))?;
            times.push(start.elapsed().as_secs_f64());
            check(&places, len, &out).map_err(|e| e.context(way.name()))?;
        }
    }
    Ok(times)
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Self::Pread => "`pread`",
            Self::Told => "`posix_fadvise(WILLNEED)`, then `pread`",
            Self::Ring(_) => "`io_uring`, 64 in flight",
            Self::Mapped => "`mmap`",
        }
    }

    /// Fills `out` with `len` bytes from each of `places`.
    fn read(&mut self, file: &File, places: &[u64], len: usize, out: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Pread => each(places, len, out, |place, part| file.read_exact_at(part, place)),
            Self::Told => {
                places.iter().for_each(|place| tell(file, *place, len));
                each(places, len, out, |place, part| file.read_exact_at(part, place))
            }
            Self::Ring(ring) => by_ring(ring, file, places, len, out),
            Self::Mapped => {
                // Made and released in each run: every reader that opens a file has to.
                let map = Map::new(file, FILE_BYTES as usize)?;
                each(places, len, out, |place, part| {
                    let from = map.bytes().get(place as usize..).and_then(|rest| rest.get(..part.len()));
                    part.copy_from_slice(from.ok_or(ErrorKind::UnexpectedEof)?);
                    Ok(())
                })
            }
        }
    }
}

fn each(
    places: &[u64],
    len: usize,
    out: &mut [u8],
    read: impl Fn(u64, &mut [u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    places.iter().zip(out.chunks_exact_mut(len)).try_for_each(|(place, part)| read(*place, part))
}

fn tell(file: &File, place: u64, len: usize) {
    for start in (0..len).step_by(TOLD_BYTES_MAX) {
        let (at, part) = (place + start as u64, (len - start).min(TOLD_BYTES_MAX));
        // SAFETY: the descriptor is open as long as `file` is borrowed; no memory is handed over.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), at as i64, part as i64, libc::POSIX_FADV_WILLNEED) };
    }
}

/// Keeps as many reads in flight as the ring has room for. It returns only when none is left: until then the system
/// writes to `out`.
fn by_ring(ring: &mut IoUring, file: &File, places: &[u64], len: usize, out: &mut [u8]) -> std::io::Result<()> {
    let fd = types::Fd(file.as_raw_fd());
    let mut waiting = places.iter().zip(out.chunks_exact_mut(len));
    let (mut in_flight, mut outcome) = (0, Ok(()));
    loop {
        while in_flight < IN_FLIGHT
            && outcome.is_ok()
            && let Some((place, part)) = waiting.next()
        {
            let entry = opcode::Read::new(fd, part.as_mut_ptr(), len as u32).offset(*place).build();
            // SAFETY: `part` is borrowed for writing until this function returns, which it does when nothing is in flight.
            let pushed = unsafe { ring.submission().push(&entry) };
            match pushed {
                Ok(()) => in_flight += 1,
                Err(_) => outcome = Err(std::io::Error::other("more reads than the ring holds")),
            }
        }
        if in_flight == 0 {
            return outcome;
        }
        match ring.submit_and_wait(1) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                // Reads in flight cannot be cancelled, and their memory must not be freed.
                eprintln!("reads: io_uring: {error}");
                std::process::abort();
            }
            _ => {}
        }
        for done in ring.completion() {
            in_flight -= 1;
            if done.result() < 0 {
                outcome = Err(std::io::Error::from_raw_os_error(-done.result()));
            } else if done.result() as usize != len {
                outcome = Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The word at a position of the file, which identifies the position.
fn word(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn made(path: &std::path::Path) -> Result<File> {
    let write = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        (0..FILE_BYTES / 8).try_for_each(|number| file.write_all(&word(number).to_le_bytes()))?;
        file.flush()?;
        File::open(path)
    };
    write().map_err(|e| failed("making a file of 400 MiB", e))
}

/// Reads the whole file once.
fn warm(file: &File) -> Result<()> {
    let mut part = vec![0; 1 << 20];
    let mut places = (0..FILE_BYTES).step_by(part.len());
    places.try_for_each(|place| file.read_exact_at(&mut part, place)).map_err(|e| failed("reading a file", e))
}

fn check(places: &[u64], len: usize, out: &[u8]) -> Result<()> {
    for (place, part) in places.iter().zip(out.chunks_exact(len)) {
        let (words, _) = part.as_chunks::<8>();
        if !(place / 8..).zip(words).all(|(number, found)| word(number) == u64::from_le_bytes(*found)) {
            return Err(Error::input(format!("wrong bytes at offset {place}")));
        }
    }
    Ok(())
}
