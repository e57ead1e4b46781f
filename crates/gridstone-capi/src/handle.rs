//! Handles: 64-bit values that name what the library holds for a caller.
//!
//! ```text
//!  63                        24 23         0
//!  | generation of the slot    | slot       |      a slot's generation rises whenever it is freed,
//!                                                  so a handle that was freed fits no slot any more
//! ```
//!
//! The table is one for the process. Its lock is held for moments; what a handle names is counted, so that a call goes on with it
//! though another thread frees it. A fork waits for the lock, so that the child's table is whole; and for [`Brief`] ones.

use crate::status::{Failure, GRIDSTONE_ERROR_BUSY, GRIDSTONE_ERROR_HANDLE, Outcome, gridstone_status, guarded};
use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Any handle; 0 is none.
pub type gridstone_handle = u64;

const SLOT_BITS: u32 = 24;
const SLOTS_MAX: usize = 1 << SLOT_BITS;
const GENERATION_MAX: u64 = u64::MAX >> SLOT_BITS;

/// What a handle can name.
pub(crate) trait Object: Any + Send + Sync {
    /// Its name with an article, for messages: "an array".
    const NAME: &'static str;
}

/// An object beside its name.
#[derive(Clone)]
struct Held {
    name: &'static str,
    object: Arc<dyn Any + Send + Sync>,
}

struct Slot {
    generation: u64,
    held: Option<Held>,
}

struct Table {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { slots: Vec::new(), free: Vec::new() });

fn read() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Table> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Is read-locked as long as a [`Brief`] is locked.
static BRIEF: RwLock<()> = RwLock::new(());

/// Both locks while a thread forks: that of what is locked briefly, and the table's.
type Forking = (RwLockWriteGuard<'static, ()>, RwLockWriteGuard<'static, Table>);

thread_local! {
    static FORKING: RefCell<Option<Forking>> = const { RefCell::new(None) };
}

/// Takes the locks for a fork.
extern "C" fn before_fork() {
    let _ = FORKING.try_with(|held| {
        let brief = BRIEF.write().unwrap_or_else(PoisonError::into_inner);
        held.replace(Some((brief, write())))
    });
}

/// Gives them back, in the parent and in the child.
extern "C" fn after_fork() {
    let _ = FORKING.try_with(|held| drop(held.take()));
}

fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions are static and take nothing. It fails for want of memory alone: then a fork beside a call of
        // another thread may leave the child's table locked, which is what happens without handlers.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    });
}

/// Puts an object into the table, and gives its handle.
pub(crate) fn insert<T: Object>(object: T) -> Outcome<gridstone_handle> {
    watch_forks();
    let held = Held { name: T::NAME, object: Arc::new(object) };
    let mut table = write();
    let place = match table.free.pop() {
        Some(place) => place,
        None if table.slots.len() < SLOTS_MAX => {
            table.slots.push(Slot { generation: 1, held: None });
            table.slots.len() - 1
        }
        None => return Err(Failure::new(GRIDSTONE_ERROR_HANDLE, format!("{SLOTS_MAX} handles are open; free some"))),
    };
    let slot = table.slots.get_mut(place).ok_or_else(|| unknown(0, T::NAME))?;
    slot.held = Some(held);
    Ok(slot.generation << SLOT_BITS | place as u64)
}

fn place_of(handle: gridstone_handle) -> (usize, u64) {
    ((handle & (SLOTS_MAX as u64 - 1)) as usize, handle >> SLOT_BITS)
}

fn unknown(handle: gridstone_handle, wanted: impl Display) -> Failure {
    let what = if handle == 0 {
        "0 is no handle".to_owned()
    } else {
        format!("the handle {handle:#x} was freed, or never given")
    };
    Failure::new(GRIDSTONE_ERROR_HANDLE, format!("{what}; {wanted} is needed"))
}

/// What a handle names; `wanted`: what is needed, with an article.
fn held(handle: gridstone_handle, wanted: impl Display) -> Outcome<Held> {
    let (place, generation) = place_of(handle);
    let table = read();
    let slot = table.slots.get(place).filter(|slot| slot.generation == generation);
    slot.and_then(|slot| slot.held.clone()).ok_or_else(|| unknown(handle, wanted))
}

fn of_another_kind(handle: gridstone_handle, name: &str, wanted: impl Display) -> Failure {
    Failure::new(GRIDSTONE_ERROR_HANDLE, format!("the handle {handle:#x} is {name}; {wanted} is needed"))
}

/// The object that a handle names.
pub(crate) fn get<T: Object>(handle: gridstone_handle) -> Outcome<Arc<T>> {
    let Held { name, object } = held(handle, T::NAME)?;
    object.downcast::<T>().map_err(|_| of_another_kind(handle, name, T::NAME))
}

/// The object that a handle names, which is of one of two kinds.
pub(crate) fn get_either<A: Object, B: Object>(handle: gridstone_handle) -> Outcome<Result<Arc<A>, Arc<B>>> {
    let Held { name, object } = held(handle, format_args!("{} or {}", A::NAME, B::NAME))?;
    let object = match object.downcast::<A>() {
        Ok(first) => return Ok(Ok(first)),
        Err(object) => object.downcast::<B>(),
    };
    object.map(Err).map_err(|_| of_another_kind(handle, name, format_args!("{} or {}", A::NAME, B::NAME)))
}

/// As [`get`]; `None` for 0.
pub(crate) fn get_optional<T: Object>(handle: gridstone_handle) -> Outcome<Option<Arc<T>>> {
    if handle == 0 { Ok(None) } else { get(handle).map(Some) }
}

/// Takes the object of a handle out of the table.
fn remove(handle: gridstone_handle) -> Outcome<Held> {
    let (place, generation) = place_of(handle);
    let mut table = write();
    let slot = table.slots.get_mut(place).filter(|slot| slot.generation == generation);
    let slot = slot.ok_or_else(|| unknown(handle, "a handle"))?;
    let held = slot.held.take().ok_or_else(|| unknown(handle, "a handle"))?;
    slot.generation += 1;
    // A slot whose generations are used up is never given again.
    if slot.generation <= GENERATION_MAX {
        table.free.push(place);
    }
    Ok(held)
}

/// Frees a handle that no caller was given.
pub(crate) fn forget(handle: gridstone_handle) {
    let _ = remove(handle);
}

/// Gives a handle back, of any kind; 0 does nothing. Calls of other threads that are using it go on. A writer that was not finished is
/// aborted by it, a transaction that was not committed too, and what was staged and not committed is deleted.
///
/// @param handle the handle, or 0.
///
/// Safe to call from any thread. `GRIDSTONE_ERROR_HANDLE`: it was freed before, or never given.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_free(handle: gridstone_handle) -> gridstone_status {
    guarded(|| if handle == 0 { Ok(()) } else { remove(handle).map(drop) })
}

/// Handles that are open in this process, for tests that look for leaks.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_open_handles() -> u64 {
    read().slots.iter().filter(|slot| slot.held.is_some()).count() as u64
}

/// What many threads use, each for a moment. A fork waits for them, so that it is not locked in the child.
#[derive(Debug, Default)]
pub(crate) struct Brief<T>(Mutex<T>);

impl<T> Brief<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self(Mutex::new(inner))
    }

    /// Does `work` with it, which is short, takes no other lock and calls nothing of the caller.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let _no_fork = BRIEF.read().unwrap_or_else(PoisonError::into_inner);
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What serves one thread at a time, until it is used up.
pub(crate) struct Exclusive<T>(Mutex<Option<T>>);

impl<T> Exclusive<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self(Mutex::new(Some(inner)))
    }

    /// Does `work` with it, unless another thread does or it is used up; `name`: with an article.
    pub(crate) fn with<R>(&self, name: &str, work: impl FnOnce(&mut T) -> Outcome<R>) -> Outcome<R> {
        let mut held = self.held(name)?;
        work(held.as_mut().ok_or_else(|| used_up(name))?)
    }

    /// Takes it out.
    pub(crate) fn take(&self, name: &str) -> Outcome<T> {
        self.held(name)?.take().ok_or_else(|| used_up(name))
    }

    /// Puts back what [`Self::take`] took, once no other thread looks.
    pub(crate) fn put_back(&self, inner: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(inner);
    }

    /// The slot itself, for a moment.
    pub(crate) fn held(&self, name: &str) -> Outcome<std::sync::MutexGuard<'_, Option<T>>> {
        match self.0.try_lock() {
            Ok(held) => Ok(held),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                // A panic has left it half done.
                let mut held = poisoned.into_inner();
                *held = None;
                Ok(held)
            }
            Err(std::sync::TryLockError::WouldBlock) => Err(Failure::new(
                GRIDSTONE_ERROR_BUSY,
                format!("another thread is using {name}; wait for its call to end"),
            )),
        }
    }
}

fn used_up(name: &str) -> Failure {
    Failure::new(
        GRIDSTONE_ERROR_HANDLE,
        format!("{name} was given to a commit, finished or aborted before; make another one"),
    )
}
