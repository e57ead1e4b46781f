//! A data tile taken out of a fragment as it is stored, to be put into another: its pages and its part of the index.
//!
//! Nothing is decoded. Every checksum is compared on the way, so that damage is not carried on under a new name.

use super::encode::{EncodedPage, EncodedTile, PageBytes, SparseShape};
use super::format::CHUNK_BYTES;
use super::reader::bad_checksum;
use super::root::Role;
use super::stripe::{Keys, Stripe};
use super::{Fragment, FragmentKind};
use crate::base::{ByteRange, Error, Result, crc32c};
use crate::tile::Statistics;
use bytes::Bytes;

impl Fragment {
    /// Where the pages of a tile lie in the fragment's source, one per field.
    pub fn page_ranges(&self, tile: u64) -> Result<Vec<ByteRange>> {
        let (stripe, local) = self.stripe_of(tile).ok_or_else(|| self.no_tile(tile))?;
        let stripe = self.stripe(stripe)?;
        let mut ranges = Vec::with_capacity(self.root().fields.len());
        for field in 0..self.root().fields.len() {
            let named = |e: Error| self.named(e, field, tile);
            let page = stripe.page(self.root(), field, local).map_err(named)?.ok_or_else(|| self.no_tile(tile))?;
            ranges.push(self.at(ByteRange::new(page.offset, page.len)));
        }
        Ok(ranges)
    }

    /// A tile of `cells` cells as it is stored, from the bytes of its pages and the statistics of its stripe. Corruption if they
    /// fail a checksum, with fragment, tile and attribute.
    pub fn encoded_tile(&self, tile: u64, cells: u64, pages: Vec<Bytes>, stats: &[Statistics]) -> Result<EncodedTile> {
        let (stripe, local) = self.stripe_of(tile).ok_or_else(|| self.no_tile(tile))?;
        let stripe = self.stripe(stripe)?;
        let (from, to) = stripe.block_span(local).ok_or_else(|| self.no_tile(tile))?;
        if pages.len() != self.root().fields.len() {
            return Err(Error::storage("a source gave the wrong number of parts"));
        }
        let (mut made, mut attr) = (Vec::with_capacity(pages.len()), 0);
        for (field, bytes) in pages.into_iter().enumerate() {
            let mut page = self.page(&stripe, (field, local, tile), to - from, bytes)?;
            if matches!(self.root().fields.get(field).map(|f| f.role), Some(Role::Attribute(_))) {
                let found = stats.get(attr * stripe.tiles() + local);
                page.statistics = Some(found.cloned().ok_or_else(|| self.no_tile(tile))?);
                attr += 1;
            }
            made.push(page);
        }
        let sparse = self.root().kind != FragmentKind::Dense;
        let shape = sparse.then(|| shape(&stripe, local, from..to).ok_or_else(|| self.no_tile(tile))).transpose()?;
        Ok(EncodedTile { cells, blocks: (to - from) as u32, pages: made, shape })
    }

    fn no_tile(&self, tile: u64) -> Error {
        Error::corruption(format!("fragment {}: no tile {tile}", self.description().id))
    }

    fn page(
        &self,
        stripe: &Stripe,
        (field, local, tile): (usize, usize, u64),
        blocks: usize,
        bytes: Bytes,
    ) -> Result<EncodedPage> {
        let named = |e: Error| self.named(e, field, tile);
        let entry = stripe.page(self.root(), field, local).map_err(named)?.ok_or_else(|| self.no_tile(tile))?;
        if bytes.len() as u64 != entry.len {
            return Err(named(Error::corruption(format!("{} bytes were read, {} wanted", bytes.len(), entry.len))));
        }
        let large = self.is_chunked(entry);
        let mut table = Vec::with_capacity(blocks);
        for block in 0..blocks {
            let block = stripe.block(entry, field, local, block).map_err(named)?.ok_or_else(|| self.no_tile(tile))?;
            let stored = bytes.get(block.offset as usize..(block.offset + u64::from(block.len)) as usize);
            if !large && stored.map(crc32c) != Some(block.crc) {
                return Err(named(bad_checksum()));
            }
            table.push((block.len, if large { 0 } else { block.crc }));
        }
        let mut chunks = Vec::new();
        for (number, chunk) in bytes.chunks(CHUNK_BYTES as usize).enumerate().filter(|_| large) {
            let crc = crc32c(chunk);
            if stripe.chunk_checksum(entry.first_chunk as usize + number) != Some(crc) {
                return Err(named(bad_checksum()));
            }
            chunks.push(crc);
        }
        let pipeline = self.root().pipelines.get(entry.pipeline as usize).cloned().unwrap_or_default();
        let bytes = PageBytes::Packed(bytes.to_vec());
        Ok(EncodedPage { pipeline, bytes, blocks: table, chunks, statistics: None })
    }
}

/// What the index says of a sparse tile and its blocks.
fn shape(stripe: &Stripe, local: usize, blocks: std::ops::Range<usize>) -> Option<SparseShape> {
    let keys = |keys: Keys<'_>| keys.iter().collect::<Vec<u64>>();
    let (first, last) = stripe.tile_ends(local)?;
    let bounds = blocks.clone().map(|b| stripe.block_bounds(b).map(|bounds| bounds.to_subarray()));
    let firsts = blocks.map(|b| stripe.block_first(b).map(keys));
    Some(SparseShape {
        mbr: stripe.tile_bounds(local)?.to_subarray(),
        ends: (keys(first), keys(last)),
        block_mbrs: bounds.collect::<Option<_>>()?,
        block_firsts: firsts.collect::<Option<_>>()?,
    })
}
