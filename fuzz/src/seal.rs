//! Right checksums for wrong bytes: what was changed is sealed again as its writer would have done, wherever the bytes
//! still say what is sealed where.

use gridstone::base::{crc32c, xxh3};
use gridstone::fragment::Root;

/// Header and footer of a fragment, in bytes.
const FRAME: usize = 64;
/// Newline, 16 digits, newline.
const LINE_SEAL: usize = 18;

/// Gives the first line its checksum. What followed the old one stays, padded so that it starts where the format asks.
pub fn line(bytes: &[u8], alignment: usize) -> Vec<u8> {
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let body = bytes.get(end + LINE_SEAL..).unwrap_or_default();
    let mut sealed = bytes[..end].to_vec();
    while sealed.last() == Some(&b' ') {
        sealed.pop();
    }
    sealed.resize((sealed.len() + LINE_SEAL).next_multiple_of(alignment) - LINE_SEAL, b' ');
    let sum = xxh3(&sealed);
    sealed.extend_from_slice(format!("\n{sum:016x}\n").as_bytes());
    sealed.extend_from_slice(body);
    sealed
}

/// Gives a manifest page its checksum.
pub fn page(bytes: &mut [u8]) {
    if let Some((content, sum)) = bytes.split_last_chunk_mut::<8>() {
        *sum = xxh3(content).to_le_bytes();
    }
}

/// Bytes of a frame of rows before its content.
const ROWS_HEAD: usize = 24;

/// Gives a frame of rows its length, where the content is not coded, and its checksum. Returns the checksum of the content.
pub fn rows(bytes: &mut [u8]) -> Option<u64> {
    let end = bytes.len().checked_sub(8).filter(|end| *end >= ROWS_HEAD)?;
    let mut of_content = None;
    if half(bytes, 12) == Some(0) {
        put(bytes, 16, &((end - ROWS_HEAD) as u64).to_le_bytes());
        of_content = bytes.get(ROWS_HEAD..end).map(xxh3);
    }
    page(bytes);
    of_content
}

/// Gives a manifest root the checksums of its rows and its line.
pub fn root(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let sum = bytes.get_mut(end + LINE_SEAL..).and_then(rows);
    let named = bytes[..end].windows(8).position(|part| part == b"\"rows\":\"");
    if let (Some(sum), Some(at)) = (sum, named)
        && at + 24 <= end
    {
        put(&mut bytes, at + 8, format!("{sum:016x}").as_bytes());
    }
    line(&bytes, 1)
}

/// The same frame, whose content is not coded.
pub fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut plain = bytes.to_vec();
    if half(bytes, 12) == Some(1)
        && let Some(len) = word(bytes, 16)
        && let Ok(content) = zstd::bulk::decompress(&bytes[ROWS_HEAD..bytes.len() - 8], len)
    {
        plain.truncate(ROWS_HEAD);
        plain[12] = 0;
        plain.extend(content);
        plain.extend([0; 8]);
        page(&mut plain);
    }
    plain
}

/// Gives the header of a sealed object its checksum.
pub fn sealed_header(bytes: &mut [u8]) {
    if let Some(sum) = bytes.get(8..64).map(xxh3) {
        put(bytes, 64, &sum.to_le_bytes());
    }
}

/// Gives the header of a sorted copy, and the fragment behind it, their checksums.
pub fn sorted_copy(bytes: &mut [u8]) {
    let Some(end) = half(bytes, 8).and_then(|body| body.checked_add(12)) else { return };
    let Some(sum) = bytes.get(..end).map(xxh3) else { return };
    put(bytes, end, &sum.to_le_bytes());
    if let Some(behind) = (end + 8).checked_next_multiple_of(FRAME).and_then(|from| bytes.get_mut(from..)) {
        fragment(behind);
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    usize::try_from(u64::from_le_bytes(word.try_into().ok()?)).ok()
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?) as usize)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    bytes.get_mut(at..at.checked_add(value.len())?)?.copy_from_slice(value);
    Some(())
}

/// The root of a fragment, and where it lies, as the footer tells.
pub fn root_of(bytes: &[u8]) -> Option<(Root, usize, usize)> {
    let footer = bytes.len().checked_sub(FRAME)?;
    let (at, len) = (word(bytes, footer)?, word(bytes, footer + 8)?);
    Some((Root::decode(bytes.get(at..at.checked_add(len)?)?).ok()?, at, len))
}

/// Gives every block, index section, root, header and footer of a fragment its checksum.
pub fn fragment(bytes: &mut [u8]) {
    if bytes.len() < 2 * FRAME {
        return;
    }
    if let Some((mut root, at, len)) = root_of(bytes) {
        for stripe in 0..root.stripes.len() {
            blocks(bytes, &root, stripe);
        }
        for section in &mut root.sections {
            let (from, len) = (section.range.offset as usize, section.range.len as usize);
            if let Some(content) = from.checked_add(len).and_then(|end| bytes.get(from..end)) {
                section.xxh3 = xxh3(content);
            }
        }
        // Sections that no reader knows are left out of what is encoded; then the old root stays.
        if let Some(encoded) = root.encode().ok().filter(|encoded| encoded.len() == len) {
            put(bytes, at, &encoded);
        }
    }
    let footer = bytes.len() - FRAME;
    if let (Some(at), Some(len)) = (word(bytes, footer), word(bytes, footer + 8))
        && let Some(root) = at.checked_add(len).and_then(|end| bytes.get(at..end))
    {
        let sum = xxh3(root);
        put(bytes, footer + 16, &sum.to_le_bytes());
    }
    for frame in [0, footer] {
        let sum = xxh3(&bytes[frame..frame + FRAME - 8]);
        put(bytes, frame + FRAME - 8, &sum.to_le_bytes());
    }
}

/// Gives the blocks of a stripe their CRC32C, as far as the index makes sense.
fn blocks(bytes: &mut [u8], root: &Root, stripe: usize) -> Option<()> {
    let place = |number: u32| {
        let section = root.sections.iter().find(|s| s.id as u32 == number && s.stripe as usize == stripe)?;
        Some(section.range.offset as usize)
    };
    let (starts, pages, entries) = (place(4)?, place(7)?, place(8)?);
    let info = root.stripes.get(stripe)?;
    let (tiles, all) = (usize::try_from(info.tiles).ok()?, usize::try_from(info.blocks).ok()?);
    for field in 0..root.fields.len() {
        for tile in 0..tiles.min(1 << 16) {
            let page = pages.checked_add(field.checked_mul(tiles)?.checked_add(tile)?.checked_mul(24)?)?;
            let mut at = word(bytes, page)?;
            let (first, last) = (half(bytes, starts + 4 * tile)?, half(bytes, starts + 4 * tile + 4)?);
            for block in first..last.min(first.checked_add(1 << 16)?) {
                let entry = entries.checked_add(field.checked_mul(all)?.checked_add(block)?.checked_mul(8)?)?;
                let len = half(bytes, entry)?;
                let sum = crc32c(bytes.get(at..at.checked_add(len)?)?);
                put(bytes, entry + 4, &sum.to_le_bytes())?;
                at += len;
            }
        }
    }
    Some(())
}
