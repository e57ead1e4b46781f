//! Buffers that a thread uses again: first-touch page faults of fresh memory would cost more than decoding into it.
//!
//! They are outside the memory budget, so they are few: of each thread [`BYTES_MAX`] at most, as they were allocated.

use crate::base::{AlignedBuf, Result};
use crate::tile::Column;
use std::cell::Cell;

/// What a thread keeps, at most. A run of sixteen blocks of a thousand cells takes an eighth of it for each column of eight bytes.
const BYTES_MAX: usize = 1 << 20;
/// So many of them are looked through, at most.
const BUFFERS_MAX: usize = 8;

thread_local! {
    /// What held earlier columns, the oldest first.
    static SPARE: Cell<Vec<AlignedBuf>> = const { Cell::new(Vec::new()) };
}

/// A buffer of `len` bytes of any content.
pub(super) fn lend(len: usize) -> Result<AlignedBuf> {
    let mut spare = SPARE.take();
    let place = spare.iter().rposition(|buf| buf.capacity() >= len);
    let found = place.map(|place| spare.remove(place));
    SPARE.set(spare);
    let Some(mut buf) = found else { return AlignedBuf::try_zeroed(len) };
    buf.set_len(len);
    Ok(buf)
}

/// Takes back what [`lend`] gave, as columns without nulls and offsets; of others nothing is kept.
pub(super) fn give_back(columns: impl IntoIterator<Item = Column>) {
    let mut spare = SPARE.take();
    let plain = |(buf, offsets, validity): (AlignedBuf, Option<Vec<u64>>, Option<Vec<u8>>)| {
        (offsets.is_none() && validity.is_none()).then_some(buf)
    };
    let bufs = columns.into_iter().map(Column::into_parts).filter_map(plain);
    spare.extend(bufs.filter(|buf| buf.allocated_bytes() <= BYTES_MAX));
    let mut bytes: usize = spare.iter().map(AlignedBuf::allocated_bytes).sum();
    let mut count = spare.len();
    // What is used now is of more use than what has not been for longest.
    spare.retain(|buf| {
        let goes = count > BUFFERS_MAX || bytes > BYTES_MAX;
        if goes {
            (count, bytes) = (count - 1, bytes - buf.allocated_bytes());
        }
        !goes
    });
    SPARE.set(spare);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Datatype;

    fn lent(len: usize) -> Column {
        Column::new(Datatype::UInt8, lend(len).unwrap(), None, None).unwrap()
    }

    /// What this thread keeps, buffer by buffer.
    fn kept() -> Vec<usize> {
        let spare = SPARE.take();
        let sizes = spare.iter().map(AlignedBuf::allocated_bytes).collect();
        SPARE.set(spare);
        sizes
    }

    #[test]
    fn a_thread_keeps_no_more_than_it_may() {
        give_back([lent(64), lent(1_024)]);
        assert_eq!(kept(), [64, 1_024]);
        // The newest that is large enough.
        let again = lend(100).unwrap();
        assert_eq!((again.len(), again.capacity(), kept()), (100, 1_024, vec![64]));
        // Neither what alone is too large, nor what has nulls or offsets.
        let (values, valid) = (AlignedBuf::zeroed(8), Some(vec![1; 8]));
        let nullable = Column::new(Datatype::UInt8, values, None, valid).unwrap();
        let texts = Column::new(Datatype::String, AlignedBuf::zeroed(8), Some(vec![0, 8]), None).unwrap();
        give_back([lent(BYTES_MAX + 1), nullable, texts]);
        assert_eq!(kept(), [64]);
        give_back((0..3).map(|_| lent(BYTES_MAX / 2)).collect::<Vec<_>>());
        assert_eq!(kept(), [BYTES_MAX / 2; 2]);
        give_back((0..20).map(|n| lent(BYTES_MAX / 2 + 16 * n + 16)).collect::<Vec<_>>());
        assert!(kept().iter().sum::<usize>() <= BYTES_MAX && kept().len() == 1, "{:?}", kept());
        give_back([lent(BYTES_MAX)]);
        assert_eq!(kept(), [BYTES_MAX]);
        give_back((0..20).map(|_| lent(16)).collect::<Vec<_>>());
        assert_eq!(kept(), [16; BUFFERS_MAX]);
    }

    #[test]
    fn what_grew_counts_with_all_that_was_allocated() {
        let mut grown = lend(0).unwrap();
        (0..100).for_each(|_| grown.extend_from_slice(&[7; 100]));
        assert!(grown.allocated_bytes() >= grown.capacity() && grown.capacity() >= 10_000);
    }
}
