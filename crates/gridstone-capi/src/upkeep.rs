//! Keeping stores quick, small and sound: consolidation, vacuum, checks, repair.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::context::gridstone_context;
use crate::group::GroupObject;
use crate::handle::{Object, get, get_either, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, optional_text, options, text, texts};
use crate::region::{gridstone_region, region_of};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, id_of, text_handle};
use gridstone::base::Result;
use gridstone::engine::{
    self, Array, ConsolidateReport, Consolidating, Context, Keep, MergeChoice, RepairOptions, Strategy, VacuumOptions,
};
use std::ffi::c_char;
use std::time::Duration;

/// Value of ages of `gridstone_vacuum_options` for none: nothing stays on account of its age.
pub const GRIDSTONE_NO_AGE: i64 = -1;

const USUAL_TARGET_BYTES: u64 = 512 << 20;
const USUAL_KEEP_US: i64 = 3_600_000_000;
const USUAL_SAFETY_US: i64 = 86_400_000_000;

/// Which fragments are merged, and into what; 0 everywhere: those that "tiered" chooses.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_consolidate_options {
    /// `sizeof(gridstone_consolidate_options)`
    pub size: usize,
    /// "tiered": fragments of similar size; "all"; "updates": small ones; "manifest": the list of fragments is packed. NULL: "tiered"
    pub strategy: *const c_char,
    /// ids of the fragments to merge, instead of a strategy; or NULL
    pub fragments: *const *const c_char,
    /// texts in `fragments`
    pub fragment_count: usize,
    /// merges all that touches the box around this region, instead of a strategy; or 0
    pub region: gridstone_region,
    /// bytes of a merged fragment, about; 0: 512 MiB
    pub target_bytes: u64,
    /// not 0: only says what would be merged
    pub dry_run: u32,
    /// 0
    pub reserved: u32,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_consolidate_options {
    const NAME: &'static str = "gridstone_consolidate_options";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

/// What a vacuum leaves; 0 everywhere: the versions of the last hour, and files of a day that no version names.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_vacuum_options {
    /// `sizeof(gridstone_vacuum_options)`
    pub size: usize,
    /// versions that were the newest at some moment of so many microseconds stay; 0: of an hour, unless `versions` says what stays;
    /// `GRIDSTONE_NO_AGE`: only the newest
    pub keep_us: i64,
    /// so many of the newest versions stay, instead of an age; 0: by age
    pub versions: u64,
    /// files that no version names stay for so many microseconds, as a writer may be about to commit them; 0: a day;
    /// `GRIDSTONE_NO_AGE`: they go at once, which needs that nobody writes
    pub safety_us: i64,
    /// not 0: only says what would be deleted
    pub dry_run: u32,
    /// 0
    pub reserved: u32,
}

// SAFETY: as above.
unsafe impl OptionStruct for gridstone_vacuum_options {
    const NAME: &'static str = "gridstone_vacuum_options";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

/// A consolidation that goes on in the background.
pub type gridstone_upkeep = gridstone_handle;

pub(crate) struct Upkeep(Consolidating);

impl Object for Upkeep {
    const NAME: &'static str = "an upkeep";
}

/// What is asked of a consolidation.
struct Merging {
    strategy: Strategy,
    target_bytes: u64,
    dry_run: bool,
}

impl Merging {
    /// What an option struct says.
    ///
    /// # Safety
    /// The contract of the header.
    unsafe fn new(array: &Array, given: *const gridstone_consolidate_options) -> Outcome<Self> {
        // SAFETY: passed on.
        let Some(given) = (unsafe { options(given) })? else {
            let strategy = array.strategy(&MergeChoice::Named("tiered"))?;
            return Ok(Self { strategy, target_bytes: USUAL_TARGET_BYTES, dry_run: false });
        };
        // SAFETY: passed on.
        let (name, fragments) = unsafe {
            (optional_text(given.strategy, "strategy")?, texts(given.fragments, given.fragment_count, "fragments")?)
        };
        let has_fragments = !given.fragments.is_null();
        if usize::from(name.is_some()) + usize::from(has_fragments) + usize::from(given.region != 0) > 1 {
            return Err(Failure::input("a strategy, fragments and a region were given together; give one of them"));
        }
        let ids = fragments.iter().map(|id| id_of(id, "fragments")).collect::<Outcome<Vec<_>>>()?;
        let region = region_of(array, given.region)?;
        let strategy = array.strategy(&match &region {
            Some(region) => MergeChoice::Within(region),
            None if has_fragments => MergeChoice::Fragments(&ids),
            None => MergeChoice::Named(name.unwrap_or("tiered")),
        })?;
        let target_bytes = if given.target_bytes == 0 { USUAL_TARGET_BYTES } else { given.target_bytes };
        Ok(Self { strategy, target_bytes, dry_run: given.dry_run != 0 })
    }
}

/// An age of an option struct.
fn age(given: i64, usual: i64, name: &str) -> Outcome<i64> {
    match given {
        0 => Ok(usual),
        GRIDSTONE_NO_AGE => Ok(0),
        1.. => Ok(given),
        _ => Err(Failure::input(format!("{name} is {given}; it is an age of microseconds, or GRIDSTONE_NO_AGE"))),
    }
}

/// The engine's options of a vacuum.
///
/// # Safety
/// The contract of the header.
pub(crate) unsafe fn vacuum_options(given: *const gridstone_vacuum_options) -> Outcome<VacuumOptions> {
    // SAFETY: passed on.
    let Some(given) = (unsafe { options(given) })? else {
        return Ok(VacuumOptions { keep: Keep::AgeUs(USUAL_KEEP_US), safety_us: USUAL_SAFETY_US, dry_run: false });
    };
    if given.versions != 0 && given.keep_us != 0 {
        return Err(Failure::input("keep_us says what stays by age, and versions by number; give one of them"));
    }
    let keep = match given.versions {
        0 => Keep::AgeUs(age(given.keep_us, USUAL_KEEP_US, "keep_us")?),
        count => Keep::Versions(count),
    };
    Ok(VacuumOptions {
        keep,
        safety_us: age(given.safety_us, USUAL_SAFETY_US, "safety_us")?,
        dry_run: given.dry_run != 0,
    })
}

/// Merges fragments of an array, in commits of their own; what it reads as stays. Readers and writers go on meanwhile.
///
/// @param array an array that is open for writing.
/// @param options_given what is merged, or NULL.
/// @param call what goes with the call, or NULL.
/// @param report where the text goes, an object of JSON that says what was merged, or NULL; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_CANCELLED`: merges that were committed by then stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_consolidate(
    array: gridstone_array,
    options_given: *const gridstone_consolidate_options,
    call: *const gridstone_call,
    report: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let wants_report = !report.is_null();
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked, what) =
            unsafe { (Out::optional(report, "report")?, Asked::new(call)?, Merging::new(&array.0, options_given)?) };
        let done = asked.run(|call| array.0.consolidate(&what.strategy, what.target_bytes, what.dry_run, call))?;
        if wants_report {
            out.put(text_handle(done.to_json())?);
        }
        Ok(())
    })
}

/// Starts a consolidation that goes on in the background. The array stays at its version.
///
/// @param array an array that is open for writing.
/// @param options_given what is merged, or NULL.
/// @param upkeep where the handle goes; free it with `gridstone_free`, which does not stop it.
///
/// `GRIDSTONE_ERROR_INPUT`: the array is being consolidated in the background already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_consolidate_begin(
    array: gridstone_array,
    options_given: *const gridstone_consolidate_options,
    upkeep: *mut gridstone_upkeep,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, what) = unsafe { (Out::new(upkeep, "upkeep")?, Merging::new(&array.0, options_given)?) };
        if what.dry_run {
            return Err(Failure::input("a consolidation in the background does what it says: leave dry_run 0"));
        }
        out.put(insert(Upkeep(array.0.consolidate_in_background(what.strategy, what.target_bytes)?))?);
        Ok(())
    })
}

/// The consolidation of an array that the context's policy has started and that goes on.
///
/// @param array the array.
/// @param upkeep where the handle goes, or 0 if there is none; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_upkeep(
    array: gridstone_array,
    upkeep: *mut gridstone_upkeep,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(upkeep, "upkeep") }?;
        let running = get::<ArrayObject>(array)?.0.upkeep();
        out.put(running.map(|running| insert(Upkeep(running))).transpose()?.unwrap_or(0));
        Ok(())
    })
}

/// Waits for a consolidation in the background. Many threads may wait for one.
///
/// @param upkeep the consolidation.
/// @param milliseconds how long at most; 0 only looks.
/// @param done where 1 goes if it has ended, else 0.
/// @param report where the text goes if it has ended, as that of `gridstone_array_consolidate`, else 0; or NULL. Free it with
/// `gridstone_free`.
///
/// If it has ended with an error, that is the error of this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_upkeep_wait(
    upkeep: gridstone_upkeep,
    milliseconds: u64,
    done: *mut i32,
    report: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let wants_report = !report.is_null();
        // SAFETY: the contract of the header.
        let (done, report) = unsafe { (Out::new(done, "done")?, Out::optional(report, "report")?) };
        // An instant so far away cannot be told: a century stands for it.
        const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
        let most = Duration::from_millis(milliseconds).min(LONGEST);
        let outcome = get::<Upkeep>(upkeep)?.0.wait(most);
        let told = match outcome.as_deref() {
            Some(Ok(found)) => Some(ConsolidateReport::to_json(found)),
            Some(Err(e)) => return Err(Failure::of(e)),
            None => None,
        };
        let is_done = told.is_some();
        if wants_report {
            report.put(told.map(text_handle).transpose()?.unwrap_or(0));
        }
        done.put(i32::from(is_done));
        Ok(())
    })
}

/// Stops a consolidation in the background at its next block; merges that were committed stay. Safe to call from any thread.
///
/// @param upkeep the consolidation.
#[unsafe(no_mangle)]
pub extern "C" fn gridstone_upkeep_cancel(upkeep: gridstone_upkeep) -> gridstone_status {
    guarded(|| {
        get::<Upkeep>(upkeep)?.0.cancel();
        Ok(())
    })
}

/// Forgets old versions of a whole store, and deletes what only they needed. The newest version, tagged ones and those that a reader uses
/// stay, and so does everything after the oldest of them.
///
/// @param node an array or group of the store that is open for writing.
/// @param options_given what stays, or NULL.
/// @param call what goes with the call, or NULL.
/// @param report where the text goes, an object of JSON that says what was deleted, or NULL; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_vacuum(
    node: gridstone_handle,
    options_given: *const gridstone_vacuum_options,
    call: *const gridstone_call,
    report: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let wants_report = !report.is_null();
        // SAFETY: the contract of the header.
        let (out, asked, what) =
            unsafe { (Out::optional(report, "report")?, Asked::new(call)?, vacuum_options(options_given)?) };
        let done = match get_either::<ArrayObject, GroupObject>(node)? {
            Ok(array) => asked.run(|call| array.0.vacuum(&what, call))?,
            Err(group) if what.dry_run => asked.run(|call| group.shown().vacuum(&what, call))?,
            Err(group) => {
                let shown = group.to_write()?;
                let done = asked.run(|call| shown.vacuum(&what, call))?;
                group.follow();
                done
            }
        };
        if wants_report {
            out.put(text_handle(done.to_json())?);
        }
        Ok(())
    })
}

/// What `work` tells of a store, as a text.
///
/// # Safety
/// The contract of the header.
unsafe fn report_of(
    (context, uri): (gridstone_context, *const c_char),
    call: *const gridstone_call,
    report: *mut gridstone_text,
    work: impl FnOnce(&Context, &str, &engine::Call) -> Result<String>,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: passed on.
        let (out, uri, asked) = unsafe { (Out::new(report, "report")?, text(uri, "uri")?, Asked::new(call)?) };
        let context = get::<Context>(context)?;
        out.put(text_handle(asked.run(|call| work(&context, uri, call))?)?);
        Ok(())
    })
}

/// Forgets old versions of the copy of a history, without a commit, so that it can be brought up to date afterwards.
///
/// @param context the context.
/// @param uri a store that `gridstone_store_copy` made with `history`.
/// @param options_given what stays, or NULL.
/// @param call what goes with the call, or NULL.
/// @param report where the text goes, as that of `gridstone_vacuum`; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_forget(
    context: gridstone_context,
    uri: *const c_char,
    options_given: *const gridstone_vacuum_options,
    call: *const gridstone_call,
    report: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (out, uri, asked, what) = unsafe {
            (Out::new(report, "report")?, text(uri, "uri")?, Asked::new(call)?, vacuum_options(options_given)?)
        };
        let context = get::<Context>(context)?;
        let done = asked.run(|call| engine::forget_copied(&context, uri, &what, call))?;
        out.put(text_handle(done.to_json())?);
        Ok(())
    })
}

/// Reads and checks every byte of an array at the version that it shows. Damage is reported and no error.
///
/// @param array the array.
/// @param call what goes with the call, or NULL.
/// @param report where the text goes, an object of JSON; its list `damage` is empty if all is well. Free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_verify(
    array: gridstone_array,
    call: *const gridstone_call,
    report: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(report, "report")?, Asked::new(call)?) };
        out.put(text_handle(asked.run(|call| array.0.verify(call))?.to_json())?);
        Ok(())
    })
}

/// Checks everything that a kept version of a store needs, also where nothing of it can be opened. Damage is reported and no error.
///
/// @param context the context.
/// @param uri the store.
/// @param call what goes with the call, or NULL.
/// @param report where the text goes, an object of JSON; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_verify(
    context: gridstone_context,
    uri: *const c_char,
    call: *const gridstone_call,
    report: *mut gridstone_text,
) -> gridstone_status {
    let verify =
        |context: &Context, uri: &str, call: &engine::Call| Ok(engine::verify_uri(context, uri, call)?.to_json());
    // SAFETY: the contract of the header.
    unsafe { report_of((context, uri), call, report, verify) }
}

/// Makes damaged and lost objects of a store again, as far as the rest of it tells how.
///
/// @param context the context.
/// @param uri the store.
/// @param dry_run not 0: only says what would be done.
/// @param cut not 0: the log is cut at its last sound version, if it is not sound to its end.
/// @param call what goes with the call, or NULL.
/// @param report where the text goes, an object of JSON that says what was done and what is left; free it with `gridstone_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_store_repair(
    context: gridstone_context,
    uri: *const c_char,
    dry_run: i32,
    cut: i32,
    call: *const gridstone_call,
    report: *mut gridstone_text,
) -> gridstone_status {
    let what = RepairOptions { dry_run: dry_run != 0, cut: cut != 0 };
    let repair =
        |context: &Context, uri: &str, call: &engine::Call| Ok(engine::repair(context, uri, what, call)?.to_json());
    // SAFETY: the contract of the header.
    unsafe { report_of((context, uri), call, report, repair) }
}
