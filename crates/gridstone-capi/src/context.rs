//! Contexts: what arrays share.

use crate::handle::{Object, get, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, options, slice, texts};
use crate::status::{Callback, Failure, Outcome, gridstone_status, guarded, in_callback};
use gridstone::base::{Key, Keys};
use gridstone::engine::{AutoConsolidate, Context, Detail, Durability, Event, Events, Level, Options, StorageOptions};
use serde_json::{Map, Value, json};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

/// Threads, a memory budget, a cache and keys, shared by all that is opened with it. One is enough for a program.
pub type gridstone_context = gridstone_handle;

/// Writes reach the disk before they are acknowledged.
pub const GRIDSTONE_DURABILITY_FULL: u32 = 0;
/// Files are closed and not flushed: quicker, and a power cut may lose commits.
pub const GRIDSTONE_DURABILITY_CLOSE: u32 = 1;

/// Value of `gridstone_context_options.cache_bytes` for no cache at all.
pub const GRIDSTONE_NO_CACHE: u64 = u64::MAX;

/// Levels of `gridstone_log`: each step of the engine.
pub const GRIDSTONE_LOG_DEBUG: i32 = 10;
/// Commits, merges, vacuums.
pub const GRIDSTONE_LOG_INFO: i32 = 20;
/// What somebody should look at.
pub const GRIDSTONE_LOG_WARNING: i32 = 30;

/// Is called with what happens: the level, the topic as "commit", what happened in words, and its values as an object of JSON. It may be
/// called from any thread, several at once, while locks are held: it must not call the library, and must return normally.
pub type gridstone_log = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        level: i32,
        topic: *const c_char,
        what: *const c_char,
        details: *const c_char,
    ),
>;

/// Choices of a context; 0 everywhere means the usual value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_context_options {
    /// `sizeof(gridstone_context_options)`
    pub size: usize,
    /// bytes for scratch memory, caches and indexes, at least 1 MiB; 0: 1 GiB
    pub memory_budget: u64,
    /// bytes of decoded indexes and small fragments kept between calls; 0: 256 MiB; `GRIDSTONE_NO_CACHE`: none
    pub cache_bytes: u64,
    /// threads of the pool; 0: `GRIDSTONE_THREADS`, or the cores of this process
    pub threads: u32,
    /// `GRIDSTONE_DURABILITY_FULL` or `GRIDSTONE_DURABILITY_CLOSE`
    pub durability: u32,
    /// arrays with so many fragments, at least 2, are consolidated in the background; 0: none are
    pub auto_consolidate_fragments: u64,
    /// bytes of a fragment that is large enough for that; 0: 512 MiB
    pub auto_consolidate_bytes: u64,
    /// the key of sealed stores, 32 bytes, or NULL: that of the environment, if there is one
    pub key: *const u8,
    /// bytes of `key`
    pub key_bytes: usize,
    /// names and values of options of object stores in turn, as "endpoint", "http://…"; or NULL
    pub storage_options: *const *const c_char,
    /// texts in `storage_options`: twice the number of options
    pub storage_option_count: usize,
    /// folders and URLs under which attached files may lie; NULL: those in `GRIDSTONE_SOURCES`
    pub sources: *const *const c_char,
    /// texts in `sources`
    pub source_count: usize,
    /// receives what happens, or NULL; it must stay valid as long as anything that was opened with the context
    pub log: gridstone_log,
    /// is passed to `log`
    pub log_user: *mut c_void,
    /// the least level that is logged; 0: `GRIDSTONE_LOG_INFO`
    pub log_level: i32,
    /// 0
    pub reserved: u32,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_context_options {
    const NAME: &'static str = "gridstone_context_options";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

impl Object for Context {
    const NAME: &'static str = "a context";
}

const USUAL_MERGE_BYTES: u64 = 512 << 20;

/// A log callback with its argument.
struct Log {
    log: unsafe extern "C" fn(*mut c_void, i32, *const c_char, *const c_char, *const c_char),
    user: *mut c_void,
    level: i32,
}

// SAFETY: the header says that it is called from any thread, several at once.
unsafe impl Send for Log {}
// SAFETY: as above.
unsafe impl Sync for Log {}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

fn number(level: Level) -> i32 {
    match level {
        Level::Debug => GRIDSTONE_LOG_DEBUG,
        Level::Info => GRIDSTONE_LOG_INFO,
        Level::Warning => GRIDSTONE_LOG_WARNING,
    }
}

fn details_json(event: &Event) -> String {
    let value = |detail: &Detail| match detail {
        Detail::Number(number) => json!(number),
        Detail::Seconds(seconds) => json!(seconds),
        Detail::Text(text) => json!(text),
    };
    let named = event.details.iter().map(|(name, detail)| ((*name).to_owned(), value(detail)));
    Value::Object(named.collect::<Map<_, _>>()).to_string()
}

impl Events for Log {
    fn wants(&self, level: Level) -> bool {
        number(level) >= self.level
    }

    fn take(&self, event: Event) {
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let (topic, what, details) = (text(event.topic), text(event.what), text(&details_json(&event)));
        in_callback(Callback::Log, || {
            // SAFETY: the caller gave the function and its argument, and keeps both valid; the texts outlive the call.
            unsafe { (self.log)(self.user, number(event.level), topic.as_ptr(), what.as_ptr(), details.as_ptr()) };
        });
    }
}

/// The engine's options.
///
/// # Safety
/// The contract of the header.
unsafe fn engine_options(given: &gridstone_context_options) -> Outcome<Options> {
    let usual = Options::default();
    // SAFETY: passed on.
    let (key, storage, sources) = unsafe {
        (
            slice(given.key, given.key_bytes, "key")?,
            texts(given.storage_options, given.storage_option_count, "storage_options")?,
            texts(given.sources, given.source_count, "sources")?,
        )
    };
    let durability = match given.durability {
        GRIDSTONE_DURABILITY_FULL => Durability::Full,
        GRIDSTONE_DURABILITY_CLOSE => Durability::Close,
        other => {
            return Err(Failure::input(format!("durability is {other}; it is GRIDSTONE_DURABILITY_FULL or _CLOSE")));
        }
    };
    if storage.len() % 2 != 0 {
        return Err(Failure::input(format!(
            "storage_options has {} texts; give a value behind each name",
            storage.len()
        )));
    }
    let pairs = storage.chunks_exact(2).filter_map(|pair| Some((pair.first()?.to_string(), pair.last()?.to_string())));
    let key: Option<Arc<dyn Keys>> = if given.key.is_null() { None } else { Some(Arc::new(Key::from_slice(key)?)) };
    let fragments = given.auto_consolidate_fragments;
    let target_bytes = if given.auto_consolidate_bytes == 0 { USUAL_MERGE_BYTES } else { given.auto_consolidate_bytes };
    let level = if given.log_level == 0 { GRIDSTONE_LOG_INFO } else { given.log_level };
    let log = given.log.map(|log| Arc::new(Log { log, user: given.log_user, level }) as Arc<dyn Events>);
    Ok(Options {
        memory_budget: if given.memory_budget == 0 { usual.memory_budget } else { given.memory_budget },
        threads: (given.threads != 0).then_some(given.threads as usize),
        cache: match given.cache_bytes {
            0 => usual.cache,
            GRIDSTONE_NO_CACHE => 0,
            bytes => bytes,
        },
        durability,
        key,
        auto_consolidate: (fragments != 0).then_some(AutoConsolidate { fragments, target_bytes }),
        storage_options: StorageOptions::new(pairs.collect::<std::collections::HashMap<_, _>>())?,
        sources: (!given.sources.is_null()).then(|| sources.into_iter().map(str::to_owned).collect()),
        events: log,
        ..usual
    })
}

/// Makes a context. Free it with `gridstone_free`; what was opened with it goes on.
///
/// @param options_given its choices, or NULL for the usual ones.
/// @param context where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_context_create(
    options_given: *const gridstone_context_options,
    context: *mut gridstone_context,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, given) = unsafe { (Out::new(context, "context")?, options(options_given)?) };
        // SAFETY: the contract of the header.
        let chosen = given.map(|given| unsafe { engine_options(&given) }).transpose()?.unwrap_or_default();
        out.put(insert(Context::new(&chosen)?)?);
        Ok(())
    })
}

/// The most bytes of the memory budget that were in use at once since the context was made.
///
/// @param context the context.
/// @param bytes where the number goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_context_peak_bytes(context: gridstone_context, bytes: *mut u64) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(bytes, "bytes") }?;
        out.put(get::<Context>(context)?.peak_bytes());
        Ok(())
    })
}
