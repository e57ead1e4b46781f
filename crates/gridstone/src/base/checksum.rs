//! The two checksums of the format: xxh3 (64 bit) for metadata, CRC32C for pages.

/// XXH3-64 of `bytes` with seed 0.
pub fn xxh3(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// CRC32C (Castagnoli) of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The CRC32C of data with checksum `sum`, followed by `bytes`; empty data has 0.
pub fn crc32c_append(sum: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(sum, bytes)
}
