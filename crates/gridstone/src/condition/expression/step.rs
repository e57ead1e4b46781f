//! Times that are counted in different steps: the step that both fit into, and ticks of one in ticks of another.

use super::super::time::{DAY, Moment, in_months};
use super::period::tick_of;
use crate::schema::{Datatype, TimeStep, TimeUnit};

/// How long a tick is.
enum Length {
    Months(i128),
    Attoseconds(i128),
}

fn length(step: TimeStep) -> Length {
    let years = step.unit() == TimeUnit::Year;
    tick_of(step).map_or(Length::Months(i128::from(step.count()) * if years { 12 } else { 1 }), Length::Attoseconds)
}

/// The finer of two steps, if whole ticks of it make up each tick of the other.
fn finer(a: TimeStep, b: TimeStep, dated: bool) -> Option<TimeStep> {
    match (length(a), length(b)) {
        (Length::Months(x), Length::Months(y)) | (Length::Attoseconds(x), Length::Attoseconds(y)) => match () {
            () if x % y == 0 => Some(b),
            () if y % x == 0 => Some(a),
            () => None,
        },
        // Months begin at midnight, and have whole days.
        (Length::Months(_), Length::Attoseconds(y)) => (dated && DAY % y == 0).then_some(b),
        (Length::Attoseconds(x), Length::Months(_)) => (dated && DAY % x == 0).then_some(a),
    }
}

/// The step in which times of two types are computed with each other, if there is one.
pub(super) fn common_step(a: Datatype, b: Datatype) -> Option<TimeStep> {
    match (a, b) {
        (Datatype::Datetime(x), Datatype::Datetime(y)) => finer(x, y, true),
        (Datatype::Datetime(x) | Datatype::Timedelta(x), Datatype::Timedelta(y))
        | (Datatype::Timedelta(x), Datatype::Datetime(y)) => finer(x, y, false),
        _ => None,
    }
}

/// Whether ticks of one type can be counted as ticks of the other.
pub(super) fn is_countable(from: Datatype, to: Datatype) -> bool {
    match (from, to) {
        (Datatype::Datetime(_), Datatype::Datetime(_)) => true,
        (Datatype::Timedelta(a), Datatype::Timedelta(b)) => in_months(a.unit()) == in_months(b.unit()),
        _ => false,
    }
}

/// The tick of `to` in which a tick of `from` begins; NaT stays. `None`: beyond 64 bits.
pub(super) fn recounted(tick: i64, from: Datatype, to: Datatype) -> Option<i64> {
    match (from, to) {
        _ if tick == i64::MIN => Some(tick),
        (Datatype::Datetime(from), Datatype::Datetime(to)) => Moment::of_datetime(tick, from).ticks_down(to, true),
        (Datatype::Timedelta(from), Datatype::Timedelta(to)) => Moment::of_timedelta(tick, from).ticks_down(to, false),
        _ => None,
    }
}
