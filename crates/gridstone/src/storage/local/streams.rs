//! The system's own read-ahead for a file that is read from front to back.

use std::fs::{File, read_to_string};
use std::os::unix::fs::MetadataExt;

/// The default of Linux, and the fallback where the setting is unknown.
const USUAL_BYTES: u64 = 128 << 10;

/// How many bytes the system reads ahead in a file that is read from front to back, by the settings of its device.
pub(super) fn read_ahead(file: &File) -> u64 {
    let Ok(device) = file.metadata().map(|metadata| metadata.dev()) else { return USUAL_BYTES };
    places(device).into_iter().find_map(|place| parse(&read_to_string(place).ok()?)).unwrap_or(USUAL_BYTES)
}

/// The paths of the setting in Linux: of a disk, of the disk of a partition, of anything else.
fn places(device: u64) -> [String; 3] {
    let (major, minor) = numbers(device);
    let of = |place: &str| place.replace('#', &format!("{major}:{minor}"));
    ["/sys/dev/block/#/bdi/read_ahead_kb", "/sys/dev/block/#/../bdi/read_ahead_kb", "/sys/class/bdi/#/read_ahead_kb"]
        .map(of)
}

#[cfg(target_os = "linux")]
fn numbers(device: u64) -> (u32, u32) {
    (libc::major(device), libc::minor(device))
}

/// Elsewhere these paths do not exist.
#[cfg(not(target_os = "linux"))]
fn numbers(_device: u64) -> (u32, u32) {
    (0, 0)
}

fn parse(kib: &str) -> Option<u64> {
    kib.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_in_kib() {
        assert_eq!(parse("8192\n"), Some(8 << 20));
        assert_eq!(parse("0\n"), Some(0));
        assert_eq!((parse(""), parse("many"), parse("99999999999999999999")), (None, None, None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_device_is_named_by_its_numbers() {
        let device = libc::makedev(254, 3);
        assert_eq!(
            places(device),
            [
                "/sys/dev/block/254:3/bdi/read_ahead_kb",
                "/sys/dev/block/254:3/../bdi/read_ahead_kb",
                "/sys/class/bdi/254:3/read_ahead_kb"
            ]
        );
    }

    #[test]
    fn what_no_device_holds_is_taken_to_be_as_usual() {
        let device_of_no_disk = File::open("/proc/self/stat").or_else(|_| File::open("/dev/null")).unwrap();
        let told =
            places(device_of_no_disk.metadata().unwrap().dev()).iter().any(|place| read_to_string(place).is_ok());
        assert!(told || read_ahead(&device_of_no_disk) == USUAL_BYTES);
    }
}
