//! A mask: rows of one sparse fragment that are deleted, as bitmaps per data tile.
//!
//! ```text
//! magic    8 bytes "GSMASK\0\0"
//! version  u32, 0
//! tiles    u32 count, at least one
//! over     16 bytes: the fragment
//! rows     u64: how many are deleted, at least one
//! len      u64: bytes of what follows, before compression
//! bitmaps  one Zstandard frame of, per tile by ascending number: tile u64 · cells u32 · reserved u32 · ceil(cells / 64) words u64;
//!          bit r % 64 of word r / 64 says that row r of the tile is deleted
//! xxh3     u64 over all before
//! ```
//! A masked row is as if it had never been written. Several masks over one fragment delete the union of their rows.

use crate::base::{ByteReader, ByteWriter, Element, Error, Id, Result, newer, xxh3};
use crate::codec::Filter;
use crate::codec::zstd::Zstd;
use crate::tile::try_vec;
use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"GSMASK\0\0";
const VERSION: u32 = 0;
const WORD_BITS: usize = u64::BITS as usize;

/// The deleted rows of one tile.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bitmap {
    cells: u32,
    words: Vec<u64>,
}

impl Bitmap {
    fn has(&self, row: usize) -> bool {
        self.words.get(row / WORD_BITS).is_some_and(|word| word >> (row % WORD_BITS) & 1 == 1)
    }
}

/// Rows of a fragment that are deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    tiles: BTreeMap<u64, Bitmap>,
    rows: u64,
}

impl Mask {
    /// Adds a row of a data tile of `cells` cells.
    pub fn add(&mut self, tile: u64, cells: usize, row: usize) {
        let words = || vec![0; cells.div_ceil(WORD_BITS)];
        let bitmap = self.tiles.entry(tile).or_insert_with(|| Bitmap { cells: cells as u32, words: words() });
        if let Some(word) = bitmap.words.get_mut(row / WORD_BITS)
            && row < cells
        {
            let bit = 1 << (row % WORD_BITS);
            self.rows += u64::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// How many rows it deletes.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether it deletes a row of a data tile.
    pub fn has(&self, tile: u64, row: usize) -> bool {
        self.tiles.get(&tile).is_some_and(|bitmap| bitmap.has(row))
    }

    /// Whether it deletes a row of this tile.
    pub fn has_some(&self, tile: u64) -> bool {
        self.tiles.get(&tile).is_some_and(|bitmap| bitmap.words.iter().any(|word| *word != 0))
    }

    /// Clears the flags of the deleted ones among the rows of a tile from `first` on; says whether there are some.
    pub fn clear(&self, tile: u64, first: usize, flags: &mut [bool]) -> bool {
        let Some(bitmap) = self.tiles.get(&tile) else { return false };
        let mut some = false;
        for (flag, row) in flags.iter_mut().zip(first..) {
            if bitmap.has(row) {
                (*flag, some) = (false, true);
            }
        }
        some
    }

    /// Whether it deletes one of the rows `first .. first + count` of a tile.
    pub fn touches(&self, tile: u64, first: usize, count: usize) -> bool {
        self.tiles.get(&tile).is_some_and(|bitmap| (first..first + count).any(|row| bitmap.has(row)))
    }

    /// Bytes of memory that it takes, about.
    pub fn size_bytes(&self) -> u64 {
        self.tiles.values().map(|bitmap| bitmap.words.len() as u64 * 8 + 64).sum()
    }

    /// The bytes of the mask over the fragment `over`.
    pub fn encode(&self, over: Id) -> Result<Vec<u8>> {
        let mut bitmaps = ByteWriter::new();
        for (tile, bitmap) in &self.tiles {
            bitmaps.u64(*tile);
            bitmaps.u32(bitmap.cells);
            bitmaps.u32(0);
            bitmap.words.iter().for_each(|word| bitmaps.u64(*word));
        }
        let mut packed = Vec::new();
        Zstd { level: 3 }.encode(bitmaps.as_slice(), Element::BYTE, &mut packed)?;
        let mut w = ByteWriter::new();
        w.raw(MAGIC);
        w.u32(VERSION);
        w.u32(self.tiles.len() as u32);
        w.raw(&over.0);
        w.u64(self.rows);
        w.u64(bitmaps.len() as u64);
        w.raw(&packed);
        let sum = xxh3(w.as_slice());
        w.u64(sum);
        Ok(w.into_bytes())
    }

    /// The mask in `bytes`, which must delete `rows` rows of the fragment `over` of `cells` cells; else a Corruption error.
    pub fn decode(bytes: &[u8], over: Id, rows: u64, cells: u64) -> Result<Self> {
        let wrong = |why: &str| Error::corruption(format!("the mask over fragment {over}: {why}"));
        let (content, sum) = bytes.split_last_chunk::<8>().ok_or_else(|| wrong("it is cut"))?;
        if u64::from_le_bytes(*sum) != xxh3(content) {
            return Err(wrong("its bytes do not match their checksum"));
        }
        let mut r = ByteReader::new(content, "a mask");
        if r.take(MAGIC.len())? != MAGIC {
            return Err(wrong("it does not start with the magic of a mask"));
        }
        let version = r.u32()?;
        if version != VERSION {
            return Err(newer(format!("the mask over fragment {over}"), format!("a mask of version {version}")));
        }
        let (tiles, named) = (r.u32()?, r.id()?);
        let (said, len) = (r.u64()?, r.u64()?);
        if named != over || said != rows || rows == 0 || rows > cells {
            return Err(wrong("it is not the one that was described"));
        }
        // A tile has a cell at least; its words hold fewer than 64 bits too many.
        let len_max = u64::from(tiles).saturating_mul(24).saturating_add(cells / 8);
        if u64::from(tiles) > cells || len > len_max {
            return Err(wrong("it is longer than its fragment"));
        }
        let packed = r.take(r.remaining())?;
        let mut bitmaps = try_vec(0u8, len as usize)?;
        let filled = Zstd { level: 3 }.decode(packed, Element::BYTE, &mut bitmaps)?;
        if filled != bitmaps.len() {
            return Err(wrong("its bitmaps are cut"));
        }
        let mask = Self::read(&bitmaps, tiles)?;
        if mask.rows != rows {
            return Err(wrong("its bits are not as many as it says"));
        }
        Ok(mask)
    }

    fn read(bitmaps: &[u8], tiles: u32) -> Result<Self> {
        let wrong = || Error::corruption("a mask's bitmaps are impossible");
        let mut r = ByteReader::new(bitmaps, "a mask's bitmaps");
        let mut mask = Self::default();
        for _ in 0..tiles {
            let (tile, cells) = (r.u64()?, r.u32()?);
            let count = (cells as usize).div_ceil(WORD_BITS);
            r.u32()?;
            if mask.tiles.last_key_value().is_some_and(|(last, _)| *last >= tile) {
                return Err(wrong());
            }
            let raw = r.take(count * 8)?;
            let words: Vec<u64> = raw.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let beyond = cells as usize % WORD_BITS;
            if beyond > 0 && words.last().is_some_and(|word| word >> beyond != 0) {
                return Err(wrong());
            }
            mask.rows += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            mask.tiles.insert(tile, Bitmap { cells, words });
        }
        r.expect_end()?;
        Ok(mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OVER: Id = Id([7; 16]);

    fn masked(rows: &[(u64, usize)]) -> Mask {
        let mut mask = Mask::default();
        rows.iter().for_each(|(tile, row)| mask.add(*tile, 100, *row));
        mask
    }

    #[test]
    fn rows_are_counted_once_and_found() {
        let mask = masked(&[(3, 0), (3, 63), (3, 64), (3, 0), (9, 99), (9, 100)]);
        assert_eq!(mask.rows(), 4, "one was named twice, one is no row of its tile");
        assert!(mask.has(3, 63) && !mask.has(3, 62) && !mask.has(4, 0) && !mask.has(9, 100));
        let mut flags = [true; 3];
        assert!(mask.clear(3, 62, &mut flags) && flags == [true, false, false]);
        assert!(!mask.clear(3, 1, &mut flags) && !mask.touches(3, 1, 62) && mask.touches(3, 1, 63));
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "calls C")]
        fn what_is_written_is_read(rows in proptest::collection::vec((0u64..6, 0usize..100), 1..80)) {
            let mask = masked(&rows);
            let bytes = mask.encode(OVER).unwrap();
            prop_assert_eq!(Mask::decode(&bytes, OVER, mask.rows(), 600).unwrap(), mask);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn damage_is_found_at_every_byte() {
        let mask = masked(&[(1, 5), (2, 70)]);
        let bytes = mask.encode(OVER).unwrap();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert!(Mask::decode(&bad, OVER, 2, 300).is_err(), "byte {at}");
            assert!(Mask::decode(&bytes[..at], OVER, 2, 300).is_err(), "cut to {at}");
        }
        assert!(Mask::decode(&bytes, OVER, 3, 300).is_err() && Mask::decode(&bytes, Id([8; 16]), 2, 300).is_err());
        assert!(Mask::decode(&bytes, OVER, 2, 1).is_err());
    }

    /// Damage that a right checksum hides from the first look.
    #[test]
    fn impossible_bitmaps_are_refused() {
        let bitmaps = |words: &[(u64, u32, u64)]| {
            let mut w = ByteWriter::new();
            for (tile, cells, word) in words {
                w.u64(*tile);
                w.u32(*cells);
                w.u32(0);
                w.u64(*word);
            }
            w.into_bytes()
        };
        assert!(Mask::read(&bitmaps(&[(0, 5, 31), (1, 64, u64::MAX)]), 2).is_ok());
        assert!(Mask::read(&bitmaps(&[(0, 5, 32)]), 1).is_err(), "a row beyond the tile");
        assert!(Mask::read(&bitmaps(&[(1, 5, 1), (1, 5, 2)]), 2).is_err(), "a tile twice");
        assert!(Mask::read(&bitmaps(&[(1, 5, 1)]), 2).is_err() && Mask::read(&bitmaps(&[(1, 65, 1)]), 1).is_err());
    }
}
