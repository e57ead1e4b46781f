//! The figures as tables in Markdown, relative to those of the default block size.

use super::columns::{OTHERS, Packed};
use super::coords::{self, Coords};
use super::measure::{Figures, Measured, TIMED, median};
use super::rates::{self, Rated};
use super::sections::{self, Sections};
use gridstone::base::limits;
use gridstone::engine::BlockCells;
use std::fmt::Write;

/// The block size that is written by default.
pub(crate) fn default_cells(sparse: bool) -> u32 {
    let blocks = BlockCells::default();
    if sparse { blocks.sparse } else { blocks.dense }
}

fn seconds(value: f64) -> String {
    match value {
        v if v >= 1.0 => format!("{v:.2} s"),
        v if v >= 1e-3 => format!("{:.2} ms", v * 1e3),
        v => format!("{:.1} µs", v * 1e6),
    }
}

fn heading(first: &str) -> String {
    let mut text = format!("| {first} | size | index |");
    TIMED.iter().for_each(|name| text.push_str(&format!(" {name} |")));
    text.push_str(" decoded |\n|--:|");
    text.push_str(&"--:|".repeat(TIMED.len() + 3));
    text.push('\n');
    text
}

/// Size and times as ratios to `usual`.
fn ratios(row: &Figures, usual: &Figures) -> Vec<f64> {
    let size = row.sizes.total as f64 / usual.sizes.total as f64;
    std::iter::once(size).chain(row.seconds.iter().zip(&usual.seconds).map(|(a, b)| a / b)).collect()
}

fn index_percent(row: &Figures) -> f64 {
    100.0 * row.sizes.index as f64 / row.sizes.total as f64
}

/// One input with one choice of filters: absolute figures of the default size, ratios of the others.
pub(crate) fn of_input(measured: &Measured) -> String {
    let default = default_cells(measured.sparse);
    let Some(usual) = measured.rows.iter().find(|r| r.block_cells == default) else { return String::new() };
    let mut text = format!(
        "### {}, `{}`\n\n{}; {:.1} MB before packing\n\n{}",
        measured.name,
        measured.filters,
        measured.about,
        measured.raw_bytes as f64 / 1e6,
        heading("cells")
    );
    for row in &measured.rows {
        let first = if row.block_cells == default {
            let times = row.seconds.iter().map(|s| seconds(*s));
            std::iter::once(format!("{:.3} MB", row.sizes.total as f64 / 1e6)).chain(times).collect::<Vec<_>>()
        } else {
            ratios(row, usual).iter().map(|r| format!("{r:.2}")).collect()
        };
        let mut cells = first.into_iter();
        let _ = write!(
            text,
            "| {} | {} | {:.2} % |",
            row.block_cells,
            cells.next().unwrap_or_default(),
            index_percent(row)
        );
        cells.for_each(|cell| text.push_str(&format!(" {cell} |")));
        let _ = writeln!(text, " {:.1} |", row.decoded);
    }
    text
}

/// Whether an array is inline in a record of the log at some block size: such small ones are cached decoded, whatever
/// their blocks.
fn is_inline(measured: &Measured) -> bool {
    measured.rows.iter().any(|row| row.sizes.total <= limits::INLINE_BYTES_MAX as u64)
}

/// The medians of the inputs' tables, with the least and the greatest; without arrays that are inline in the log.
pub(crate) fn summary(all: &[Measured], sparse: bool, filters: &str) -> String {
    let wanted = |m: &&Measured| m.sparse == sparse && m.filters == filters && !is_inline(m);
    let chosen: Vec<&Measured> = all.iter().filter(wanted).collect();
    let Some(first) = chosen.first() else { return String::new() };
    let kind = if sparse { "sparse" } else { "dense" };
    let mut text = format!("### {} {kind} inputs together, `{filters}`\n\n{}", chosen.len(), heading("cells"));
    for (place, cells) in first.rows.iter().map(|r| r.block_cells).enumerate() {
        let pair = |m: &&Measured| {
            let usual = m.rows.iter().find(|r| r.block_cells == default_cells(sparse))?;
            Some(ratios(m.rows.get(place)?, usual))
        };
        let found: Vec<Vec<f64>> = chosen.iter().filter_map(pair).collect();
        let column = |at: usize| found.iter().filter_map(move |r| r.get(at).copied());
        let index = median(chosen.iter().filter_map(|m| m.rows.get(place)).map(index_percent).collect());
        let _ = write!(text, "| {cells} | {} | {index:.2} % |", spread(column(0)));
        (1..=TIMED.len()).for_each(|at| text.push_str(&format!(" {} |", spread(column(at)))));
        let decoded = chosen.iter().filter_map(|m| m.rows.get(place)).map(|r| r.decoded);
        let _ = writeln!(text, " {:.1} |", median(decoded.collect()));
    }
    text
}

/// The median, the least, the greatest.
fn spread(values: impl Iterator<Item = f64> + Clone) -> String {
    let (lo, hi) = values.clone().fold((f64::MAX, 0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    format!("**{:.2}** {lo:.2}–{hi:.2}", median(values.collect()))
}

/// Bytes of index per block, and the share of the whole at the default size.
pub(crate) fn index(all: &[Measured]) -> String {
    let mut text =
        "### Index\n\n| input | fields | blocks | index, bytes | per block |\n|---|--:|--:|--:|--:|\n".to_owned();
    for measured in all.iter().filter(|m| m.filters == "auto") {
        let default = default_cells(measured.sparse);
        for row in measured.rows.iter().filter(|r| r.block_cells == default) {
            let Some(finest) = measured.rows.first() else { continue };
            let more = finest.sizes.blocks.saturating_sub(row.sizes.blocks);
            let bytes = finest.sizes.index.saturating_sub(row.sizes.index) as f64;
            let slope = if more == 0 { "-".to_owned() } else { format!("{:.0}", bytes / more as f64) };
            let (fields, blocks) = (row.sizes.fields.len(), row.sizes.blocks);
            let _ = writeln!(text, "| {} | {fields} | {blocks} | {} | {slope} |", measured.name, row.sizes.index);
        }
    }
    text
}

/// Bytes per value, column by column, with the choice of `auto`; and the times of reading the columns, relative to
/// those of `auto`.
pub(crate) fn columns(all: &[Packed]) -> String {
    let head = |first: &str, last: &str| {
        let names: String = OTHERS.iter().map(|name| format!(" {name} |")).collect();
        let lines = "--:|".repeat(OTHERS.len());
        let end = if last.is_empty() { "" } else { "---|" };
        format!("| column | type | {first} |{names}{last}\n|---|---|--:|{lines}{end}\n")
    };
    let mut text = format!("### Columns, bytes per value\n\n{}", head("raw", " auto took |"));
    let cell = |value: Option<f64>| value.map_or(" - |".to_owned(), |v| format!(" {v:.3} |"));
    for one in all {
        let _ = write!(text, "| {} | {} |{}", one.name, one.datatype, cell(Some(one.width)));
        one.packed.iter().for_each(|p| text.push_str(&cell(p.as_ref().map(|p| p.bytes))));
        let _ = writeln!(text, " {} |", one.chosen.join(" · "));
    }
    text.push_str("\n### Columns, time of a read of everything, `auto` = 1\n\n");
    text.push_str(&head("auto, ns per value", ""));
    for one in all {
        let usual = one.packed.first().and_then(|p| p.as_ref().map(|p| p.seconds)).unwrap_or(1.0);
        let _ = write!(text, "| {} | {} | {:.1} |", one.name, one.datatype, usual * 1e9);
        one.packed.iter().for_each(|p| text.push_str(&cell(p.as_ref().map(|p| p.seconds / usual))));
        text.push('\n');
    }
    text
}

/// Coordinates: bytes on disk relative to their raw bytes, and the rates of packing and unpacking blocks.
pub(crate) fn coords(all: &[Coords]) -> String {
    let names: String = coords::PIPELINES.iter().map(|name| format!(" {name} |")).collect();
    let lines = "--:|".repeat(coords::PIPELINES.len());
    let mut text = "### Coordinates\n".to_owned();
    let titles = ["per cent of raw bytes", "GB/s encoded", "GB/s decoded"];
    for (title, part) in titles.into_iter().zip(0..) {
        let _ = write!(text, "\n{title}\n\n| input | raw |{names}\n|---|--:|{lines}\n");
        for one in all {
            let _ = write!(text, "| {} | {} |", one.name, one.raw_per_cell);
            for packed in &one.packed {
                let value = [100.0 * packed.share, packed.encode_rate / 1e9, packed.decode_rate / 1e9];
                let _ = write!(text, " {:.2} |", value.get(part).copied().unwrap_or_default());
            }
            text.push('\n');
        }
    }
    text
}

/// Every column by every pipeline that `auto` may choose: bytes, and nanoseconds to encode and to decode, per value.
pub(crate) fn rates(all: &[Rated]) -> String {
    let names: String = rates::PIPELINES.iter().map(|name| format!(" {name} |")).collect();
    let lines = "---|".repeat(rates::PIPELINES.len());
    let mut text =
        format!("### Rates: bytes, ns encoding, ns decoding per value\n\n| column | type |{names}\n|---|---|{lines}\n");
    for one in all {
        let _ = write!(text, "| {} | {} |", one.name, one.datatype);
        for rate in &one.rates {
            let _ = match rate {
                Some(r) => write!(text, " {:.3} {:.1} {:.1} |", r.bytes, r.encode * 1e9, r.decode * 1e9),
                None => write!(text, " - |"),
            };
        }
        text.push('\n');
    }
    text
}

/// Indexes: the size of each kind of section; and of all of them packed, with the time to unpack them.
pub(crate) fn sections(all: &[Sections]) -> String {
    let mut text =
        "### Sections of the index, bytes\n\n| input | section | bytes | of the fragment |\n|---|---|--:|--:|\n"
            .to_owned();
    for one in all {
        for (kind, bytes) in one.kinds.iter().filter(|(_, bytes)| *bytes > 0) {
            let share = 100.0 * *bytes as f64 / one.total as f64;
            let _ = writeln!(text, "| {} | {kind} | {bytes} | {share:.2} % |", one.name);
        }
    }
    let names: String = sections::PACKINGS.iter().map(|name| format!(" {name} |")).collect();
    let lines = "---|".repeat(sections::PACKINGS.len());
    let _ = write!(
        text,
        "\n### Sections packed: per cent of the fragment saved, µs to unpack\n\n| input | index |{names}\n|---|--:|{lines}\n"
    );
    for one in all {
        let whole: u64 = one.kinds.iter().map(|(_, bytes)| bytes).sum();
        let _ = write!(text, "| {} | {whole} |", one.name);
        for (bytes, seconds) in &one.packed {
            let saved = 100.0 * (whole as f64 - *bytes as f64) / one.total as f64;
            let _ = write!(text, " {saved:.2} % {:.1} |", seconds * 1e6);
        }
        text.push('\n');
    }
    text
}
