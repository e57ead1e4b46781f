//! Columns of a run: all rows of some of its blocks, or some rows of each.
//!
//! 1. Plain columns (of fixed width, without nulls, in the fragment) have their memory, and each block of them its place there. Of others each
//!    block is a piece, and the pieces are joined at the end.
//! 2. Of a near source neighbouring blocks of plain columns are read and decoded at once, then the pieces of all others are fetched together.
//!    Of a far one all blocks of all columns are asked for at once, and decoded side by side.

use super::buffers;
use super::run::{Part, Run};
use crate::base::{AlignedBuf, Counters, Error, Result};
use crate::fragment::{BlockRef, Role};
use crate::query::block::coalesced::CoalescedReads;
use crate::query::block::sparse::SparseBlock;
use crate::query::request::is_deliverable;
use crate::query::select::candidates::BlockRole;
use crate::schema::{Attribute, Datatype};
use crate::tile::Column;

/// A column that is asked for.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    /// The coordinates of the dimension of this number.
    Dim(u32, Datatype),
    /// The attribute at this place in the schema.
    Attr(usize, &'a Attribute),
}

impl Asked<'_> {
    fn role(&self) -> Role {
        match self {
            Self::Dim(number, _) => Role::Dimension(*number),
            Self::Attr(_, attr) => Role::Attribute(attr.id()),
        }
    }

    fn datatype(&self) -> Datatype {
        match self {
            Self::Dim(_, datatype) => *datatype,
            Self::Attr(_, attr) => attr.datatype(),
        }
    }

    fn width(&self) -> usize {
        self.datatype().width().unwrap_or(1)
    }
}

/// The cells of a block that are asked for.
#[derive(Clone, Copy)]
struct Cut<'a> {
    at: &'a SparseBlock,
    /// The number of the block's first row.
    start: usize,
    /// Those that are wanted; `None`: all.
    rows: Option<&'a [u32]>,
    /// Whether attributes are read; coordinates always are.
    is_read: bool,
}

impl<'a> Cut<'a> {
    fn of(part: &Part<'a>) -> Self {
        let Part { unit, start, rows } = *part;
        Self { at: &unit.at, start, rows: (rows.len() < unit.at.cells).then_some(rows), is_read: true }
    }

    fn count(&self) -> usize {
        self.rows.map_or(self.at.cells, <[u32]>::len)
    }

    /// Whether this block of a column is read.
    fn reads(&self, asked: &Asked<'_>) -> bool {
        self.is_read || matches!(asked, Asked::Dim(..))
    }

    /// The wanted cells of the whole block.
    fn picked(&self, column: Column) -> Column {
        let Some(rows) = self.rows else { return column };
        let mine: Vec<u32> = rows.iter().map(|row| row - self.start as u32).collect();
        column.view().gather(&mine)
    }
}

/// What becomes of a column.
enum Place {
    Plain(AlignedBuf),
    /// Block by block; `None`: blank.
    Pieces(Vec<Option<Column>>),
}

/// What becomes of a block.
enum Out<'a> {
    Plain(&'a mut [u8]),
    Piece(&'a mut Option<Column>),
}

/// A block of a column that is to be read.
struct Wanted<'a> {
    block: BlockRef,
    width: usize,
    cut: Cut<'a>,
    out: Out<'a>,
}

impl<'a> Run<'a> {
    /// Columns of all rows of the run: coordinates, and attributes of the blocks that `reads` says; what stands in other rows is anything.
    pub(super) fn read_whole(&self, asked: &[Asked<'_>], reads: impl Fn(&BlockRole) -> bool) -> Result<Vec<Column>> {
        let (mut cuts, mut start) = (Vec::with_capacity(self.items.len()), 0);
        for (unit, duty) in self.items {
            cuts.push(Cut { at: &unit.at, start, rows: None, is_read: reads(duty) });
            start += unit.at.cells;
        }
        self.read(asked, &cuts, buffers::lend)
    }

    /// Columns of the cells `rows`.
    pub(super) fn read_rows(&self, asked: &[Asked<'_>], rows: &[u32]) -> Result<Vec<Column>> {
        let cuts: Vec<Cut<'_>> = self.parts(rows).iter().map(Cut::of).collect();
        self.read(asked, &cuts, AlignedBuf::try_zeroed)
    }

    fn read(
        &self,
        asked: &[Asked<'_>],
        cuts: &[Cut<'_>],
        memory: impl Fn(usize) -> Result<AlignedBuf>,
    ) -> Result<Vec<Column>> {
        let cells: usize = cuts.iter().map(Cut::count).sum();
        let place = |asked: &Asked<'_>| match self.is_plain(asked) {
            true => memory(cells * asked.width()).map(Place::Plain),
            false => Ok(Place::Pieces(cuts.iter().map(|_| None).collect())),
        };
        let mut places = asked.iter().map(place).collect::<Result<Vec<_>>>()?;
        let mut near = CoalescedReads::new();
        for (asked, place) in asked.iter().zip(&mut places) {
            match place {
                Place::Plain(buffer) => self.want_plain(asked, cuts, buffer, &mut near)?,
                Place::Pieces(pieces) if self.sieve.is_far() => self.want_pieces(asked, cuts, pieces, &mut near)?,
                Place::Pieces(_) => {}
            }
        }
        self.decode(near)?;
        if !self.sieve.is_far() {
            self.fetch_pieces(asked, cuts, &mut places)?;
        }
        asked.iter().zip(places).map(|(asked, place)| made(asked, cuts, place)).collect()
    }

    /// Whether the fragment has a column, and its cells need nothing but their bytes.
    fn is_plain(&self, asked: &Asked<'_>) -> bool {
        match asked {
            Asked::Dim(..) => true,
            Asked::Attr(_, attr) => is_deliverable(attr) && self.fragment.field(asked.role()).is_some(),
        }
    }

    fn want_plain<'w>(
        &self,
        asked: &Asked<'_>,
        cuts: &[Cut<'w>],
        buffer: &'w mut AlignedBuf,
        near: &mut CoalescedReads<Wanted<'w>>,
    ) -> Result<()> {
        let (field, width) = (self.fragment.promised_field(asked.role())?, asked.width());
        let mut rest = buffer.as_mut_slice();
        for cut in cuts {
            let (out, later) = rest.split_at_mut((cut.count() * width).min(rest.len()));
            rest = later;
            if cut.reads(asked) {
                let block = self.fragment.block(field, cut.at.tile, cut.at.block, cut.at.cells)?;
                near.push(block.range, Wanted { block, width, cut: *cut, out: Out::Plain(out) });
            }
        }
        Ok(())
    }

    fn want_pieces<'w>(
        &self,
        asked: &Asked<'_>,
        cuts: &[Cut<'w>],
        pieces: &'w mut [Option<Column>],
        near: &mut CoalescedReads<Wanted<'w>>,
    ) -> Result<()> {
        // An attribute that came after the fragment is blank in it.
        let Some(field) = self.fragment.field(asked.role()) else { return Ok(()) };
        for (cut, piece) in cuts.iter().zip(pieces).filter(|(cut, _)| cut.reads(asked)) {
            let block = self.fragment.block(field, cut.at.tile, cut.at.block, cut.at.cells)?;
            near.push(block.range, Wanted { block, width: asked.width(), cut: *cut, out: Out::Piece(piece) });
        }
        Ok(())
    }

    /// The pieces of all columns that are not plain, in one go.
    fn fetch_pieces(&self, asked: &[Asked<'_>], cuts: &[Cut<'_>], places: &mut [Place]) -> Result<()> {
        let (mut attrs, mut columns) = (Vec::new(), Vec::new());
        for (asked, place) in asked.iter().zip(places) {
            if let (Asked::Attr(at, _), Place::Pieces(pieces)) = (asked, place)
                && self.fragment.field(asked.role()).is_some()
            {
                attrs.push(*at);
                columns.push(pieces);
            }
        }
        if attrs.is_empty() {
            return Ok(());
        }
        let read = || cuts.iter().enumerate().filter(|(_, cut)| cut.is_read);
        let blocks: Vec<&SparseBlock> = read().map(|(_, cut)| cut.at).collect();
        for ((at, cut), found) in read().zip(self.sieve.values(self.fragment, &attrs, &blocks)?) {
            for (pieces, column) in columns.iter_mut().zip(found) {
                if let Some(piece) = pieces.get_mut(at) {
                    *piece = Some(cut.picked(column));
                }
            }
        }
        Ok(())
    }

    fn decode(&self, near: CoalescedReads<Wanted<'_>>) -> Result<()> {
        let context = &self.sweep().context;
        if self.sieve.is_far() {
            let one = |wanted: Wanted<'_>, bytes: &[u8], decoded: &mut Vec<u8>| {
                self.decode_block(wanted, bytes, decoded, &mut Vec::new())
            };
            return near.read_side_by_side(context, self.fragment.as_ref(), one);
        }
        let mut mine = Vec::new();
        near.read(context, self.fragment.as_ref(), |wanted, bytes, decoded| {
            self.decode_block(wanted, bytes, decoded, &mut mine)
        })
    }

    /// Decodes a block; `decoded` and `mine` are scratch memory.
    fn decode_block(&self, wanted: Wanted<'_>, bytes: &[u8], decoded: &mut Vec<u8>, mine: &mut Vec<u32>) -> Result<()> {
        let (Wanted { block, width, cut, out }, counters) = (wanted, &self.sweep().context.counters);
        let out = match out {
            Out::Plain(out) => out,
            Out::Piece(piece) => {
                let column = self.fragment.decode(&block, bytes)?;
                Counters::add(&counters.bytes_decoded, column.size_bytes() as u64);
                *piece = Some(cut.picked(column));
                return Ok(());
            }
        };
        Counters::add(&counters.bytes_decoded, (block.cells() * width) as u64);
        let Some(rows) = cut.rows else { return self.fragment.decode_into(&block, bytes, out) };
        mine.clear();
        mine.extend(rows.iter().map(|row| row - cut.start as u32));
        self.fragment.decode_rows_into(&block, bytes, mine, decoded, out)
    }
}

/// The column of what was read.
fn made(asked: &Asked<'_>, cuts: &[Cut<'_>], place: Place) -> Result<Column> {
    let impossible = |e: Error| Error::corruption("a block holds impossible values").with_source(e);
    match (asked, place) {
        (_, Place::Plain(buffer)) => Column::new(asked.datatype(), buffer, None, None).map_err(impossible),
        (Asked::Attr(_, attr), Place::Pieces(pieces)) => {
            let mut column = Column::empty(attr.datatype(), attr.nullable());
            for (cut, piece) in cuts.iter().zip(pieces) {
                let piece = piece.map_or_else(|| Column::blanks(attr, cut.count()), Ok)?;
                column.try_append(piece.view())?;
            }
            Ok(column)
        }
        (Asked::Dim(..), Place::Pieces(_)) => Err(Error::corruption("coordinates that are not of fixed width")),
    }
}
