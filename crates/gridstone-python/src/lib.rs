//! Python glue: one verb per file; each converts, releases the GIL and calls one function of the engine.
//!
//! What Python sees of it is `python/gridstone/_native.pyi`. No logic lives here.

mod aggregate;
mod append;
mod array;
mod attach;
mod boxes;
mod buffer;
mod cells;
mod columns;
mod condition;
mod consolidate;
mod context;
mod copies;
mod errors;
mod filters;
mod group;
mod health;
mod interrupt;
mod journal;
mod keys;
mod labels;
mod listings;
mod portions;
mod positions;
mod retention;
mod store;
mod transaction;
mod writer;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<condition::Condition>()?;
    module.add_class::<context::Context>()?;
    module.add_class::<keys::Keys>()?;
    module.add_class::<cells::Cells>()?;
    module.add_class::<cells::Scan>()?;
    module.add_class::<aggregate::Answers>()?;
    module.add_class::<portions::Portions>()?;
    module.add_class::<writer::Staged>()?;
    module.add_class::<writer::Writer>()?;
    module.add_class::<array::Array>()?;
    module.add_class::<labels::Field>()?;
    module.add_class::<consolidate::Upkeep>()?;
    module.add_class::<group::Group>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_function(wrap_pyfunction!(store::create_array, module)?)?;
    module.add_function(wrap_pyfunction!(store::create_group, module)?)?;
    module.add_function(wrap_pyfunction!(store::open, module)?)?;
    module.add_function(wrap_pyfunction!(store::exists, module)?)?;
    module.add_function(wrap_pyfunction!(store::delete_store, module)?)?;
    module.add_function(wrap_pyfunction!(store::check_schema, module)?)?;
    module.add_function(wrap_pyfunction!(condition::parse_condition, module)?)?;
    module.add_function(wrap_pyfunction!(condition::check_condition, module)?)?;
    module.add_function(wrap_pyfunction!(condition::select_rows, module)?)?;
    module.add_function(wrap_pyfunction!(transaction::commit_receipts, module)?)?;
    module.add_function(wrap_pyfunction!(transaction::check_receipt, module)?)?;
    module.add_function(wrap_pyfunction!(filters::register_filter, module)?)?;
    module.add_function(wrap_pyfunction!(filters::registered_filters, module)?)?;
    module.add_function(wrap_pyfunction!(keys::environment_keys, module)?)?;
    module.add_function(wrap_pyfunction!(aggregate::aggregate, module)?)?;
    module.add_function(wrap_pyfunction!(aggregate::answers, module)?)?;
    module.add_function(wrap_pyfunction!(aggregate::reduce, module)?)?;
    module.add_function(wrap_pyfunction!(aggregate::reduce_nothing, module)?)?;
    module.add_function(wrap_pyfunction!(aggregate::partial, module)?)?;
    module.add_function(wrap_pyfunction!(aggregate::merge_partials, module)?)?;
    module.add_function(wrap_pyfunction!(aggregate::finish_partials, module)?)?;
    module.add_function(wrap_pyfunction!(append::append_block, module)?)?;
    module.add_function(wrap_pyfunction!(attach::foreign_tree, module)?)?;
    module.add_function(wrap_pyfunction!(attach::look_at_source, module)?)?;
    module.add_function(wrap_pyfunction!(attach::stage_external, module)?)?;
    module.add_function(wrap_pyfunction!(condition::stage_delete_where, module)?)?;
    module.add_function(wrap_pyfunction!(attach::foreign_sources, module)?)?;
    module.add_function(wrap_pyfunction!(attach::attached_boxes, module)?)?;
    module.add_function(wrap_pyfunction!(attach::replace_attached, module)?)?;
    module.add_function(wrap_pyfunction!(labels::labels_of, module)?)?;
    module.add_function(wrap_pyfunction!(labels::alter_labelled, module)?)?;
    module.add_function(wrap_pyfunction!(labels::shared_labels, module)?)?;
    module.add_function(wrap_pyfunction!(store::tag, module)?)?;
    module.add_function(wrap_pyfunction!(store::untag, module)?)?;
    module.add_function(wrap_pyfunction!(copies::copy, module)?)?;
    module.add_function(wrap_pyfunction!(copies::move_node, module)?)?;
    module.add_function(wrap_pyfunction!(retention::forget_copied, module)?)?;
    module.add_function(wrap_pyfunction!(retention::store_usage, module)?)?;
    module.add_function(wrap_pyfunction!(journal::log_events, module)?)?;
    module.add_function(wrap_pyfunction!(copies::upgrade, module)?)?;
    module.add_function(wrap_pyfunction!(health::verify_store, module)?)?;
    module.add_function(wrap_pyfunction!(health::repair, module)?)?;
    filters::register_families(module.py())
}
