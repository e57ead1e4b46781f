//! What goes with a call that may take long: a way to stop it, somebody to report to, the message and the key of its commit.

use crate::handle::{Object, get, get_optional, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, optional_text, options, slice};
use crate::status::{Callback, Failure, Outcome, gridstone_status, guarded, guarded_also_in_progress, in_callback};
use gridstone::base::{Cancel, Progress};
use gridstone::engine::{Array, Call, CancelFlag, CommitKey, Staged};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// A way to stop calls from another thread or from a signal's loop.
pub type gridstone_cancel = gridstone_handle;

/// Is called with the cells that are done and those in all, 0 while that is not known. Gives 0 to go on, anything else to cancel. It
/// may be called from any thread of the library, by one at a time, until the call returns and not after it. While it is called, other
/// reports are left out. It may call `gridstone_cancel_set` and what tells the last error; any other function gives
/// `GRIDSTONE_ERROR_BUSY`. It must return normally: neither `longjmp` nor an exception may leave it.
pub type gridstone_progress = Option<unsafe extern "C" fn(user: *mut c_void, done: u64, total: u64) -> i32>;

/// Lets the domain grow, in the same commit, to take in what is written.
pub const GRIDSTONE_CALL_GROW: u32 = 1;

/// What goes with a call; all of it may be 0. Where a function takes it, NULL means none of it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_call {
    /// `sizeof(gridstone_call)`
    pub size: usize,
    /// stops the call when it is set, or 0
    pub cancel: gridstone_cancel,
    /// receives how far the call is, or NULL
    pub progress: gridstone_progress,
    /// is passed to `progress`
    pub user: *mut c_void,
    /// the message of the commit, or NULL
    pub message: *const c_char,
    /// a key of 1 to 64 bytes, or NULL: a commit that is repeated with the same key and content is done once
    pub commit_key: *const u8,
    /// bytes of `commit_key`
    pub commit_key_bytes: usize,
    /// `GRIDSTONE_CALL_GROW`, or 0
    pub flags: u32,
    /// 0
    pub reserved: u32,
}

// SAFETY: it begins with its size; zeros are none of it; an optional function has a value for each pattern of bits.
unsafe impl OptionStruct for gridstone_call {
    const NAME: &'static str = "gridstone_call";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

pub(crate) struct Flag(CancelFlag);

impl Object for Flag {
    const NAME: &'static str = "a cancel";
}

/// A callback of the caller with its argument.
struct Reporter {
    report: unsafe extern "C" fn(*mut c_void, u64, u64) -> i32,
    user: *mut c_void,
    flag: CancelFlag,
    /// Whether the call goes on: nothing is reported after it.
    lock: std::sync::Mutex<bool>,
}

// SAFETY: the header says that it is called from any thread.
unsafe impl Send for Reporter {}
// SAFETY: as above; the lock lets one in at a time.
unsafe impl Sync for Reporter {}

impl Progress for Reporter {
    fn report(&self, done: u64, total: u64) {
        // No thread waits for a callback: one that comes while another is under way is left out.
        let Ok(goes_on) = self.lock.try_lock() else { return };
        if !*goes_on || self.flag.cancelled() {
            return;
        }
        // SAFETY: the caller gave both, and keeps them valid during the call, which has not ended: its end takes the lock.
        if in_callback(Callback::Progress, || unsafe { (self.report)(self.user, done, total) }) != 0 {
            self.flag.cancel();
        }
    }
}

/// Cancelled by the caller's handle, or by its callback.
struct Either(CancelFlag, CancelFlag);

impl Cancel for Either {
    fn cancelled(&self) -> bool {
        self.0.cancelled() || self.1.cancelled()
    }
}

/// A call as the engine wants it, and the message of its commit.
pub(crate) struct Asked {
    pub(crate) call: Call,
    pub(crate) message: Option<String>,
    is_cancelled_never: bool,
    _ends: Ends,
}

/// Ends the reports of a call with it: its callback may be gone then, whatever holds the reporter still.
struct Ends(Option<Arc<Reporter>>);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(reporter) = &self.0 {
            *reporter.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = false;
        }
    }
}

impl Asked {
    /// What the caller gave; a null pointer: nothing.
    ///
    /// # Safety
    /// The contract of the header.
    pub(crate) unsafe fn new(given: *const gridstone_call) -> Outcome<Self> {
        // SAFETY: passed on.
        let Some(given) = (unsafe { options(given) })? else {
            let (call, _ends) = (Call::default(), Ends(None));
            return Ok(Self { call, message: None, is_cancelled_never: true, _ends });
        };
        if given.flags & !GRIDSTONE_CALL_GROW != 0 {
            return Err(Failure::input(format!(
                "gridstone_call.flags is {}; there is GRIDSTONE_CALL_GROW",
                given.flags
            )));
        }
        // SAFETY: passed on.
        let (message, key) = unsafe {
            let key = slice(given.commit_key, given.commit_key_bytes, "gridstone_call.commit_key")?;
            (optional_text(given.message, "gridstone_call.message")?.map(str::to_owned), key)
        };
        let mut call = Call { grows: given.flags & GRIDSTONE_CALL_GROW != 0, ..Call::default() };
        if !given.commit_key.is_null() {
            call.commit_key = Some(CommitKey::new(key)?);
        }
        let outer = get_optional::<Flag>(given.cancel)?.map(|flag| flag.0.clone());
        let mut reporter = None;
        if let Some(report) = given.progress {
            let flag = CancelFlag::new();
            let lock = std::sync::Mutex::new(true);
            let made = Arc::new(Reporter { report, user: given.user, flag: flag.clone(), lock });
            call.progress = Arc::clone(&made) as Arc<dyn Progress>;
            reporter = Some(made);
            call.cancel = Arc::new(Either(outer.unwrap_or_default(), flag));
        } else if let Some(outer) = outer {
            call.cancel = Arc::new(outer);
        }
        Ok(Self { call, message, is_cancelled_never: false, _ends: Ends(reporter) })
    }

    /// Refuses a commit key, for changes that take none.
    pub(crate) fn check_keyless(&self) -> Outcome<()> {
        match self.call.commit_key {
            Some(_) => Err(Failure::input("this change takes no commit key; leave gridstone_call.commit_key NULL")),
            None => Ok(()),
        }
    }

    /// Refuses what belongs to the calls that staged the writes of a commit, and a commit that is cancelled before it begins.
    pub(crate) fn check_commit(&self) -> Outcome<()> {
        if self.call.commit_key.is_some() {
            return Err(Failure::input(
                "a commit of staged writes takes no commit key: give gridstone_call.commit_key to the calls that stage them",
            ));
        }
        self.check_begin()
    }

    /// Refuses growth, and a commit that is cancelled before it begins.
    pub(crate) fn check_begin(&self) -> Outcome<()> {
        if self.call.grows {
            return Err(Failure::input(
                "GRIDSTONE_CALL_GROW was given to a commit of staged writes: give it to the calls that stage them",
            ));
        }
        Ok(self.call.cancel.check()?)
    }

    /// Commits what was staged, unless the call was cancelled meanwhile, and gives the version.
    pub(crate) fn commit(self, array: &Array, staged: Staged) -> Outcome<u64> {
        self.call.cancel.check()?;
        Ok(array.commit(vec![staged], self.message)?)
    }

    /// Does `work`, unless the call is cancelled already; its waits for a network end once it is.
    pub(crate) fn run<R>(&self, work: impl FnOnce(&Call) -> gridstone::base::Result<R>) -> Outcome<R> {
        if self.is_cancelled_never {
            return Ok(work(&self.call)?);
        }
        self.call.cancel.check()?;
        Ok(self.call.run(|| work(&self.call))?)
    }
}

/// Makes a way to stop calls: give it to calls as `gridstone_call.cancel`. Free it with `gridstone_free`.
///
/// @param cancel where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_cancel_create(cancel: *mut gridstone_cancel) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(cancel, "cancel") }?;
        out.put(insert(Flag(CancelFlag::new()))?);
        Ok(())
    })
}

/// Stops the calls that it was given to, now and later, at their next block: they give `GRIDSTONE_ERROR_CANCELLED`, and nothing was
/// committed. A commit that has begun is brought to its end. Safe to call from any thread, and from a callback of progress.
///
/// @param cancel the cancel.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_cancel_set(cancel: gridstone_cancel) -> gridstone_status {
    guarded_also_in_progress(|| {
        get::<Flag>(cancel)?.0.cancel();
        Ok(())
    })
}
