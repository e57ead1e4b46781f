//! Formats a comparison.

use super::baseline::{Baseline, Row, Verdict};
use std::fmt::Write;

/// A line per workload.
pub(super) fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default().max("workload".len());
    let mut text = format!("{:width$}  {:>13}  {:>13}  {:>8}\n", "workload", "baseline", "now", "change");
    for row in rows {
        let (before, now) = (grouped(row.before), grouped(row.now));
        let change = row.percent().map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.2} %"));
        let mark = match row.verdict {
            Verdict::Same => "",
            Verdict::More => "  MORE",
            Verdict::Less => "  less",
            Verdict::New => "  NEW",
            Verdict::Gone => "  GONE",
        };
        let _ = writeln!(text, "{:width$}  {before:>13}  {now:>13}  {change:>8}{mark}", row.name);
    }
    text
}

/// Advice on the result.
pub(super) fn summary(rows: &[Row], before: &Baseline, now: &Baseline) -> String {
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let mut text = format!("instructions: {} workloads", rows.len());
    for (verdict, says) in [
        (Verdict::More, "take more than allowed: make them cheaper, or record and say in the commit what it buys"),
        (Verdict::Less, "take so much less that the baseline no longer guards them: record it"),
        (Verdict::New, "have no baseline: record it"),
        (Verdict::Gone, "are only in the baseline: record it"),
    ] {
        let found = count(verdict);
        if found > 0 {
            let _ = write!(text, "\ninstructions: {found} {says}");
        }
    }
    let fails = rows.iter().any(|row| row.verdict.fails());
    for (was, is) in [(&before.compiler, &now.compiler), (&before.valgrind, &now.valgrind)] {
        if fails && was != is {
            let _ = write!(
                text,
                "\ninstructions: the baseline is of {was}, this is {is}: count the commit before as well; if it \
                 deviates alike, record"
            );
        }
    }
    text
}

/// A number with a comma every three digits.
fn grouped(number: Option<u64>) -> String {
    let Some(number) = number else { return "-".to_owned() };
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, before: Option<u64>, now: Option<u64>, verdict: Verdict) -> Row {
        Row { name: name.to_owned(), before, now, verdict }
    }

    fn baseline(compiler: &str) -> Baseline {
        let text = format!(
            "arch = \"a\"\ncompiler = \"{compiler}\"\nvalgrind = \"v\"\n[allowed_percent]\ndefault = 5\n[instructions]\n"
        );
        Baseline::parse(&text).unwrap()
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(Some(number)), text);
        }
        assert_eq!(grouped(None), "-");
    }

    #[test]
    fn a_row_shows_the_change_and_what_it_means() {
        let rows = [row("a", Some(1_000), Some(1_200), Verdict::More), row("b", None, Some(5), Verdict::New)];
        let text = table(&rows);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a", "1,000", "1,200", "+20.00", "%", "MORE"]);
        assert_eq!(lines[2], ["b", "-", "5", "-", "NEW"]);
    }

    #[test]
    fn another_compiler_is_named_where_it_may_be_the_reason() {
        let (old, new) = (baseline("rustc 1"), baseline("rustc 2"));
        let more = [row("a", Some(10), Some(20), Verdict::More)];
        assert!(summary(&more, &old, &new).contains("of rustc 1, this is rustc 2"));
        assert!(!summary(&more, &old, &old).contains("rustc"));
        let less = [row("a", Some(20), Some(10), Verdict::Less)];
        let text = summary(&less, &old, &new);
        assert!(text.contains("1 take so much less") && !text.contains("rustc"), "{text}");
    }
}
