//! Reads and decodes every block of every fragment and reports what is damaged instead of stopping at it.

use crate::base::{ByteRange, Counters, Error, ErrorKind, Id, Result, id_named_twice};
use crate::fragment::{BlockRef, DenseFragment, Description, Fragment, FragmentKind, Role, TileSource};
use crate::query::{ReadContext, open_uncached, outside_bounds, read_mask};
use crate::schema::{Schema, Subarray, key};
use crate::tile::Column;
use std::collections::HashMap;
use std::sync::Arc;

/// One damaged place.
#[derive(Debug, Clone)]
pub struct Damage {
    /// The fragment.
    pub fragment: Id,
    /// The data tile in it, where known.
    pub tile: Option<u64>,
    /// The dimension or attribute, where known.
    pub column: Option<String>,
    /// The box of the cells that it may affect, in texts: low and high per dimension, inclusive.
    pub domain: Vec<(String, String)>,
    /// How many cells it affects at most.
    pub cells: u64,
    /// What is wrong.
    pub message: String,
}

/// What was checked and what was found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Fragments looked at.
    pub fragments: u64,
    /// Data tiles looked at.
    pub tiles: u64,
    /// Blocks decoded.
    pub blocks: u64,
    /// Stored bytes read.
    pub bytes: u64,
    /// What is damaged; empty if all is well.
    pub damage: Vec<Damage>,
}

/// Pages that are read and decoded side by side before it is told how far the check is, for each thread.
const PAGES_PER_THREAD: usize = 16;

/// Stored bytes that each thread reads at once: of a bucket a page is few requests, and little memory is held.
const READ_BYTES_MAX: u64 = 4 << 20;

/// How far a check is: bytes of fragments, as they are stored.
#[derive(Debug)]
pub(super) struct Meter {
    done: u64,
    total: u64,
}

impl Meter {
    /// Of a check of all of `fragments`.
    pub(super) fn of<'a>(fragments: impl Iterator<Item = &'a Arc<Description>>) -> Self {
        Self { done: 0, total: fragments.map(|d| d.location.len).fold(0, u64::saturating_add) }
    }

    /// Tells of `bytes` of the fragment that is being checked.
    fn tell(&self, context: &ReadContext, bytes: u64) {
        context.progress.report(self.done.saturating_add(bytes).min(self.total), self.total);
    }

    /// A fragment is checked, or will not be.
    pub(super) fn pass(&mut self, context: &ReadContext, fragment: &Description) {
        self.done = self.done.saturating_add(fragment.location.len);
        self.tell(context, 0);
    }
}

/// Checks every byte of `fragments`, by all threads. Damage and missing files go into the report; any other error (of the storage, or
/// being stopped, or that a newer release wrote a fragment, or a user-defined filter is not registered) ends the check. Progress counts stored bytes.
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

/// As [`verify`]; `cells` are those of all fragments of the array, over which masks may lie.
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

/// A check under way.
struct Check<'a> {
    context: &'a ReadContext,
    schema: &'a Schema,
    /// Cells of the fragments over which masks may lie.
    cells: &'a HashMap<Id, u64>,
    report: VerifyReport,
}

impl Check<'_> {
    /// Reports `error` if it tells of damage, else passes it on.
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
        // Not from the cache: what matters is what lies in the files now.
        match open_uncached(self.context, self.schema, description) {
            Ok(fragment) => {
                // What lacks a filter is not damaged, and nobody can say that it is not.
                fragment.check_filters().map_err(|e| e.context(format!("fragment {}", description.id)))?;
                self.fragment(&Arc::new(fragment), meter)
            }
            Err(error) => self.note(description.id, (None, None), (&description.bounds, description.cells), error),
        }
    }

    /// A mask is checked whole, against the fragment that it lies over.
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

    /// Stripe by stripe: where the index of one is damaged, that is reported once, and its tiles cannot be found.
    fn fragment(&mut self, fragment: &Arc<Fragment>, meter: &Meter) -> Result<()> {
        let Description { id, bounds, cells, .. } = fragment.description().as_ref();
        let (id, whole, before) = (*id, (bounds, *cells), self.report.bytes);
        let columns = columns(self.schema, fragment);
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
            // The column runs fastest: pages of a tile lie side by side.
            let mut pages =
                (first..first + info.tiles).flat_map(|tile| (0..columns.len()).map(move |field| (tile, field)));
            loop {
                let some: Vec<_> = pages.by_ref().take(PAGES_PER_THREAD * self.context.pool.threads()).collect();
                if some.is_empty() {
                    break;
                }
                for (tile, field, flaw) in self.pages(fragment, some)? {
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

    /// Checks the pages of some tiles and columns side by side; gives the damaged ones and what is wrong with them, in the order given.
    fn pages(&mut self, fragment: &Arc<Fragment>, pages: Vec<(u64, usize)>) -> Result<Vec<(u64, usize, Error)>> {
        let (context, schema) = (self.context, self.schema);
        let one = |(tile, field)| {
            let mut page = Page::default();
            let checked = page.check(context, schema, fragment, (tile, field));
            page.flaw = checked.err().map(damage_or).transpose()?;
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

/// What the check of a page, the blocks of one column of a tile, came to.
#[derive(Debug, Default)]
struct Page {
    blocks: u64,
    bytes: u64,
    flaw: Option<Error>,
}

impl Page {
    /// Reads and decodes the blocks, neighbours together, up to the first that is damaged.
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
                check_bounds(schema, fragment, (tile, field, number), &fragment.decode(block, &bytes)?)?;
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

/// The box of a tile (of cells with coordinates: around them) and its cells, if the index tells them.
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

/// The error itself if it tells of damage, else it is passed on: also where a newer release wrote what is not known.
pub(super) fn damage_or(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::NotFound => Ok(error),
        _ => Err(error),
    }
}

fn columns(schema: &Schema, fragment: &Fragment) -> Vec<(usize, String)> {
    let name = |role| match role {
        Role::Dimension(n) => schema.dims().get(n as usize).map(|d| d.name().to_owned()),
        Role::Attribute(n) => schema.attr_by_id(n).map(|a| a.name().to_owned()),
    };
    let fields = fragment.root().fields.iter().enumerate();
    fields.map(|(i, f)| (i, name(f.role).unwrap_or_else(|| format!("{:?}", f.role)))).collect()
}

/// How many cells every block of a tile holds.
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
