//! Reads and decodes every block of every fragment, and reports damage instead of stopping at it.

use crate::base::{ByteRange, Counters, Error, ErrorKind, Id, Result, id_named_twice};
use crate::fragment::{
    BlockRef, BlockSource, DenseFragment, Description, ExternalFragment, Fragment, FragmentKind, Role, TileSource,
};
use crate::query::{ReadContext, open_uncached, outside_bounds, read_mask};
use crate::schema::{Schema, Subarray, key};
use crate::tile::Column;
use std::collections::HashMap;
use std::sync::Arc;

/// One damaged location.
#[derive(Debug, Clone)]
pub struct Damage {
    /// The fragment.
    pub fragment: Id,
    /// The data tile in it, if known.
    pub tile: Option<u64>,
    /// The dimension or attribute, if known.
    pub column: Option<String>,
    /// The box of the cells that it may affect, as texts: low and high per dimension, inclusive.
    pub domain: Vec<(String, String)>,
    /// The largest number of cells that it affects.
    pub cells: u64,
    /// What is wrong.
    pub message: String,
}

/// The scope and the result of a verification.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// How many fragments were checked.
    pub fragments: u64,
    /// How many data tiles were checked.
    pub tiles: u64,
    /// How many blocks were decoded.
    pub blocks: u64,
    /// How many stored bytes were read.
    pub bytes: u64,
    /// The damage found; empty if there is none.
    pub damage: Vec<Damage>,
}

/// How many pages per thread are read and decoded in parallel between two reports of progress.
const PAGES_PER_THREAD: usize = 16;

/// How many stored bytes each thread reads at once: a page takes few requests of a bucket, and little memory is held.
const READ_BYTES_MAX: u64 = 4 << 20;

/// The progress of a verification: stored bytes of fragments.
#[derive(Debug)]
pub(super) struct Meter {
    done: u64,
    total: u64,
}

impl Meter {
    /// The progress of a verification of `fragments`.
    pub(super) fn of<'a>(fragments: impl Iterator<Item = &'a Arc<Description>>) -> Self {
        Self { done: 0, total: fragments.map(|d| d.location.len).fold(0, u64::saturating_add) }
    }

    /// Reports `bytes` of the current fragment.
    fn tell(&self, context: &ReadContext, bytes: u64) {
        context.progress.report(self.done.saturating_add(bytes).min(self.total), self.total);
    }

    /// Reports a fragment as done, whether or not it was checked.
    pub(super) fn pass(&mut self, context: &ReadContext, fragment: &Description) {
        self.done = self.done.saturating_add(fragment.location.len);
        self.tell(context, 0);
    }
}

/// Verifies every byte of `fragments` in all threads. Damage and missing files go into the report. Any other error ends
/// the verification: of the storage, a cancellation, a fragment of a newer release, or a user-defined filter that is
/// not registered. Progress counts stored bytes.
pub fn verify(context: &ReadContext, schema: &Schema, fragments: &[Arc<Description>]) -> Result<VerifyReport> {
    let cells = fragments.iter().map(|d| (d.id, d.cells)).collect();
    let mut report = verify_among(context, schema, fragments, &cells, &mut Meter::of(fragments.iter()))?;
    let twice = id_named_twice(fragments.iter().map(|d| d.id));
    report.damage.extend(fragments.iter().find(|d| Some(d.id) == twice).map(|d| Damage {
        fragment: d.id,
        tile: None,
        column: None,
        domain: schema.ends(&d.bounds),
        cells: d.cells,
        message: "the array has it twice".to_owned(),
    }));
    Ok(report)
}

/// Like [`verify`]; `cells` has the cell counts of all fragments of the array, since masks may lie over any of them.
pub(super) fn verify_among(
    context: &ReadContext,
    schema: &Schema,
    fragments: &[Arc<Description>],
    cells: &HashMap<Id, u64>,
    meter: &mut Meter,
) -> Result<VerifyReport> {
    let mut check = Check { context, schema, cells, report: VerifyReport::default() };
    for description in fragments {
        context.cancel.check()?;
        check.description(description, meter)?;
        meter.pass(context, description);
    }
    Ok(check.report)
}

/// A verification in progress.
struct Check<'a> {
    context: &'a ReadContext,
    schema: &'a Schema,
    /// The cell counts of the fragments that masks may lie over.
    cells: &'a HashMap<Id, u64>,
    report: VerifyReport,
}

impl Check<'_> {
    /// Reports `error` if it is damage, else returns it.
    fn note(
        &mut self,
        fragment: Id,
        (tile, column): (Option<u64>, Option<String>),
        (bounds, cells): (&Subarray, u64),
        error: Error,
    ) -> Result<()> {
        let message = damage_or(error)?.to_string();
        let domain = self.schema.ends(bounds);
        self.report.damage.push(Damage { fragment, tile, column, domain, cells, message });
        Ok(())
    }

    fn description(&mut self, description: &Arc<Description>, meter: &Meter) -> Result<()> {
        self.report.fragments += 1;
        match description.kind {
            FragmentKind::Dense | FragmentKind::Sparse | FragmentKind::Tombstones => {}
            FragmentKind::Deletion => return Ok(()),
            FragmentKind::Mask => return self.mask(description),
        }
        // Not from the cache: the verification must read what is in the files now.
        match open_uncached(self.context, self.schema, description) {
            Ok(fragment) => {
                // A fragment whose filter is missing is not known to be damaged, nor to be sound.
                fragment.check_filters().map_err(|e| e.context(format!("fragment {}", description.id)))?;
                self.fragment(&Arc::new(fragment), meter)
            }
            Err(error) => self.note(description.id, (None, None), (&description.bounds, description.cells), error),
        }
    }

    /// A mask is verified as a whole, against the fragment that it lies over.
    fn mask(&mut self, mask: &Arc<Description>) -> Result<()> {
        let over = mask.over.and_then(|over| Some((over, *self.cells.get(&over)?)));
        let read = match over {
            Some(over) => read_mask(self.context, mask, over),
            None => Err(Error::corruption("a mask lies over a fragment that is not in the array")),
        };
        self.report.bytes += mask.location.len;
        let cells = over.map_or(mask.cells, |(_, cells)| cells);
        read.map(drop).or_else(|error| self.note(mask.id, (None, None), (&mask.bounds, cells), error))
    }

    /// Goes stripe by stripe. A stripe whose index is damaged is reported once, and its tiles cannot be found.
    fn fragment(&mut self, fragment: &Arc<Fragment>, meter: &Meter) -> Result<()> {
        let Description { id, bounds, cells, .. } = fragment.description().as_ref();
        let (id, whole, before) = (*id, (bounds, *cells), self.report.bytes);
        let columns = columns(self.schema, fragment);
        if fragment.description().is_external() {
            return self.external(fragment, &columns);
        }
        for (stripe, info) in fragment.root().stripes.iter().enumerate() {
            self.context.cancel.check()?;
            let first = fragment.first_tile(stripe);
            self.report.tiles += info.tiles;
            if let Err(error) = fragment.stripe(stripe) {
                self.note(id, (Some(first), None), whole, error)?;
                continue;
            }
            if let Err(error) = fragment.statistics(stripe) {
                self.note(id, (Some(first), None), whole, error)?;
            }
            // The column varies fastest: pages of a tile are adjacent.
            let mut pages =
                (first..first + info.tiles).flat_map(|tile| (0..columns.len()).map(move |field| (tile, field)));
            loop {
                let some: Vec<_> = pages.by_ref().take(PAGES_PER_THREAD * self.context.pool.threads()).collect();
                if some.is_empty() {
                    break;
                }
                let (context, schema) = (self.context, self.schema);
                let check = |page: &mut Page, of: (u64, usize)| page.check(context, schema, fragment, of);
                for (tile, field, flaw) in self.pages(some, check)? {
                    let place = tile_place(self.schema, fragment, tile);
                    let place = place.as_ref().map_or(whole, |(bounds, cells)| (bounds, *cells));
                    let column = columns.get(field).map(|(_, name)| name.clone());
                    self.note(id, (Some(tile), column), place, flaw)?;
                }
                meter.tell(self.context, (self.report.bytes - before).min(fragment.description().location.len));
            }
        }
        Ok(())
    }

    /// Verifies an external fragment: every chunk of its sources is decoded. A source that has changed counts as damage, once per
    /// chunk that is needed of it. Where files of other formats are not looked at, its own index is verified.
    fn external(&mut self, fragment: &Arc<Fragment>, columns: &[(usize, String)]) -> Result<()> {
        if self.context.files.sources().is_none() {
            return self.page_tables(fragment);
        }
        let source = &ExternalFragment::new(Arc::clone(fragment))?;
        let Description { id, bounds, cells, .. } = fragment.description().as_ref();
        self.report.tiles += source.tiles_in(bounds).count() as u64;
        let fields = columns.len();
        let mut pages = source.tiles_in(bounds).flat_map(|tile| (0..fields).map(move |field| (tile, field)));
        loop {
            self.context.cancel.check()?;
            let some: Vec<_> = pages.by_ref().take(PAGES_PER_THREAD * self.context.pool.threads()).collect();
            if some.is_empty() {
                return Ok(());
            }
            let context = self.context;
            let check = |page: &mut Page, of: (u64, usize)| page.check_foreign(context, source, of);
            for (tile, field, flaw) in self.pages(some, check)? {
                let place = source.tile_box(tile).unwrap_or_else(|| bounds.clone());
                let cells = u64::try_from(place.cells()).unwrap_or(*cells);
                let column = columns.get(field).map(|(_, name)| name.clone());
                self.note(*id, (Some(tile), column), (&place, cells), flaw)?;
            }
        }
    }

    /// Verifies the pages of some tiles and columns in parallel; returns the damaged ones with their errors, in the
    /// given order.
    fn pages(
        &mut self,
        pages: Vec<(u64, usize)>,
        check: impl Fn(&mut Page, (u64, usize)) -> Result<()> + Send + Sync,
    ) -> Result<Vec<(u64, usize, Error)>> {
        let context = self.context;
        let one = |(tile, field)| {
            let mut page = Page::default();
            page.flaw = check(&mut page, (tile, field)).err().map(damage_or).transpose()?;
            Ok((tile, field, page))
        };
        let mut damaged = Vec::new();
        for (tile, field, page) in context.pool.map(pages, context.cancel.as_ref(), one)? {
            self.report.blocks += page.blocks;
            self.report.bytes += page.bytes;
            damaged.extend(page.flaw.map(|flaw| (tile, field, flaw)));
        }
        Ok(damaged)
    }
}

/// The result for a page, which is the blocks of one column of a tile.
#[derive(Debug, Default)]
struct Page {
    blocks: u64,
    bytes: u64,
    flaw: Option<Error>,
}

impl Check<'_> {
    /// Verifies the index of an external fragment.
    fn page_tables(&mut self, fragment: &Arc<Fragment>) -> Result<()> {
        let Description { id, bounds, cells, .. } = fragment.description().as_ref();
        for (stripe, info) in fragment.root().stripes.iter().enumerate() {
            self.context.cancel.check()?;
            self.report.tiles += info.tiles;
            if let Err(error) = fragment.page_tables(stripe) {
                self.note(*id, (Some(fragment.first_tile(stripe)), None), (bounds, *cells), error)?;
            }
        }
        Ok(())
    }
}

impl Page {
    /// Reads and decodes the chunk of a column.
    fn check_foreign(
        &mut self,
        context: &ReadContext,
        source: &ExternalFragment,
        (tile, field): (u64, usize),
    ) -> Result<()> {
        let Some(bounds) = source.tile_box(tile) else { return Ok(()) };
        for part in source.parts_in(tile, &bounds)? {
            let block = source.block(field, part.block)?;
            Counters::add(&context.counters.requests, 1);
            let bytes = source.source().read_one(block.range)?;
            Counters::add(&context.counters.bytes_fetched, bytes.len() as u64);
            source.decode(&block, &bytes)?;
            self.blocks += 1;
            self.bytes += bytes.len() as u64;
        }
        Ok(())
    }

    /// Reads and decodes the blocks, adjacent ones together, up to the first damaged one.
    fn check(
        &mut self,
        context: &ReadContext,
        schema: &Schema,
        fragment: &Arc<Fragment>,
        (tile, field): (u64, usize),
    ) -> Result<()> {
        let cells = block_cells(schema, fragment, tile)?.into_iter().enumerate();
        let blocks = cells.map(|(block, cells)| fragment.block(field, tile, block, cells));
        let blocks = blocks.collect::<Result<Vec<BlockRef>>>()?;
        let mut rest = blocks.as_slice();
        while !rest.is_empty() {
            context.cancel.check()?;
            let mut bytes = 0u64;
            let fits = |block: &&BlockRef| {
                bytes = bytes.saturating_add(block.range.len);
                bytes <= READ_BYTES_MAX
            };
            let first = blocks.len() - rest.len();
            let (some, later) = rest.split_at(rest.iter().take_while(fits).count().clamp(1, rest.len()));
            rest = later;
            let ranges: Vec<ByteRange> = some.iter().map(|block| block.range).collect();
            Counters::add(&context.counters.requests, 1);
            for ((block, number), bytes) in some.iter().zip(first..).zip(fragment.source().submit(&ranges)?.wait()?) {
                context.cancel.check()?;
                self.blocks += 1;
                self.bytes += bytes.len() as u64;
                Counters::add(&context.counters.bytes_fetched, bytes.len() as u64);
                let column = fragment.decode(block, &bytes)?;
                check_bounds(schema, fragment, (tile, field, number), &column)?;
                check_values(fragment, field, &column)?;
            }
        }
        Ok(())
    }
}

/// Corruption if coordinates lie outside the MBR of their block, the `number`-th of a tile: reads would miss them.
fn check_bounds(
    schema: &Schema,
    fragment: &Arc<Fragment>,
    (tile, field, number): (u64, usize, usize),
    column: &Column,
) -> Result<()> {
    let Some(Role::Dimension(n)) = fragment.root().fields.get(field).map(|field| field.role) else { return Ok(()) };
    let wrong =
        || Error::corruption(format!("fragment {}: no block {number} in tile {tile}", fragment.description().id));
    let (stripe, local) = fragment.stripe_of(tile).ok_or_else(wrong)?;
    let stripe = fragment.stripe(stripe)?;
    let (from, _) = stripe.block_span(local).ok_or_else(wrong)?;
    let bounds = stripe.block_bounds(from + number).and_then(|bounds| bounds.ranges().nth(n as usize));
    let (bounds, dim) = bounds.zip(schema.dims().get(n as usize)).ok_or_else(wrong)?;
    match key::within(dim.datatype(), column.view().values(), bounds) {
        true => Ok(()),
        false => Err(outside_bounds(fragment, tile, dim)),
    }
}

/// Corruption if values lie beyond what the fragment's description says of them: conditions would miss them.
fn check_values(fragment: &Fragment, field: usize, column: &Column) -> Result<()> {
    match fragment.root().fields.get(field).map(|field| field.role) {
        Some(Role::Attribute(attr)) => fragment.description().stats.check(attr, column.view()),
        Some(Role::Dimension(_)) | None => Ok(()),
    }
}

/// The box of a tile (for sparse cells: around them) and its cells, if the index has them.
fn tile_place(schema: &Schema, fragment: &Arc<Fragment>, tile: u64) -> Option<(Subarray, u64)> {
    if fragment.description().kind == FragmentKind::Dense {
        let region = DenseFragment::new(fragment.clone(), schema).ok()?.tile_box(tile)?;
        let cells = u64::try_from(region.cells()).unwrap_or(u64::MAX);
        return Some((region, cells));
    }
    let (stripe, local) = fragment.stripe_of(tile)?;
    let stripe = fragment.stripe(stripe).ok()?;
    Some((stripe.tile_bounds(local)?.to_subarray(), stripe.tile_cells(local)?))
}

/// Returns the error itself if it is damage, else fails with it, also where a newer release wrote unknown data.
pub(super) fn damage_or(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::NotFound | ErrorKind::SourceChanged => Ok(error),
        _ => Err(error),
    }
}

fn columns(schema: &Schema, fragment: &Fragment) -> Vec<(usize, String)> {
    let name = |role| match role {
        Role::Dimension(n) => schema.dims().get(n as usize).map(|d| d.name().to_owned()),
        Role::Attribute(n) => schema.attr_by_id(n).map(|a| a.name().to_owned()),
    };
    let fields = fragment.root().fields.iter().enumerate();
    fields.map(|(i, f)| (i, name(f.role).unwrap_or_else(|| format!("column {i}")))).collect()
}

/// The number of cells in each block of a tile.
fn block_cells(schema: &Schema, fragment: &Arc<Fragment>, tile: u64) -> Result<Vec<usize>> {
    let wrong = || Error::corruption(format!("fragment {}: no tile {tile}", fragment.description().id));
    if fragment.description().kind != FragmentKind::Dense {
        let blocks = fragment.tile_blocks(tile)?;
        let (stripe, local) = fragment.stripe_of(tile).ok_or_else(wrong)?;
        let cells = fragment.stripe(stripe)?.tile_cells(local).ok_or_else(wrong)?;
        return Ok((0..blocks).map(|b| fragment.sparse_block_cells(cells, b)).collect());
    }
    let blocks = DenseFragment::new(fragment.clone(), schema)?.blocks(tile)?;
    Ok(blocks.into_iter().map(|block| block.cells).collect())
}
