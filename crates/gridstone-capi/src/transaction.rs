//! Transactions: changes of any arrays and groups of a store that become one version, or none.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::context::gridstone_context;
use crate::handle::{Exclusive, Object, get, gridstone_handle, insert};
use crate::memory::{Out, optional_text, optional_texts, text, texts};
use crate::metadata::{changes_of, missing_key, object_of};
use crate::schema::{Parts, gridstone_schema};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::store::kind_of;
use crate::text::{gridstone_text, id_of, text_handle};
use gridstone::engine::{Context, Isolation, Naming, Receipt, Transaction};
use std::ffi::c_char;

/// Changes that become one version, or none.
pub type gridstone_transaction = gridstone_handle;

/// A commit is refused if another one has changed what this one both read and wrote.
pub const GRIDSTONE_ISOLATION_SNAPSHOT: u32 = 0;
/// A commit is refused if another one has changed what this one read.
pub const GRIDSTONE_ISOLATION_SERIALIZABLE: u32 = 1;

/// A transaction, which serves one thread at a time.
pub(crate) struct TransactionObject(Exclusive<Transaction>);

impl Object for TransactionObject {
    const NAME: &'static str = "a transaction";
}

impl Drop for TransactionObject {
    fn drop(&mut self) {
        // One that has ended stays as it is.
        if let Ok(mut held) = self.0.held(Self::NAME)
            && let Some(transaction) = held.as_mut()
        {
            transaction.abort();
        }
    }
}

/// What `work` makes of a transaction.
fn within<R>(handle: gridstone_transaction, work: impl FnOnce(&Transaction) -> Outcome<R>) -> Outcome<R> {
    get::<TransactionObject>(handle)?.0.with(TransactionObject::NAME, |transaction| work(transaction))
}

/// Begins a transaction. It sees the newest version of the store, and what it has changed itself; others see nothing of it before its
/// commit. It serves one thread at a time, and ends with its commit, its abort, or when it is freed. Array handles of an ended transaction
/// read and write nothing more: `GRIDSTONE_ERROR_INPUT`. They are still to be freed.
///
/// @param context the context.
/// @param uri a store that exists.
/// @param isolation `GRIDSTONE_ISOLATION_SNAPSHOT` or `_SERIALIZABLE`.
/// @param call the `commit_key` of its commit, or NULL.
/// @param transaction where the handle goes; free it with `gridstone_free`, which aborts it if it was not committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_begin(
    context: gridstone_context,
    uri: *const c_char,
    isolation: u32,
    call: *const gridstone_call,
    transaction: *mut gridstone_transaction,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, asked) =
            unsafe { (Out::new(transaction, "transaction")?, text(uri, "uri")?, Asked::new(call)?) };
        let isolation = match isolation {
            GRIDSTONE_ISOLATION_SNAPSHOT => Isolation::Snapshot,
            GRIDSTONE_ISOLATION_SERIALIZABLE => Isolation::Serializable,
            other => {
                let message = format!("isolation is {other}; it is GRIDSTONE_ISOLATION_SNAPSHOT or _SERIALIZABLE");
                return Err(Failure::input(message));
            }
        };
        let context = get::<Context>(context)?;
        let begun = asked.run(|call| {
            let begun = Transaction::begin(&context, uri, isolation)?;
            match &call.commit_key {
                Some(key) => begun.with_key(key.clone(), Naming::Id),
                None => Ok(begun),
            }
        })?;
        out.put(insert(TransactionObject(Exclusive::new(begun)))?);
        Ok(())
    })
}

/// The array at a path, for reading and writing in the transaction: what is committed through it is a part of the transaction, and takes
/// no message and no key.
///
/// @param transaction the transaction.
/// @param path where in the store.
/// @param array where the handle goes; free it with `gridstone_free`, also after the transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_array(
    transaction: gridstone_transaction,
    path: *const c_char,
    array: *mut gridstone_array,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, path) = unsafe { (Out::new(array, "array")?, text(path, "path")?) };
        let found = within(transaction, |transaction| Ok(transaction.array(path)?))?;
        out.put(insert(ArrayObject(found))?);
        Ok(())
    })
}

/// What lies at a path, as the transaction sees it.
///
/// @param transaction the transaction.
/// @param path where in the store.
/// @param kind where `GRIDSTONE_KIND_ARRAY`, `GRIDSTONE_KIND_GROUP` or `GRIDSTONE_KIND_NONE` goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_kind(
    transaction: gridstone_transaction,
    path: *const c_char,
    kind: *mut u32,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, path) = unsafe { (Out::new(kind, "kind")?, text(path, "path")?) };
        out.put(kind_of(within(transaction, |transaction| Ok(transaction.kind(path)?))?));
        Ok(())
    })
}

/// What is in the group at a path, as the transaction sees it.
///
/// @param transaction the transaction.
/// @param path where in the store.
/// @param children where the text goes, as `gridstone_group_children` gives it; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_children(
    transaction: gridstone_transaction,
    path: *const c_char,
    children: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, path) = unsafe { (Out::new(children, "children")?, text(path, "path")?) };
        let found = within(transaction, |transaction| Ok(transaction.children(path)?))?;
        out.put(text_handle(crate::group::nodes_json("name", &found))?);
        Ok(())
    })
}

/// Creates an array in a transaction, and the groups above it that are missing.
///
/// @param transaction the transaction.
/// @param path where in the store.
/// @param schema the schema.
/// @param overwrite not 0: what is there is replaced by a new array.
/// @param id the id of the array, 32 hexadecimal digits, or NULL: a new one. With the same id, path and schema, other processes write
/// cells of it in transactions of their own, which they abort after `gridstone_receipt`; this one adds the receipts.
/// @param array where the handle goes, as that of `gridstone_transaction_array`.
///
/// `GRIDSTONE_ERROR_EXISTS`: something lies there, and `overwrite` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_create_array(
    transaction: gridstone_transaction,
    path: *const c_char,
    schema: gridstone_schema,
    overwrite: i32,
    id: *const c_char,
    array: *mut gridstone_array,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, path, id) = unsafe { (Out::new(array, "array")?, text(path, "path")?, optional_text(id, "id")?) };
        let (schema, id) = (get::<Parts>(schema)?.schema()?, id.map(|id| id_of(id, "id")).transpose()?);
        let made = within(transaction, |transaction| match id {
            Some(id) => Ok(transaction.create_array_as(id, path, schema, overwrite != 0)?),
            None => Ok(transaction.create_array(path, schema, overwrite != 0)?),
        })?;
        out.put(insert(ArrayObject(made))?);
        Ok(())
    })
}

/// Creates a group in a transaction, and those above it that are missing. One that is there is left as it is.
///
/// @param transaction the transaction.
/// @param path where in the store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_create_group(
    transaction: gridstone_transaction,
    path: *const c_char,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let path = unsafe { text(path, "path") }?;
        within(transaction, |transaction| Ok(transaction.create_group(path)?))
    })
}

/// Removes what lies at a path, and everything below it, in a transaction.
///
/// @param transaction the transaction.
/// @param path where in the store; not "/".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_remove(
    transaction: gridstone_transaction,
    path: *const c_char,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let path = unsafe { text(path, "path") }?;
        within(transaction, |transaction| Ok(transaction.remove(path)?))
    })
}

/// Moves what lies at a path, and everything below it, in a transaction; groups above the new path that are missing are created.
///
/// @param transaction the transaction.
/// @param path where it lies.
/// @param target_path where it goes; nothing may lie there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_move(
    transaction: gridstone_transaction,
    path: *const c_char,
    target_path: *const c_char,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (path, target) = unsafe { (text(path, "path")?, text(target_path, "target_path")?) };
        within(transaction, |transaction| Ok(transaction.move_node(path, target)?))
    })
}

/// The value of a key of the metadata of what lies at a path, as the transaction sees it.
///
/// @param transaction the transaction.
/// @param path where in the store.
/// @param key the key, or NULL: all keys with their values, as `gridstone_metadata_all` gives them.
/// @param value where the text goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_NOT_FOUND`: there is no such key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_metadata(
    transaction: gridstone_transaction,
    path: *const c_char,
    key: *const c_char,
    value: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, path, key) = unsafe { (Out::new(value, "value")?, text(path, "path")?, optional_text(key, "key")?) };
        let found = within(transaction, |transaction| Ok(transaction.metadata(path)?))?;
        let value = match key {
            Some(key) => found.get(key).cloned().ok_or_else(|| missing_key(key))?,
            None => object_of(found.iter()),
        };
        out.put(text_handle(value)?);
        Ok(())
    })
}

/// Sets and removes keys of the metadata of what lies at a path, in a transaction.
///
/// @param transaction the transaction.
/// @param path where in the store.
/// @param keys the keys.
/// @param values a text of JSON for each key; NULL removes the key.
/// @param count how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_set_metadata(
    transaction: gridstone_transaction,
    path: *const c_char,
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (path, keys, values) =
            unsafe { (text(path, "path")?, texts(keys, count, "keys")?, optional_texts(values, count, "values")?) };
        let changes = changes_of(&keys, &values)?;
        within(transaction, |transaction| Ok(transaction.set_metadata(path, &changes)?))
    })
}

/// Adds receipts to a transaction: their cells become a part of it.
///
/// @param transaction the transaction.
/// @param receipts the texts.
/// @param count how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_add_receipts(
    transaction: gridstone_transaction,
    receipts: *const *const c_char,
    count: usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let given = unsafe { texts(receipts, count, "receipts") }?;
        let parse = |(place, text): (usize, &&str)| {
            Receipt::from_json(text).map_err(|e| e.context(format!("receipts[{place}]")))
        };
        let receipts = given.iter().enumerate().map(parse).collect::<gridstone::base::Result<Vec<_>>>()?;
        within(transaction, |transaction| Ok(transaction.add_receipts(&receipts)?))
    })
}

/// Commits a transaction in one version: all of it, or nothing. It has ended afterwards, also if that fails; one whose `call` was
/// cancelled before the commit began goes on.
///
/// @param transaction the transaction.
/// @param call the `message` of the commit, and its `cancel` until the commit begins, or NULL. The key was given at the beginning.
/// @param version where the version goes, or NULL; without changes that which was read.
///
/// `GRIDSTONE_ERROR_CONFLICT`: another commit has changed what this one rests on; begin again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_commit(
    transaction: gridstone_transaction,
    call: *const gridstone_call,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::optional(version, "version")?, Asked::new(call)?) };
        if asked.call.commit_key.is_some() {
            return Err(Failure::input("a transaction is given its commit key when it begins; leave it out here"));
        }
        asked.check_begin()?;
        out.put(within(transaction, |transaction| Ok(transaction.commit(asked.message)?))?);
        Ok(())
    })
}

/// Gives up a transaction: nothing of it remains. One that has ended stays as it is.
///
/// @param transaction the transaction; it is still to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_transaction_abort(transaction: gridstone_transaction) -> gridstone_status {
    guarded(|| {
        within(transaction, |transaction| {
            transaction.abort();
            Ok(())
        })
    })
}

/// The version that a transaction reads.
///
/// @param transaction the transaction.
/// @param version where the version goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_base_version(
    transaction: gridstone_transaction,
    version: *mut u64,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(version, "version") }?;
        out.put(within(transaction, |transaction| Ok(transaction.base_version()))?);
        Ok(())
    })
}

/// The version that a transaction was committed as; 0 if it was not.
///
/// @param transaction the transaction.
/// @param version where the version goes.
/// @param open where 1 goes if it has neither been committed nor aborted, else 0; or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_transaction_version(
    transaction: gridstone_transaction,
    version: *mut u64,
    open: *mut i32,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, open) = unsafe { (Out::new(version, "version")?, Out::optional(open, "open")?) };
        let (version, is_open) =
            within(transaction, |transaction| Ok((transaction.version().unwrap_or(0), transaction.is_open())))?;
        out.put(version);
        open.put(i32::from(is_open));
        Ok(())
    })
}
