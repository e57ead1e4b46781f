//! Reading around damage: what cannot be read of a box is found first, and then left out by the means that reads have.
//!
//! 1. Every block that the read would need is fetched, checked and decoded; so are masks and indexes.
//! 2. For what is damaged a *hole* is put among the fragments: a deletion of its box, which comes just after the damaged fragment. So older
//!    cells under it do not show through, newer ones stay, and a read never fetches what a hole covers.
//!
//! A hole of a dense fragment's block is that block's cells, in the attribute that is damaged. Else it takes all attributes: the MBR of a sparse
//! block, the tiles of an index that is damaged, the box of a fragment whose file or mask is, or of a manifest page.

use super::block::deletions::Deletions;
use super::block::masks::read_mask;
use super::block::open::open_fragment;
use super::block::sparse::{SparseBlock, fetch_coordinates, touched_blocks};
use super::request::{Area, ReadContext, Request, Target};
use crate::base::{Counters, Error, ErrorKind, Id, Result};
use crate::fragment::{BlockSource, Description, Fragment, FragmentKind, FragmentOrder, Role, StoredBlock, TileSource};
use crate::runtime::LruCache;
use crate::schema::{Schema, Subarray};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Tiles or blocks that one task looks at.
const TASK_PARTS: usize = 16;

/// Something of a box that was left out because it is damaged.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// The damaged fragment, or the one under a damaged mask; `None`: all that a manifest page tells of.
    pub fragment: Option<Id>,
    /// The data tile, where only that.
    pub tile: Option<u64>,
    /// The attribute (of sparse cells also the dimension) that is damaged; `None`: all of the cells.
    pub column: Option<String>,
    /// The box of what was left out, within the one asked for.
    pub bounds: Subarray,
    /// How many cells of the fragment at most.
    pub cells: u64,
    /// What is wrong.
    pub message: String,
}

/// A manifest page that cannot be read: its box, the order that comes after all fragments in it, and what is wrong.
pub type LostPage = (Subarray, FragmentOrder, Error);

/// A read with holes in the place of what is damaged.
#[derive(Debug)]
pub struct Around {
    /// What to read with: it holds no overlay, so that nothing is decoded that the box does not need.
    pub context: ReadContext,
    /// What to read.
    pub target: Target,
    /// What is left out.
    pub skipped: Vec<Skipped>,
}

/// Whether an error tells of damage around which can be read.
pub fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotFound)
}

/// Looks at all that a read of `request` needs, with the attributes at the places `also` besides those asked for, and plans it around
/// what is damaged.
///
/// # Errors
/// Those that are not of damage: Storage, Access, Cancelled; SnapshotExpired if what is missing was vacuumed.
pub fn around(
    context: &ReadContext,
    target: &Target,
    request: &Request,
    also: &[usize],
    pages: Vec<LostPage>,
) -> Result<Around> {
    let context = ReadContext { cache: Arc::new(LruCache::new(0)), ..context.clone() };
    let places: HashSet<usize> = request.attrs.iter().chain(also).copied().collect();
    let attrs = places.iter().filter_map(|place| target.schema.attrs().get(*place)).map(|a| a.id()).collect();
    let deletions = Deletions::of(&target.fragments, &request.sub);
    let mut look = Look {
        context: &context,
        target,
        sub: &request.sub,
        area: request.area(),
        attrs,
        deletions,
        explained: AtomicBool::new(false),
        found: Vec::new(),
        lost: HashSet::new(),
    };
    for (bounds, order, error) in pages {
        let cells = cells_of(&bounds);
        look.found.push(Hole {
            fragment: None,
            after: order,
            tile: None,
            attr: None,
            column: None,
            bounds,
            cells,
            message: error.to_string(),
        });
    }
    look.masks()?;
    for description in &target.fragments {
        look.fragment(description)?;
    }
    let Look { found, lost, .. } = look;
    let mut fragments: Vec<Arc<Description>> =
        target.fragments.iter().filter(|d| !lost.contains(&d.id)).cloned().collect();
    fragments.extend(found.iter().map(Hole::description));
    fragments.sort_by_key(|d| d.order);
    let skipped = found.into_iter().filter_map(|hole| hole.told(&request.sub)).collect();
    Ok(Around { context, target: Target { fragments, ..target.clone() }, skipped })
}

/// What is damaged, and what has to be left out with it.
#[derive(Debug)]
struct Hole {
    fragment: Option<Id>,
    /// The order that it comes at: older cells are left out.
    after: FragmentOrder,
    tile: Option<u64>,
    /// The one attribute that it is about.
    attr: Option<u32>,
    column: Option<String>,
    bounds: Subarray,
    cells: u64,
    message: String,
}

impl Hole {
    fn description(&self) -> Arc<Description> {
        let deletion = Description::deletion(Id([0; 16]), 0, self.bounds.clone());
        Arc::new(Description { order: self.after, attrs: self.attr.into_iter().collect(), ..deletion })
    }

    fn told(self, sub: &Subarray) -> Option<Skipped> {
        let Self { fragment, tile, column, bounds, cells, message, .. } = self;
        Some(Skipped { fragment, tile, column, bounds: bounds.intersect(sub)?, cells, message })
    }
}

/// The order just after `order`.
fn next(order: FragmentOrder) -> FragmentOrder {
    match order.index.checked_add(1) {
        Some(index) => FragmentOrder { index, ..order },
        None => FragmentOrder { version: order.version.saturating_add(1), index: 0 },
    }
}

/// How many cells a box has, as far as 64 bits count them.
fn cells_of(bounds: &Subarray) -> u64 {
    u64::try_from(bounds.cells()).unwrap_or(u64::MAX)
}

struct Look<'a> {
    context: &'a ReadContext,
    target: &'a Target,
    sub: &'a Subarray,
    /// What is wanted of it, of a sparse array.
    area: Area<'a>,
    /// The attributes needed, by permanent number.
    attrs: Vec<u32>,
    deletions: Deletions,
    /// Whether it was asked if what is missing was vacuumed.
    explained: AtomicBool,
    found: Vec<Hole>,
    /// Fragments and masks that are not read at all.
    lost: HashSet<Id>,
}

impl Look<'_> {
    /// The message of an error of damage; other errors are passed on. What is missing because its version was vacuumed is no damage: one answer
    /// serves for all.
    fn damage(&self, error: Error) -> Result<String> {
        if !is_damage(&error) {
            return Err(error);
        }
        if self.explained.swap(true, Relaxed) {
            return Ok(error.to_string());
        }
        let error = self.context.files.explain(error);
        if is_damage(&error) { Ok(error.to_string()) } else { Err(error) }
    }

    /// The hole of a whole fragment, which is not read.
    fn lose(&mut self, description: &Description, message: String) {
        self.lost.insert(description.id);
        let hole = self.hole(description, (None, None), (description.bounds.clone(), description.cells), message);
        self.found.push(hole);
    }

    fn hole(
        &self,
        description: &Description,
        (tile, column): (Option<u64>, Option<Role>),
        (bounds, cells): (Subarray, u64),
        message: String,
    ) -> Hole {
        let schema = &self.target.schema;
        let name = |role| match role {
            Role::Dimension(n) => schema.dims().get(n as usize).map(|d| d.name().to_owned()),
            Role::Attribute(n) => schema.attr_by_id(n).map(|a| a.name().to_owned()),
        };
        let attr = match column {
            Some(Role::Attribute(attr)) if description.kind == FragmentKind::Dense => Some(attr),
            _ => None,
        };
        let (fragment, after, column) = (Some(description.id), next(description.order), column.and_then(name));
        Hole { fragment, after, tile, attr, column, bounds, cells, message }
    }

    /// Where a mask is damaged nobody knows which rows of its fragment were deleted: none is read.
    fn masks(&mut self) -> Result<()> {
        let target = self.target;
        for mask in target.fragments.iter().filter(|d| d.kind == FragmentKind::Mask) {
            self.context.cancel.check()?;
            let Some(over) = target.fragments.iter().find(|d| Some(d.id) == mask.over) else { continue };
            if let Err(error) = read_mask(self.context, mask, (over.id, over.cells)) {
                let message = self.damage(error)?;
                self.lost.insert(mask.id);
                self.lose(over, message);
            }
        }
        Ok(())
    }

    fn fragment(&mut self, description: &Arc<Description>) -> Result<()> {
        let stored = description.kind.holds_cells() || description.kind == FragmentKind::Tombstones;
        if !stored || self.lost.contains(&description.id) || !self.deletions.leave(description, self.sub) {
            return Ok(());
        }
        self.context.cancel.check()?;
        let looked =
            open_fragment(self.context, &self.target.schema, description).and_then(|fragment| match description.kind {
                FragmentKind::Dense => {
                    self.context.tiles.of(fragment, &self.target.schema).and_then(|source| self.dense(source.as_ref()))
                }
                _ => self.sparse(&fragment),
            });
        match looked {
            Ok(holes) => self.found.extend(holes),
            Err(error) => {
                let message = self.damage(error)?;
                let hidden = description.bounds.intersect(self.sub).is_some_and(|part| self.hidden(description, &part));
                if hidden {
                    self.lost.insert(description.id);
                } else {
                    self.lose(description, message);
                }
            }
        }
        Ok(())
    }

    /// Whether newer dense fragments or a deletion hide all that is needed of a dense fragment in `part`, so that it is not read there.
    fn hidden(&self, description: &Description, part: &Subarray) -> bool {
        let dense = description.kind == FragmentKind::Dense;
        let over = |attr: &u32| {
            let hides = |d: &Arc<Description>| {
                let newer = d.order > description.order && d.kind == FragmentKind::Dense && !self.lost.contains(&d.id);
                newer && d.attrs.contains(attr) && d.bounds.covers(part)
            };
            !description.attrs.contains(attr) || self.target.fragments.iter().any(hides)
        };
        self.deletions.cover(description.order, part) || (dense && self.attrs.iter().all(over))
    }

    fn dense(&self, source: &dyn TileSource) -> Result<Vec<Hole>> {
        let tiles: Vec<u64> = source.tiles_in(self.sub).collect();
        let tasks: Vec<&[u64]> = tiles.chunks(TASK_PARTS).collect();
        let look = |tiles: &[u64]| {
            let mut holes = Vec::new();
            for tile in tiles {
                self.context.cancel.check()?;
                if let Some(tile_box) = source.tile_box(*tile) {
                    self.dense_tile(source, *tile, &tile_box, &mut holes)?;
                }
            }
            Ok(holes)
        };
        let holes = self.context.pool.map(tasks, self.context.cancel.as_ref(), look)?;
        Ok(holes.into_iter().flatten().collect())
    }

    fn dense_tile(&self, source: &dyn TileSource, tile: u64, whole: &Subarray, holes: &mut Vec<Hole>) -> Result<()> {
        let description = source.description();
        let Some(part) = whole.intersect(self.sub).filter(|part| !self.hidden(description, part)) else {
            return Ok(());
        };
        let parts = match source.parts_in(tile, &part) {
            Ok(parts) => parts,
            Err(error) => {
                let place = (whole.clone(), cells_of(whole));
                holes.push(self.hole(description, (Some(tile), None), place, self.damage(error)?));
                return Ok(());
            }
        };
        for part in parts {
            for attr in &self.attrs {
                let role = Role::Attribute(*attr);
                if let Err(error) = self.decode(source, role, part.block) {
                    let bounds = source.block_box(part.block).unwrap_or_else(|| part.region.clone());
                    let cells = cells_of(&bounds);
                    let column = (Some(tile), Some(role));
                    holes.push(self.hole(description, column, (bounds, cells), self.damage(error)?));
                }
            }
        }
        Ok(())
    }

    fn sparse(&self, fragment: &Arc<Fragment>) -> Result<Vec<Hole>> {
        let mut blocks = Vec::new();
        let order = fragment.description().order;
        touched_blocks(self.context, fragment, self.area, |at, _| {
            if !self.deletions.cover(order, &at.bounds) {
                blocks.push(at);
            }
        })?;
        let tasks: Vec<&[SparseBlock]> = blocks.chunks(TASK_PARTS).collect();
        let look = |blocks: &[SparseBlock]| {
            let mut holes = Vec::new();
            for at in blocks {
                self.context.cancel.check()?;
                if let Err((column, error)) = self.sparse_block(fragment, at) {
                    let (place, message) = ((at.bounds.clone(), at.cells as u64), self.damage(error)?);
                    holes.push(self.hole(fragment.description(), (Some(at.tile), column), place, message));
                }
            }
            Ok(holes)
        };
        let holes = self.context.pool.map(tasks, self.context.cancel.as_ref(), look)?;
        Ok(holes.into_iter().flatten().collect())
    }

    fn sparse_block(
        &self,
        fragment: &Arc<Fragment>,
        at: &SparseBlock,
    ) -> std::result::Result<(), (Option<Role>, Error)> {
        let place = StoredBlock { tile: at.tile, number: at.block, cells: at.cells };
        let dims = (0..self.target.schema.ndim() as u32).map(Role::Dimension);
        for role in dims.chain(self.attrs.iter().map(|attr| Role::Attribute(*attr))) {
            self.decode(fragment.as_ref(), role, place).map_err(|error| (Some(role), error))?;
        }
        let schema: &Arc<Schema> = &self.target.schema;
        let coordinates = fetch_coordinates(self.context, schema, &[(fragment, at)], false);
        coordinates.map(drop).map_err(|error| (None, error))
    }

    /// Reads a block and lets it go again; nothing if the source has no such field.
    fn decode(&self, source: &dyn BlockSource, role: Role, block: StoredBlock) -> Result<()> {
        let Some(field) = source.field(role) else { return Ok(()) };
        let block = source.block(field, block)?;
        Counters::add(&self.context.counters.requests, 1);
        Counters::add(&self.context.counters.bytes_fetched, block.range.len);
        let bytes = source.source().read_one(block.range)?;
        let column = source.decode(&block, &bytes)?;
        Counters::add(&self.context.counters.blocks_decoded, 1);
        Counters::add(&self.context.counters.bytes_decoded, column.size_bytes() as u64);
        Ok(())
    }
}
