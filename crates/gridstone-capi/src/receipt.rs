//! Receipts: what was staged, as a text that any process can send to the one that commits.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::context::gridstone_context;
use crate::handle::get;
use crate::memory::{Out, text, texts};
use crate::read::condition_of;
use crate::region::{gridstone_region, region_of};
use crate::status::{gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use crate::write::{gridstone_staged, take_all};
use gridstone::engine::{self, Context, Receipt};
use std::ffi::c_char;

/// A receipt for staged writes: a text of JSON that other processes and machines commit with `gridstone_commit_receipts`. The cells lie
/// in files of the store, and nothing shows them before. The handles of the writes are used up, as by `gridstone_commit`, also where a
/// receipt cannot be made of them, and are still to be freed. Files of receipts that are never committed are deleted by a vacuum.
///
/// @param array the array that they were staged for.
/// @param staged the handles.
/// @param count how many; of 0 the receipt commits nothing.
/// @param receipt where the handle of the text goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_INPUT`: the array is part of a transaction that did not create it, or a write has a commit key, which is given with
/// the commit of receipts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_receipt(
    array: gridstone_array,
    staged: *const gridstone_staged,
    count: usize,
    receipt: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(receipt, "receipt") }?;
        // SAFETY: the contract of the header.
        let taken = unsafe { take_all(&array.0, staged, count) }?;
        out.put(text_handle(array.0.receipt(taken)?.to_json()?)?);
        Ok(())
    })
}

/// A receipt for a deletion of the cells that a condition selects of those that the array shows now, whenever it is committed. Cells
/// that others commit meanwhile stay.
///
/// @param array an array that is open for writing, in no transaction.
/// @param region the cells that are looked at, or 0: the whole domain.
/// @param condition which of them, as "sog > 100".
/// @param call what goes with the call, or NULL; the message and the key are given with the commit.
/// @param receipt where the handle of the text goes; free it with `gridstone_free`.
///
/// If fragments that it looked at have been merged by then, of a dense array with newer ones, the commit is refused:
/// `GRIDSTONE_ERROR_CONFLICT`. Refresh the array and make it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_receipt_where(
    array: gridstone_array,
    region: gridstone_region,
    condition: *const c_char,
    call: *const gridstone_call,
    receipt: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked, condition) =
            unsafe { (Out::new(receipt, "receipt")?, Asked::new(call)?, text(condition, "condition")?) };
        let (region, condition) = (region_of(&array.0, region)?, condition_of(condition)?);
        let made = asked.run(|call| array.0.receipt_where(region.as_deref(), &condition, call)?.to_json())?;
        out.put(text_handle(made)?);
        Ok(())
    })
}

/// Checks a receipt, and says how much it commits.
///
/// @param receipt the text.
/// @param cells where the number of cells goes, or NULL.
/// @param bytes where the bytes of its files go, or NULL.
///
/// `GRIDSTONE_ERROR_INPUT`: it is no receipt, or it was changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_receipt_info(
    receipt: *const c_char,
    cells: *mut u64,
    bytes: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (cells, bytes, receipt) =
            unsafe { (Out::optional(cells, "cells")?, Out::optional(bytes, "bytes")?, text(receipt, "receipt")?) };
        let receipt = Receipt::from_json(receipt)?;
        cells.put(receipt.cells());
        bytes.put(receipt.bytes());
        Ok(())
    })
}

/// Commits receipts, of any arrays of one store, in one version: all of them, or none. Where cells of several lie at one place those of
/// the later one in the list stay.
///
/// @param context the context.
/// @param uri the store.
/// @param receipts the texts.
/// @param count how many; 0 commits nothing and gives the newest version.
/// @param call its `message`, its `commit_key`, and its `cancel` until the commit begins, or NULL.
/// @param version where the version goes, or NULL. Arrays that are open show it after `gridstone_array_refresh`.
///
/// `GRIDSTONE_ERROR_CONFLICT`: one was committed before, or its array was removed. `GRIDSTONE_ERROR_NOT_FOUND`: its file is gone. After an
/// error the files stay, so that the others can be committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_commit_receipts(
    context: gridstone_context,
    uri: *const c_char,
    receipts: *const *const c_char,
    count: usize,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, given, asked) = unsafe {
            (
                Out::optional(version, "version")?,
                text(uri, "uri")?,
                texts(receipts, count, "receipts")?,
                Asked::new(call)?,
            )
        };
        asked.check_begin()?;
        let context = get::<Context>(context)?;
        let parse = |(place, text): (usize, &&str)| {
            Receipt::from_json(text).map_err(|e| e.context(format!("receipts[{place}]")))
        };
        let receipts = given.iter().enumerate().map(parse).collect::<gridstone::base::Result<Vec<_>>>()?;
        out.put(engine::commit_receipts_once(&context, uri, &receipts, asked.message, asked.call.commit_key)?);
        Ok(())
    })
}
