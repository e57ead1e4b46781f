//! The cells of fragments written anew as fragments of cells: the sparse half of a merge.
//!
//! 1. The cells stream from a sweep of the fragments in global order; between them come tiles that are copied as they are
//!    stored.
//! 2. They are cut into tiles, which other threads gather and encode while the next ones are merged here.
//! 3. The tiles go in their order into fragments of about the size asked for.
//!
//! Memory holds a batch of the sweep, the tiles under way with the decoded blocks that their cells lie in, and the writer's stripe.

use super::input::{Piece, Sweeper};
use crate::base::{Budget, Result};
use crate::fragment::{EncodedTile, FragmentKind, Staged};
use crate::query::cells::merged_rows::Stretches;
use crate::query::request::{BudgetHold, ReadContext, ReadOrder, Request, Target, WriteContext};
use crate::query::write::dense::fields_and_packing;
use crate::query::write::pipelines::{ChoicesAhead, Settles, Step, encoded_and_waiting};
use crate::query::write::stage::Stage;
use crate::query::write::tiler::{Cutter, Merged, RawTile, Settling, TileForm};
use std::collections::VecDeque;
use std::sync::Arc;

/// A tile on its way: to be encoded, or as it is stored elsewhere.
enum Tile {
    Raw(RawTile<Merged>),
    Stored(Box<EncodedTile>),
}

/// A tile, whether a fragment begins with it, and the memory that it takes.
struct Job<'a> {
    tile: Tile,
    begins: bool,
    held: BudgetHold<'a>,
}

/// A tile encoded, whether a fragment begins with it, and the memory that it takes.
type Encoded<'a> = (EncodedTile, bool, BudgetHold<'a>);

fn take<'a>(step: Step<Job<'a>>, form: &TileForm) -> Result<Option<Encoded<'a>>> {
    step.done(|choice| _ = form.settle(&choice), |job| job.encode(form))
}

impl<'a> Job<'a> {
    fn encode(self, form: &TileForm) -> Result<Encoded<'a>> {
        let tile = match self.tile {
            Tile::Raw(raw) => form.encode(raw)?,
            Tile::Stored(tile) => *tile,
        };
        Ok((tile, self.begins, self.held))
    }
}

impl Settles for Job<'_> {
    type Choice = Arc<Settling<Merged>>;

    fn choice(&self) -> Option<Arc<Settling<Merged>>> {
        match &self.tile {
            Tile::Raw(raw) => raw.choice(),
            Tile::Stored(_) => None,
        }
    }
}

/// What is written anew.
#[derive(Debug)]
pub struct RewriteCells<'a> {
    /// The array, and the fragments with the cells.
    pub target: &'a Target,
    /// The attributes' places in the schema, ascending.
    pub places: Vec<usize>,
    /// Cells after which a fragment ends, about.
    pub cells_max: u64,
}

/// Writes cells anew; `done` gets the fragments, which are staged and have no order yet, after an error too.
///
/// # Errors
/// Corruption, Storage, Cancelled.
pub fn rewrite_cells(
    read: &ReadContext,
    write: &WriteContext<'_>,
    job: &RewriteCells<'_>,
    done: &mut Vec<Staged>,
) -> Result<()> {
    let (schema, kind) = (&job.target.schema, FragmentKind::Sparse);
    let ids: Vec<u32> = job.places.iter().filter_map(|p| schema.attrs().get(*p)).map(|a| a.id()).collect();
    // How many cells will come is not known: they are taken for many.
    let (fields, packing) = fields_and_packing(write, schema, kind, &ids, usize::MAX);
    let form = TileForm {
        fields,
        packing: packing.exact(),
        block_cells: write.blocks.sparse,
        room_bytes: write.blocks.room_bytes,
    };
    let request = Request::of_box(schema.domain(), job.places.clone(), ReadOrder::Global);
    let cutter = Cutter::of_merged(job.target, &request, form.clone());
    let source = Source::new(read, job, Sweeper::new(read, job.target, &request, &form)?, cutter);
    let (encoded, waiting) = encoded_and_waiting(tiles_ahead(read, job), read.pool.threads());
    let mut stage: Option<Stage> = None;
    let (mut cells, all) = (0u64, job.target.fragments.iter().map(|d| d.cells).sum());
    let put = |encoded: Option<Encoded<'_>>| {
        let Some((tile, begins, held)) = encoded else { return Ok(()) };
        if begins && let Some(full) = stage.take() {
            done.push(full.finish()?);
        }
        cells += tile.cells;
        let open = match stage.take() {
            Some(open) => open,
            None => Stage::new(write, schema, kind, ids.clone(), &schema.domain())?,
        };
        stage.insert(open).push(tile)?;
        drop(held);
        write.progress.report(cells, cells.max(all));
        Ok(())
    };
    read.pool.pipe(ChoicesAhead::new(source, waiting), encoded, write.cancel, |step| take(step?, &form), put)?;
    done.extend(stage.map(Stage::finish).transpose()?);
    Ok(())
}

/// As many tiles as keep every thread busy while the next cells are loaded and merged, within a quarter of the budget, at least one.
fn tiles_ahead(read: &ReadContext, job: &RewriteCells<'_>) -> usize {
    let tile = job.target.schema.options().capacity.saturating_mul(2 * job.target.row_bytes()).max(1);
    (read.budget.limit_bytes() / 4 / tile).clamp(1, read.pool.threads() as u64 * 6) as usize
}

/// Cuts what a sweep gives into tiles, and says where a fragment ends.
struct Source<'a> {
    pieces: Sweeper,
    cutter: Cutter<Merged>,
    budget: &'a Budget,
    row_bytes: u64,
    cells_max: u64,
    /// Cells of the fragment so far.
    cells: u64,
    /// The coordinates of the last cell, if more at its place may come.
    last: Option<Vec<u64>>,
    /// Whether the next tile begins a fragment.
    begins: bool,
    /// Cells not cut yet.
    current: Stretches,
    ready: VecDeque<Job<'a>>,
    ended: bool,
}

impl<'a> Source<'a> {
    fn new(read: &'a ReadContext, job: &RewriteCells<'_>, pieces: Sweeper, cutter: Cutter<Merged>) -> Self {
        Self {
            pieces,
            cutter,
            budget: &read.budget,
            row_bytes: job.target.row_bytes(),
            cells_max: job.cells_max,
            cells: 0,
            last: None,
            begins: false,
            current: Stretches::default(),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    fn job(&mut self) -> Result<Option<Job<'a>>> {
        loop {
            if let Some(job) = self.ready.pop_front() {
                return Ok(Some(job));
            }
            if !self.current.is_empty() {
                let tile = self.cutter.take(&mut self.current)?;
                self.push_raw(tile);
            } else if self.ended {
                return Ok(None);
            } else {
                match self.pieces.next_piece()? {
                    Some(piece) => self.begin(piece),
                    None => {
                        self.ended = true;
                        self.rest();
                    }
                }
            }
        }
    }

    fn begin(&mut self, piece: Piece) {
        // Cells at one place stay in one fragment: those of two fragments of one order would stand in no order.
        if self.cells >= self.cells_max && !continues(self.last.as_deref(), &piece) {
            self.rest();
            (self.begins, self.cells) = (true, 0);
        }
        self.cells += piece.cells();
        match piece {
            Piece::Cells(cells) => {
                self.last = cells.last_place();
                self.current = cells;
            }
            // A tile that is copied has no cell in common with what follows.
            Piece::Tile(tile) => {
                self.rest();
                self.last = None;
                let bytes = tile.cells.saturating_mul(2 * self.row_bytes);
                self.push(Tile::Stored(tile), bytes);
            }
        }
    }

    fn rest(&mut self) {
        let rest = self.cutter.rest();
        self.push_raw(rest);
    }

    fn push_raw(&mut self, tile: Option<RawTile<Merged>>) {
        if let Some(tile) = tile {
            // The chunks that hold the cells, or they themselves encoded, and they gathered.
            let cells = (tile.len() as u64).saturating_mul(self.row_bytes);
            let bytes = tile.kept_bytes().max(cells).saturating_add(cells);
            self.push(Tile::Raw(tile), bytes);
        }
    }

    fn push(&mut self, tile: Tile, bytes: u64) {
        let held = BudgetHold::take(self.budget, bytes);
        self.ready.push_back(Job { tile, begins: std::mem::take(&mut self.begins), held });
    }
}

impl<'a> Iterator for Source<'a> {
    type Item = Result<Job<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.job().transpose();
        if let Some(Err(_)) = &next {
            (self.ended, self.current) = (true, Stretches::default());
        }
        next
    }
}

/// Whether a piece begins at the place where the one before ended.
fn continues(last: Option<&[u64]>, piece: &Piece) -> bool {
    let (Some(last), Piece::Cells(cells)) = (last, piece) else { return false };
    cells.first_place().as_deref() == Some(last)
}
