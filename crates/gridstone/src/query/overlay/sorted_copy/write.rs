//! Writing the sorted copy of a pack.

use super::format::{BLOCK_CELLS, Header, MEMBER, MEMBERS_MAX, Member};
use crate::base::{AlignedBuf, ByteSink, Error, Id, Result};
use crate::codec::Effort;
use crate::fragment::{Field, FragmentKind, FragmentSpec, FragmentWriter, Packing, Role};
use crate::query::block::masks::Masks;
use crate::query::overlay::{LiveOverlay, small_bytes};
use crate::query::request::{Area, BudgetHold, ReadContext, Target};
use crate::query::write::cells::{columns_of, encode_sparse_tile};
use crate::schema::{Attribute, Datatype, Filters};
use crate::tile::Column;

/// A sink in memory.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl ByteSink for Bytes {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Writes the sorted copy of `pack`, in which the fragments of `target` lie: small ones of cells, all with the same attributes.
///
/// # Errors
/// Exists if there is one; Input if there are too many fragments; Corruption, Storage, Cancelled.
pub fn write_sorted_copy(context: &ReadContext, target: &Target, pack: Id) -> Result<()> {
    let members: Vec<Member> = target.fragments.iter().map(|d| Member { id: d.id, order: d.order }).collect();
    let Some(first) = target.fragments.first() else { return Ok(()) };
    if members.len() > MEMBERS_MAX {
        return Err(Error::input(format!("{} fragments are too many for one sorted copy", members.len())));
    }
    let (attrs, schema) = (first.attrs.clone(), first.schema);
    // What reads would not hold is not copied. Here it is held, and once more as it is sorted.
    let Some(bytes) = small_bytes(context, target) else { return Ok(()) };
    let _held = BudgetHold::take(&context.budget, bytes.saturating_mul(2));
    let live = LiveOverlay::of_all(context, target, Masks::default())?;
    let cells = live.cells_in(context, &target.schema, Area::whole(&target.schema.domain()))?.entries;
    // Fragments have their numbers from their places, in the overlay as here.
    let places: Vec<(u32, u32)> = cells.iter().map(|e| (e.source, e.row)).collect();
    let known: Vec<&Attribute> = attrs.iter().filter_map(|id| target.schema.attr_by_id(*id)).collect();
    if known.len() != attrs.len() {
        // One that was dropped since: who needs it reads the fragments.
        return Ok(());
    }
    let columns = known.iter().map(|attr| live.column(context, attr, &places)).collect::<Result<Vec<Column>>>()?;
    let coordinate = |dim: usize| cells.iter().filter_map(|e| live.source(*e)?.coordinate(dim, e.row)).collect();
    let coords: Vec<Vec<u64>> = (0..target.schema.ndim()).map(coordinate).collect();
    let fields = fields(target, &attrs);
    let spec = FragmentSpec {
        id: pack.beside(target.array),
        kind: FragmentKind::Sparse,
        fields: fields.clone(),
        block_cells: BLOCK_CELLS,
        stripe_bytes: usize::MAX,
    };
    let mut writer = FragmentWriter::new(Bytes::default(), &target.schema, &spec, &target.schema.domain())?;
    // What filters the user chose may take long, or make values coarser once more.
    let (filters, rounding) = (vec![Filters::Auto; fields.len()], vec![None; fields.len()]);
    let packing = Packing { filters, rounding, effort: Effort::Quick };
    let capacity = (target.schema.options().capacity as usize).max(1);
    for from in (0..places.len()).step_by(capacity) {
        context.cancel.check()?;
        let to = (from + capacity).min(places.len());
        let keys: Vec<Vec<u64>> = coords.iter().map(|c| c.get(from..to).unwrap_or_default().to_vec()).collect();
        let mut values: Vec<Column> = columns.iter().map(|c| c.view().copy_range(from, to)).collect();
        values.push(numbers(places.get(from..to).unwrap_or_default())?);
        let tile = encode_sparse_tile((&fields, &packing), BLOCK_CELLS, &keys, columns_of(&fields, &keys, values)?)?;
        writer.push(tile)?;
    }
    let written = writer.finish()?;
    let header = Header {
        pack,
        array: target.array,
        schema,
        cells: written.cells,
        attrs,
        bounds: written.bounds,
        members,
        len: written.len,
    };
    let mut sink = context.files.create(pack.beside(target.array))?;
    sink.write(&header.encode())?;
    sink.write(&written.sink.0)?;
    sink.finish()
}

/// The columns of a copy: those of its members, and the number of the member.
fn fields(target: &Target, attrs: &[u32]) -> Vec<Field> {
    let mut fields = FragmentSpec::fields(&target.schema, FragmentKind::Sparse, attrs);
    fields.push(Field { role: Role::Attribute(MEMBER), datatype: Datatype::UInt16, nullable: false });
    fields
}

fn numbers(places: &[(u32, u32)]) -> Result<Column> {
    let bytes: Vec<u8> = places.iter().flat_map(|(member, _)| (*member as u16).to_le_bytes()).collect();
    Column::new(Datatype::UInt16, AlignedBuf::from_slice(&bytes), None, None)
}
