//! Detects whether reads of a file wait for the device, and prefetches while they do.
//!
//! A read first takes what is in memory, by a call that returns at once (`preadv2` with `RWF_NOWAIT`). If that is less
//! than requested, the read waits for the device. For some time after that, the system is advised of upcoming reads, so
//! that the device has read them or is reading them. Bytes in memory cost no extra call. The advice covers only bytes
//! that will be read, not those behind them, which the system's own read-ahead guesses. Where that read-ahead is long,
//! and a stream will be read, no advice is given: the system then fills memory in larger pieces than with advice.

use crate::base::ByteRange;
#[cfg(target_os = "linux")]
use crate::base::limits;
use crate::storage::coalesce::coalesce;
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// For how many calls of `prefetch` the device counts as slow after a wait for it.
const FORESEEN_AFTER_WAIT: u32 = 64;
/// Ranges no further apart are advised as one: a call costs more than a few unneeded pages.
const TOLD_GAP_BYTES: u64 = 16 << 10;
/// The length of the parts in which ranges are advised. Linux starts no more of a range than its own read-ahead, which
/// has this length by default.
const TOLD_BYTES_MAX: u64 = 128 << 10;
/// Ranges of this length are streams, which are left to a system that reads as far ahead.
const STREAM_BYTES_MIN: u64 = 1 << 20;

/// What a source knows of its device.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// How many calls of `prefetch` will still be passed on.
    left: AtomicU32,
    /// The file system cannot report what is in memory.
    blind: AtomicBool,
    /// How many bytes the system reads ahead in a stream.
    by_system: OnceLock<u64>,
}

/// The result of a read without waiting.
enum AtOnce {
    /// This many bytes were in memory.
    Bytes(usize),
    /// This system or file system cannot report it.
    Unknown,
}

impl Waits {
    /// Fills `out` with the file's bytes from `offset` on; an UnexpectedEof error if there are fewer.
    pub(super) fn fill(&self, file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.fill_by(at_once, file, offset, out)
    }

    fn fill_by(
        &self,
        at_once: impl FnOnce(&File, u64, &mut [u8]) -> AtOnce,
        file: &File,
        offset: u64,
        out: &mut [u8],
    ) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let found = match self.blind.load(Relaxed) {
            true => 0,
            false => self.noted(at_once(file, offset, out), out.len()),
        };
        // Where nothing is left this is no call.
        file.read_exact_at(out.get_mut(found..).unwrap_or_default(), offset + found as u64)
    }

    /// Like [`Waits::fill`], into several buffers one after the other; the slices are consumed.
    #[cfg(target_os = "linux")]
    pub(super) fn fill_each(&self, file: &File, offset: u64, outs: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        self.fill_each_by(read_vectored, file, offset, outs)
    }

    #[cfg(target_os = "linux")]
    fn fill_each_by(
        &self,
        read: impl Fn(&File, u64, &mut [IoSliceMut<'_>], libc::c_int) -> io::Result<usize>,
        file: &File,
        mut offset: u64,
        mut outs: &mut [IoSliceMut<'_>],
    ) -> io::Result<()> {
        IoSliceMut::advance_slices(&mut outs, 0);
        if !outs.is_empty() && !self.blind.load(Relaxed) {
            let wanted: usize = outs.iter().map(|out| out.len()).sum();
            let found = self.noted(answered(read(file, offset, outs, libc::RWF_NOWAIT)), wanted);
            offset += found as u64;
            IoSliceMut::advance_slices(&mut outs, found);
        }
        while !outs.is_empty() {
            match read(file, offset, outs, 0) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(found) => {
                    offset += found as u64;
                    IoSliceMut::advance_slices(&mut outs, found);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Records the result of a read without waiting for `wanted` bytes; returns how many of them were read.
    fn noted(&self, found: AtOnce, wanted: usize) -> usize {
        match found {
            AtOnce::Bytes(count) => {
                if count < wanted {
                    self.left.store(FORESEEN_AFTER_WAIT, Relaxed);
                }
                count
            }
            AtOnce::Unknown => {
                self.blind.store(true, Relaxed);
                0
            }
        }
    }

    /// Whether a recent read waited for the device.
    pub(super) fn is_cold(&self) -> bool {
        self.left.load(Relaxed) > 0
    }

    /// Advises the system of ranges of the file that will be read soon, if a recent read waited for the device. Streams
    /// are advised only if the system reads less ahead (`by_system` bytes, queried once) than a stream's least length.
    pub(super) fn prefetch(&self, ranges: &[ByteRange], by_system: impl Fn() -> u64, tell: impl Fn(ByteRange)) {
        let one_less = |left: u32| left.checked_sub(1);
        if ranges.is_empty() || self.left.fetch_update(Relaxed, Relaxed, one_less).is_err() {
            return;
        }
        for told in coalesce(ranges, TOLD_GAP_BYTES, u64::MAX).into_iter().map(|merged| merged.range) {
            if told.len >= STREAM_BYTES_MIN && *self.by_system.get_or_init(&by_system) >= STREAM_BYTES_MIN {
                continue;
            }
            for start in (told.offset..told.end()).step_by(TOLD_BYTES_MAX as usize) {
                tell(ByteRange::new(start, (told.end() - start).min(TOLD_BYTES_MAX)));
            }
        }
    }
}

/// Reads the bytes of a file that are in memory, from `offset` on and without a gap.
#[cfg(target_os = "linux")]
fn at_once(file: &File, offset: u64, out: &mut [u8]) -> AtOnce {
    use std::os::fd::AsRawFd;
    let part = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
    let Ok(offset) = libc::off_t::try_from(offset) else { return AtOnce::Unknown };
    // SAFETY: the descriptor is open as long as `file` is borrowed; `part` is the memory of `out`, borrowed for writing.
    let count = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset, libc::RWF_NOWAIT) };
    answered(usize::try_from(count).map_err(|_| io::Error::last_os_error()))
}

/// The result of a call that does not wait.
#[cfg(target_os = "linux")]
fn answered(answer: io::Result<usize>) -> AtOnce {
    match answer {
        Ok(count) => AtOnce::Bytes(count),
        // The call that waits reports this error.
        Err(e) if says_nothing(&e) => AtOnce::Bytes(0),
        Err(_) => AtOnce::Unknown,
    }
}

/// Whether an error of a call that does not wait concerns these bytes, not the file system.
#[cfg(target_os = "linux")]
fn says_nothing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::EIO))
}

/// Reads into `outs`, one after the other, as many bytes as there are; at most [`limits::READ_PARTS_MAX`] buffers.
#[cfg(target_os = "linux")]
fn read_vectored(file: &File, offset: u64, outs: &mut [IoSliceMut<'_>], flags: libc::c_int) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let offset = libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let count = libc::c_int::try_from(outs.len().min(limits::READ_PARTS_MAX)).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open as long as `file` is borrowed; `IoSliceMut` is laid out as `iovec`, and the memory of the first
    // `count` of them is borrowed for writing.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), outs.as_mut_ptr().cast(), count, offset, flags) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Elsewhere it is unknown.
#[cfg(not(target_os = "linux"))]
fn at_once(_file: &File, _offset: u64, _out: &mut [u8]) -> AtOnce {
    AtOnce::Unknown
}

/// Asks the system to start reading bytes. This is advice: any error shows when they are read.
#[cfg(target_os = "linux")]
pub(super) fn tell(file: &File, range: ByteRange) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (libc::off_t::try_from(range.offset), libc::off_t::try_from(range.len)) else { return };
    // SAFETY: the descriptor is open as long as `file` is borrowed; the call touches no memory of ours.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), offset, len, libc::POSIX_FADV_WILLNEED);
    }
}

/// Elsewhere no advice is given.
#[cfg(not(target_os = "linux"))]
pub(super) fn tell(_file: &File, _range: ByteRange) {}

#[cfg(test)]
impl Waits {
    /// Puts it into the state after a wait for the device.
    pub(super) fn be_waited_for(&self) {
        self.left.store(FORESEEN_AFTER_WAIT, Relaxed);
    }

    /// How often advice was given since.
    pub(super) fn told(&self) -> u32 {
        FORESEEN_AFTER_WAIT - self.left.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn file(bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("gridstone-waits-{}-{}", std::process::id(), bytes.len()));
        std::fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file
    }

    /// Like `at_once`, with at most `count` bytes in memory.
    fn cold(count: usize) -> impl FnOnce(&File, u64, &mut [u8]) -> AtOnce {
        move |file, offset, out| {
            let count = count.min(out.len());
            file.read_exact_at(&mut out[..count], offset).unwrap();
            AtOnce::Bytes(count)
        }
    }

    fn told(waits: &Waits, ranges: &[ByteRange]) -> Option<Vec<ByteRange>> {
        let all = RefCell::new(Vec::new());
        let waited_for = waits.is_cold();
        waits.prefetch(ranges, || 128 << 10, |range| all.borrow_mut().push(range));
        let all = all.into_inner();
        assert!(waited_for || all.is_empty());
        (!all.is_empty()).then_some(all)
    }

    #[test]
    fn what_is_read_is_the_same_wherever_it_was() {
        let bytes: Vec<u8> = (0..1_000u32).map(|n| n as u8).collect();
        let file = file(&bytes);
        for in_memory in [0, 1, 99, 100, 500] {
            let (waits, mut out) = (Waits::default(), [0; 100]);
            waits.fill_by(cold(in_memory), &file, 300, &mut out).unwrap();
            assert_eq!(out, bytes[300..400]);
            assert_eq!(told(&waits, &[ByteRange::new(0, 9)]).is_some(), in_memory < 100, "{in_memory}");
        }
        let (waits, mut out) = (Waits::default(), [0; 100]);
        waits.fill(&file, 900, &mut out).unwrap();
        assert_eq!(out, bytes[900..]);
        waits.fill(&file, 2_000, &mut []).unwrap();
        let short = waits.fill(&file, 901, &mut out).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn buffers_are_filled_one_after_the_other() {
        let bytes: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
        let (file, waits) = (file(&bytes), Waits::default());
        for lens in [vec![], vec![0, 0], vec![7], vec![0, 3, 0, 4_000, 1, 20_000, 0], vec![9; 3_000]] {
            let mut buffers: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
            let mut outs: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|b| IoSliceMut::new(b)).collect();
            waits.fill_each(&file, 11, &mut outs).unwrap();
            assert_eq!(buffers.concat(), bytes[11..11 + lens.iter().sum::<usize>()]);
        }
        let (mut one, mut two) = ([0; 10], [0; 10]);
        let mut outs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        let short = waits.fill_each(&file, 49_985, &mut outs).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Like `read_vectored`: a call that does not wait is answered by `at_once`, a number of bytes or of an error; a
    /// call that waits gives at most `most` bytes.
    #[cfg(target_os = "linux")]
    fn answering(
        at_once: Result<usize, i32>,
        most: usize,
    ) -> impl Fn(&File, u64, &mut [IoSliceMut<'_>], libc::c_int) -> io::Result<usize> {
        move |file, offset, outs, flags| {
            let most = if flags == 0 { most } else { at_once.map_err(io::Error::from_raw_os_error)? };
            let mut count = 0;
            for out in outs {
                let len = out.len().min(most - count);
                file.read_exact_at(&mut out[..len], offset + count as u64)?;
                count += len;
            }
            Ok(count)
        }
    }

    /// The content of buffers of these lengths, filled by `read` with the file's bytes from `offset` on.
    #[cfg(target_os = "linux")]
    fn filled(
        waits: &Waits,
        (file, offset): (&File, u64),
        lens: &[usize],
        read: impl Fn(&File, u64, &mut [IoSliceMut<'_>], libc::c_int) -> io::Result<usize>,
    ) -> io::Result<Vec<u8>> {
        let mut buffers: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
        let mut outs: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|b| IoSliceMut::new(b)).collect();
        waits.fill_each_by(read, file, offset, &mut outs)?;
        Ok(buffers.concat())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn buffers_hold_the_same_wherever_their_bytes_were() {
        let bytes: Vec<u8> = (0..2_000u32).map(|n| (n % 251) as u8).collect();
        let file = file(&bytes);
        let counts = [0, 1, 10, 11, 150, 199, 200].map(Ok);
        let errors = [libc::EAGAIN, libc::EINTR, libc::EIO].map(Err);
        for at_once in counts.into_iter().chain(errors) {
            for most in [1, 7, 1_000] {
                let waits = Waits::default();
                let found = filled(&waits, (&file, 11), &[10, 0, 140, 50], answering(at_once, most)).unwrap();
                assert_eq!(found, bytes[11..211], "{at_once:?}, {most}");
                assert_eq!(waits.is_cold(), at_once != Ok(200), "{at_once:?}");
                assert!(!waits.blind.load(Relaxed), "{at_once:?} says nothing of the file system");
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_system_that_refuses_to_tell_of_buffers_is_asked_once() {
        let file = file(b"twelve bytes and ten");
        for refusal in [libc::EOPNOTSUPP, libc::EINVAL, libc::ENOSYS] {
            let waits = Waits::default();
            let found = filled(&waits, (&file, 0), &[2, 4], answering(Err(refusal), 5)).unwrap();
            assert_eq!(found, b"twelve");
            let again = filled(&waits, (&file, 7), &[3, 2], |file, offset, outs, flags| {
                assert_eq!(flags, 0, "asked again");
                read_vectored(file, offset, outs, flags)
            });
            assert_eq!(again.unwrap(), b"bytes");
            assert_eq!(told(&waits, &[ByteRange::new(0, 9)]), None);
            // The same source reads one buffer too.
            waits.fill_by(|_, _, _| panic!("asked again"), &file, 0, &mut [0; 6]).unwrap();
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_wait_that_is_interrupted_goes_on_and_one_that_fails_says_so() {
        let (file, calls) = (file(b"fourteen bytes"), AtomicU32::new(0));
        let found = filled(&Waits::default(), (&file, 0), &[4, 4], |file, offset, outs, flags| {
            match calls.fetch_add(1, Relaxed) {
                0 | 1 => Err(io::Error::from_raw_os_error(libc::EINTR)),
                _ => read_vectored(file, offset, outs, flags),
            }
        });
        assert_eq!((found.unwrap(), calls.into_inner()), (b"fourteen".to_vec(), 3));
        let failed =
            filled(&Waits::default(), (&file, 0), &[4], |_, _, _, _| Err(io::Error::from_raw_os_error(libc::EIO)));
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::EIO));
        let short = filled(&Waits::default(), (&file, 0), &[4], |_, _, _, _| Ok(0)).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_file_system_that_cannot_tell_is_asked_once() {
        let file = file(b"twelve bytes");
        let (waits, mut out) = (Waits::default(), [0; 6]);
        waits.fill_by(|_, _, _| AtOnce::Unknown, &file, 0, &mut out).unwrap();
        assert_eq!(&out, b"twelve");
        waits.fill_by(|_, _, _| panic!("asked again"), &file, 6, &mut out).unwrap();
        assert_eq!(&out, b" bytes");
        assert_eq!(told(&waits, &[ByteRange::new(0, 9)]), None);
    }

    #[test]
    fn ranges_are_told_for_a_while_after_a_wait_and_those_close_together_as_one() {
        let file = file(b"twelve bytes.");
        let waits = Waits::default();
        let ranges = [ByteRange::new(0, 4_096), ByteRange::new(8_192, 4_096), ByteRange::new(1 << 20, 10)];
        assert_eq!(told(&waits, &ranges), None, "nothing was waited for");
        waits.fill_by(cold(3), &file, 0, &mut [0; 6]).unwrap();
        assert_eq!(told(&waits, &[]), None);
        for _ in 0..FORESEEN_AFTER_WAIT {
            assert_eq!(told(&waits, &ranges), Some(vec![ByteRange::new(0, 12_288), ByteRange::new(1 << 20, 10)]));
        }
        assert_eq!(told(&waits, &ranges), None, "the device was not waited for since");
        waits.fill_by(cold(3), &file, 0, &mut [0; 6]).unwrap();
        let parts = [ByteRange::new(5, 128 << 10), ByteRange::new(5 + (128 << 10), 7)];
        assert_eq!(told(&waits, &[ByteRange::new(5, (128 << 10) + 7)]), Some(parts.to_vec()));
        waits.left.store(0, Relaxed);
        waits.fill_by(cold(6), &file, 0, &mut [0; 6]).unwrap();
        assert_eq!(told(&waits, &ranges), None);
    }

    #[test]
    fn streams_are_left_to_a_system_that_reads_far_ahead() {
        let ranges =
            [ByteRange::new(0, 700 << 10), ByteRange::new(700 << 10, 700 << 10), ByteRange::new(9 << 20, 1_000)];
        let told = |by_system: u64| {
            let (waits, all) = (Waits::default(), RefCell::new(Vec::new()));
            waits.be_waited_for();
            waits.prefetch(&ranges, || by_system, |range| all.borrow_mut().push(range.offset));
            all.into_inner()
        };
        assert_eq!(told(8 << 20), [9 << 20]);
        let parts: Vec<u64> = (0..11).map(|part| part * (128 << 10)).chain([9 << 20]).collect();
        assert_eq!(told(128 << 10), parts);
    }
}
