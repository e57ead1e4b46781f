//! One block of one attribute or dimension: encodes cells to stored bytes and decodes them.
//!
//! ```text
//! fixed width, not nullable:   filtered(values)
//! otherwise:                   u32 validity_len | u32 offsets_len | validity | offsets | filtered(values)
//!   validity   LSB-first bitmap of ceil(cells / 8) bytes, 1 = valid; validity_len 0 = all valid
//!   offsets    variable length only: cells + 1 u32 from 0, through "delta,for" (raw if the pipeline is "none")
//!   values     the cells' bytes side by side; a null cell has zeros, or no byte if variable length
//! ```
//! The decoded length of the values is cells x width, or the last offset. Both are checked against the limits before
//! anything is allocated.

use super::{Column, ColumnView, gather_into};
use crate::base::{AlignedBuf, ByteReader, Element, Error, Result, limits};
use crate::codec::{Pipeline, bits};
use crate::schema::Datatype;
use std::borrow::Cow;

const OFFSETS: Element = Element::unsigned(4);

/// The pipeline of the offsets that belong to values packed by `pipeline`.
fn offsets_pipeline(pipeline: &Pipeline) -> Result<Pipeline> {
    Pipeline::parse(if pipeline.is_none() { "none" } else { "delta,for" })
}

/// Appends the encoded cells `from..to` of `view` to `out`. `nullable` is the attribute's, since it determines the
/// layout. An Input error if the values of one block exceed 1 GiB.
pub fn encode_block(
    view: ColumnView<'_>,
    from: usize,
    to: usize,
    nullable: bool,
    pipeline: &Pipeline,
    out: &mut Vec<u8>,
) -> Result<()> {
    let cells = to - from;
    let element = view.datatype().element();
    let (values, offsets) = plain_values(view, from, to)?;
    if !nullable && offsets.is_none() {
        return pipeline.encode_into(&values, element, out);
    }
    let validity = match view.validity().and_then(|v| v.get(from..to)) {
        Some(v) if nullable && v.contains(&0) => bits::pack(v),
        _ => Vec::new(),
    };
    let offsets = match offsets {
        Some(offsets) => {
            debug_assert_eq!(offsets.len(), cells + 1);
            offsets_pipeline(pipeline)?.encode(bytemuck::cast_slice(&offsets), OFFSETS)?
        }
        None => Vec::new(),
    };
    out.extend_from_slice(&(validity.len() as u32).to_le_bytes());
    out.extend_from_slice(&(offsets.len() as u32).to_le_bytes());
    out.extend_from_slice(&validity);
    out.extend_from_slice(&offsets);
    pipeline.encode_into(&values, element, out)
}

/// Contiguous values, and their offsets from 0 for variable-length types.
type Plain<'a> = (Cow<'a, [u8]>, Option<Vec<u32>>);

/// The values of `from..to`, with nulls blanked.
fn plain_values(view: ColumnView<'_>, from: usize, to: usize) -> Result<Plain<'_>> {
    let has_null = view.validity().and_then(|v| v.get(from..to)).is_some_and(|v| v.contains(&0));
    if let Some(width) = view.datatype().width() {
        let run = view.values().get(from * width..to * width).unwrap_or_default();
        if !has_null {
            return Ok((Cow::Borrowed(run), None));
        }
        let mut blanked = run.to_vec();
        for (i, cell) in blanked.chunks_exact_mut(width).enumerate() {
            if !view.is_valid(from + i) {
                cell.fill(0);
            }
        }
        return Ok((Cow::Owned(blanked), None));
    }
    let mut values = Vec::new();
    let mut offsets = Vec::with_capacity(to - from + 1);
    offsets.push(0);
    for row in from..to {
        if view.is_valid(row) {
            values.extend_from_slice(view.value(row));
        }
        if values.len() > limits::BLOCK_BYTES_MAX {
            return Err(Error::input(format!(
                "the values of one block ({} cells) pass {} bytes; use smaller tiles, or store such values elsewhere",
                to - from,
                limits::BLOCK_BYTES_MAX
            )));
        }
        offsets.push(values.len() as u32);
    }
    Ok((Cow::Owned(values), Some(offsets)))
}

/// Decodes a block of `cells` cells; the inverse of [`encode_block`]. A Corruption error if the bytes are not exactly
/// that.
pub fn decode_block(
    stored: &[u8],
    datatype: Datatype,
    nullable: bool,
    cells: usize,
    pipeline: &Pipeline,
) -> Result<Column> {
    if !nullable && !datatype.is_var() {
        let values = decode_fixed(stored, datatype, cells, pipeline)?;
        return checked(datatype, values, None, None);
    }
    let mut reader = ByteReader::new(stored, "a block");
    let (validity_len, offsets_len) = (reader.u32()? as usize, reader.u32()? as usize);
    let packed_validity = reader.take(validity_len)?;
    let packed_offsets = reader.take(offsets_len)?;
    let packed_values = reader.take(reader.remaining())?;
    let validity = decode_validity(packed_validity, nullable, cells)?;
    if !datatype.is_var() {
        let values = decode_fixed(packed_values, datatype, cells, pipeline)?;
        return checked(datatype, values, None, validity);
    }
    let offsets = decode_offsets(packed_offsets, cells, pipeline)?;
    let len = offsets.last().copied().unwrap_or(0) as usize;
    let values = unpacked(packed_values, datatype, len, pipeline)?;
    checked(datatype, values, Some(offsets), validity)
}

/// Decodes the cells `rows` (ascending) of a block of `cells` cells of fixed width without nulls, side by side into
/// `out`, which has room for them. If the pipeline has no shorter way, all cells are decoded into `scratch`, and those
/// are picked. The same blocks are refused as when decoding whole blocks.
pub fn decode_rows(
    stored: &[u8],
    (datatype, cells): (Datatype, usize),
    pipeline: &Pipeline,
    rows: &[u32],
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<()> {
    let (element, width) = (datatype.element(), datatype.width().unwrap_or(1));
    let len = cells.checked_mul(width).filter(|len| *len <= limits::BLOCK_BYTES_MAX);
    let len = len.ok_or_else(|| Error::corruption(format!("a block claims {cells} cells")))?;
    if rows.last().is_some_and(|row| *row as usize >= cells) || rows.len().checked_mul(width) != Some(out.len()) {
        return Err(Error::corruption(format!("{} rows do not fit a block of {cells} cells", rows.len())));
    }
    if pipeline.is_none() && stored.len() == len {
        gather_into(stored, rows, width, out);
        return Ok(());
    }
    if width == element.size() && pipeline.decode_rows(stored, element, cells, rows, out)? {
        return Ok(());
    }
    scratch.resize(len, 0);
    pipeline.decode_into(stored, element, scratch)?;
    gather_into(scratch, rows, width, out);
    Ok(())
}

fn checked(
    datatype: Datatype,
    values: AlignedBuf,
    offsets: Option<Vec<u64>>,
    validity: Option<Vec<u8>>,
) -> Result<Column> {
    Column::new(datatype, values, offsets, validity)
        .map_err(|e| Error::corruption("a block holds impossible values").with_source(e))
}

fn decode_fixed(stored: &[u8], datatype: Datatype, cells: usize, pipeline: &Pipeline) -> Result<AlignedBuf> {
    let len = cells.checked_mul(datatype.width().unwrap_or(1));
    let len = len.ok_or_else(|| Error::corruption(format!("a block claims {cells} cells")))?;
    unpacked(stored, datatype, len, pipeline)
}

/// The `len` bytes encoded in `stored`. It allocates no more memory than it can fill.
fn unpacked(stored: &[u8], datatype: Datatype, len: usize, pipeline: &Pipeline) -> Result<AlignedBuf> {
    let most = pipeline.decoded_len_max(stored.len()).min(limits::BLOCK_BYTES_MAX);
    if len > most {
        let stored = stored.len();
        return Err(Error::corruption(format!(
            "a block claims {len} bytes of values, its {stored} bytes give {most} at most"
        )));
    }
    let unfit = |e: Error| Error::corruption(format!("a block cannot be of its pipeline: {e}"));
    pipeline.check(datatype.element()).map_err(unfit)?;
    let mut values = AlignedBuf::try_zeroed(len)?;
    pipeline.decode_into(stored, datatype.element(), values.as_mut_slice())?;
    Ok(values)
}

fn decode_validity(packed: &[u8], nullable: bool, cells: usize) -> Result<Option<Vec<u8>>> {
    if !nullable {
        return if packed.is_empty() {
            Ok(None)
        } else {
            Err(Error::corruption("a block has nulls, its attribute has none"))
        };
    }
    if packed.is_empty() {
        return Ok(Some(vec![1; cells]));
    }
    if packed.len() != cells.div_ceil(8) {
        return Err(Error::corruption(format!("{} bytes of validity for {cells} cells", packed.len())));
    }
    let mut validity = vec![0; cells];
    bits::unpack(packed, cells, &mut validity)?;
    Ok(Some(validity))
}

fn decode_offsets(packed: &[u8], cells: usize, pipeline: &Pipeline) -> Result<Vec<u64>> {
    let len = cells.checked_add(1).and_then(|n| n.checked_mul(4)).filter(|n| *n <= limits::BLOCK_BYTES_MAX);
    let len = len.ok_or_else(|| Error::corruption(format!("a block claims {cells} cells")))?;
    let mut raw = AlignedBuf::zeroed(len);
    offsets_pipeline(pipeline)?.decode_into(packed, OFFSETS, raw.as_mut_slice())?;
    let (words, _) = raw.as_slice().as_chunks::<4>();
    Ok(words.iter().map(|w| u64::from(u32::from_le_bytes(*w))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn roundtrip(column: &Column, nullable: bool, from: usize, to: usize, pipeline: &str) -> Column {
        let pipeline = Pipeline::parse(pipeline).unwrap();
        let mut stored = Vec::new();
        encode_block(column.view(), from, to, nullable, &pipeline, &mut stored).unwrap();
        decode_block(&stored, column.datatype(), nullable, to - from, &pipeline).unwrap()
    }

    proptest! {
        #[test]
        fn blocks_come_back(cells in proptest::collection::vec(proptest::option::of("[a-zé]{0,9}"), 1..80), cut in 0usize..80,
            pipeline in prop_oneof![Just("none"), Just(if cfg!(miri) { "lz4" } else { "zstd:1" }), Just("lz4")]) {
            let mut values = Vec::new();
            let mut offsets = vec![0u64];
            for cell in &cells {
                values.extend_from_slice(cell.as_deref().unwrap_or("").as_bytes());
                offsets.push(values.len() as u64);
            }
            let validity: Vec<u8> = cells.iter().map(|c| u8::from(c.is_some())).collect();
            let column = Column::new(Datatype::String, AlignedBuf::from_slice(&values), Some(offsets), Some(validity)).unwrap();
            let from = cut.min(cells.len() - 1);
            let back = roundtrip(&column, true, from, cells.len(), pipeline);
            for (i, cell) in cells[from..].iter().enumerate() {
                prop_assert_eq!(back.view().is_valid(i), cell.is_some());
                prop_assert_eq!(back.view().value(i), cell.as_deref().unwrap_or("").as_bytes());
            }
        }
    }

    #[test]
    fn cells_of_several_values_come_back_through_every_pipeline() {
        let pipelines =
            ["none", "for", "delta", "shuffle,lz4", "lz4", "delta,for", "bitshuffle", "pco", "zstd:1", "gzip:1"];
        // Miri cannot call C.
        let cells = if cfg!(miri) { 20 } else { 60 };
        let (from, to) = (7, cells - 5);
        for name in pipelines.into_iter().filter(|name| !cfg!(miri) || !["pco", "zstd:1", "gzip:1"].contains(name)) {
            let pipeline = Pipeline::parse(name).unwrap();
            for dtype in [
                "uint8[3]",
                "float16",
                "float16[3]",
                "complex64",
                "complex128",
                "bytes[5]",
                "int16[2,2]",
                "list[int16]",
                "list[float64]",
            ] {
                let datatype = Datatype::parse(dtype).unwrap();
                if pipeline.check(datatype.element()).is_err() {
                    continue;
                }
                let width = datatype.width().unwrap_or(2 * datatype.item_width());
                let bytes: Vec<u8> = (0..cells * width).map(|i| (i * i % 253) as u8).collect();
                let offsets = datatype.is_var().then(|| (0..=cells).map(|i| (i * width) as u64).collect());
                let validity: Vec<u8> = (0..cells).map(|i| u8::from(i % 4 != 1)).collect();
                for nullable in [false, true] {
                    let validity = nullable.then(|| validity.clone());
                    let column =
                        Column::new(datatype, AlignedBuf::from_slice(&bytes), Option::clone(&offsets), validity)
                            .unwrap();
                    let back = roundtrip(&column, nullable, from, to, name);
                    for i in 0..to - from {
                        let valid = !nullable || (i + from) % 4 != 1;
                        assert_eq!(back.view().is_valid(i), valid);
                        if valid {
                            assert_eq!(back.view().value(i), column.view().value(i + from), "{dtype} {name}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_list_that_ends_within_an_item_is_corruption() {
        let bytes = Column::new(Datatype::Bytes, AlignedBuf::from_slice(&[7; 6]), Some(vec![0, 3, 6]), None).unwrap();
        let pipeline = Pipeline::none();
        let mut stored = Vec::new();
        encode_block(bytes.view(), 0, 2, false, &pipeline, &mut stored).unwrap();
        let error = decode_block(&stored, Datatype::parse("list[int16]").unwrap(), false, 2, &pipeline).unwrap_err();
        assert_eq!(error.kind(), crate::base::ErrorKind::Corruption, "{error}");
    }

    #[test]
    fn rows_are_those_of_the_whole_block() {
        let cells = if cfg!(miri) { 80 } else { 1_100 };
        let pipelines = ["none", "for", "delta,for", "lz4", "shuffle,lz4", "shuffle", "pco", "shuffle,zstd:1", "dict"];
        for name in pipelines.into_iter().filter(|name| !cfg!(miri) || !["pco", "shuffle,zstd:1"].contains(name)) {
            let pipeline = Pipeline::parse(name).unwrap();
            for dtype in ["int64", "uint8", "float32", "int16[2,2]", "bytes[5]", "complex128"] {
                let datatype = Datatype::parse(dtype).unwrap();
                if pipeline.check(datatype.element()).is_err() {
                    continue;
                }
                let width = datatype.width().unwrap();
                let bytes: Vec<u8> = (0..cells * width).map(|i| (i * i % 253) as u8).collect();
                let column = Column::new(datatype, AlignedBuf::from_slice(&bytes), None, None).unwrap();
                let mut stored = Vec::new();
                encode_block(column.view(), 0, cells, false, &pipeline, &mut stored).unwrap();
                for step in [1, 2, 50, cells] {
                    let rows: Vec<u32> = (0..cells as u32).step_by(step).collect();
                    let (mut scratch, mut out) = (vec![9; 3], vec![0; rows.len() * width]);
                    decode_rows(&stored, (datatype, cells), &pipeline, &rows, &mut scratch, &mut out).unwrap();
                    assert_eq!(out, column.view().gather(&rows).view().values(), "{name} {dtype}");
                    let kinds = [(cells + 1, stored.len()), (cells, stored.len() - 1), (cells - 1, stored.len())];
                    for (cells, end) in kinds.into_iter().filter(|(_, end)| *end > 0) {
                        let whole = decode_block(&stored[..end], datatype, false, cells, &pipeline).map(drop);
                        let rows: Vec<u32> = rows.iter().copied().filter(|row| (*row as usize) < cells).collect();
                        let out = &mut out[..rows.len() * width];
                        let some = decode_rows(&stored[..end], (datatype, cells), &pipeline, &rows, &mut scratch, out);
                        assert_eq!(
                            some.map_err(|e| e.kind()),
                            whole.map_err(|e| e.kind()),
                            "{name} {dtype} {cells} {end}"
                        );
                    }
                }
            }
        }
        let none = Pipeline::none();
        for (rows, room) in [(&[0, 3][..], 2), (&[0], 2), (&[0, 1], 1)] {
            let wrong = decode_rows(&[1, 2, 3], (Datatype::UInt8, 3), &none, rows, &mut vec![], &mut vec![0; room]);
            assert_eq!(wrong.unwrap_err().kind(), crate::base::ErrorKind::Corruption);
        }
    }

    #[test]
    fn damage_is_an_error_or_harmless() {
        let (len, bits) = if cfg!(miri) { (10, 1) } else { (40, 8) };
        let values: Vec<u8> = (0..len).flat_map(|i: i32| i.to_le_bytes()).collect();
        let validity: Vec<u8> = (0..len).map(|i| u8::from(i % 3 != 0)).collect();
        let column = Column::new(Datatype::Int32, AlignedBuf::from_slice(&values), None, Some(validity)).unwrap();
        let len = len as usize;
        for name in ["none", "delta,for", if cfg!(miri) { "lz4" } else { "zstd:1" }] {
            let pipeline = Pipeline::parse(name).unwrap();
            let mut stored = Vec::new();
            encode_block(column.view(), 0, len, true, &pipeline, &mut stored).unwrap();
            for end in 0..stored.len() {
                assert!(decode_block(&stored[..end], Datatype::Int32, true, len, &pipeline).is_err(), "{name} {end}");
            }
            for i in 0..stored.len() {
                for bit in 0..bits {
                    let mut bad = stored.clone();
                    bad[i] ^= 1 << (bit + i % (9 - bits));
                    // The checksum above catches this; here it must only not panic nor return a wrong length.
                    if let Ok(found) = decode_block(&bad, Datatype::Int32, true, len, &pipeline) {
                        assert_eq!(found.len(), len);
                    }
                }
            }
        }
    }

    #[test]
    fn few_bytes_that_claim_many_get_no_memory() {
        let values = Column::new(Datatype::Bytes, AlignedBuf::from_slice(b"ab"), Some(vec![0, 2]), None).unwrap();
        for (name, most) in [("none", 2), ("lz4", 2_000), ("shuffle,lz4", 2_000)] {
            let pipeline = Pipeline::parse(name).unwrap();
            let mut stored = Vec::new();
            encode_block(values.view(), 0, 1, false, &pipeline, &mut stored).unwrap();
            // The offsets claim a gigabyte, in their encoding; the values stay unchanged.
            let mut offsets = Vec::new();
            let claimed: Vec<u8> = [0u32, 1 << 30].into_iter().flat_map(u32::to_le_bytes).collect();
            offsets_pipeline(&pipeline).unwrap().encode_into(&claimed, OFFSETS, &mut offsets).unwrap();
            let old = u32::from_le_bytes(stored[4..8].try_into().unwrap()) as usize;
            let mut bad = stored[..4].to_vec();
            bad.extend_from_slice(&(offsets.len() as u32).to_le_bytes());
            bad.extend_from_slice(&offsets);
            bad.extend_from_slice(&stored[8 + old..]);
            let error = decode_block(&bad, Datatype::Bytes, false, 1, &pipeline).unwrap_err();
            assert!(error.message().contains("claims 1073741824 bytes"), "{error}");
            assert!(pipeline.decoded_len_max(stored.len() - 8 - old) <= most, "{name}");
        }
    }
}
