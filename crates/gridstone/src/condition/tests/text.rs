//! The meaning of texts, and the errors of invalid ones.

use super::super::{Comparison, Condition, Literal, fuzz};

fn same(a: &str, b: &str) {
    assert_eq!(Condition::parse(a).unwrap(), Condition::parse(b).unwrap(), "{a} | {b}");
}

fn prints(text: &str, as_text: &str) {
    assert_eq!(Condition::parse(text).unwrap().to_string(), as_text);
}

#[test]
fn one_tree_has_many_texts() {
    same("sog > 3 and status in (1, 5)", "SOG > 3 AND status IN [1, 5,]".replace("SOG", "sog").as_str());
    same("a > 1 & ~b | !c", "(a > 1 and not b) or not c");
    same("a > 1 && b || c", "a > 1 and b or c");
    same("1 < x <= 5", "x > 1 and x <= 5");
    same("x = 1", "x == 1");
    same("x <> 1", "x != 1");
    same("x is none", "x is null");
    same("x not in (1)", "not x in (1)");
    same("x not between 1 and 5", "not x between 1 and 5");
    same("x between 1 and 5 and y", "(x between 1 and 5) and y");
    same("`my col` > .5", "\"my col\" > 0.5");
    same("(((x))) >= ((1_000))", "x >= 0x3e8");
    same("x is not nan", "x == x");
    same("not a and b", "(not a) and b");
    same("\tx\n>=\r\n-1e3 ", "x >= -1000.0");
    same("x == b'\\x00A\\n\\''", "x == x'00410a27'");
    same("x == date '2024-05-01'", "x == timestamp '19844 D'");
    same("x == − 5", "x == -5");
    same("true or false", "TRUE OR FALSE");
}

#[test]
fn a_period_is_all_from_its_first_instant_to_its_last() {
    same("t in period('2024-02')", "t >= '2024-02' and t < '2024-03'");
    same("t in PERIOD ( '2024' )", "t >= '2024' and t < '2025'");
    same("t in period('2024-02-28')", "t >= '2024-02-28' and t < '2024-02-29'");
    same("t in period('2023-12-31T23')", "t >= '2023-12-31T23' and t < '2024-01-01T00'");
    same("t in period('2024-01-01T00:59:59.9')", "t >= '2024-01-01T00:59:59.900' and t < '2024-01-01T00:59:59.901'");
    same("t in period('2024-01-01T02+02:00')", "t >= '2024-01-01T00' and t < '2024-01-01T01'");
    same("t not in period('2024-02') and x", "not (t >= '2024-02' and t < '2024-03') and x");
    same("date(t) in period('2024-02')", "date(t) >= '2024-02' and date(t) < '2024-03'");
}

#[test]
fn texts_are_printed_in_one_way() {
    prints("a and (b and c) or not (d or e)", "(a and (b and c)) or not (d or e)");
    prints("1<x<y", "x > 1 and x < y");
    prints("`a \"b` = 'it''s'", "\"a \"\"b\" == 'it''s'");
    prints("\"in\" > 1", "\"in\" > 1");
    prints("Größe_2 >= nan", "Größe_2 >= nan");
    prints("x in ()", "x in ()");
    prints("x == timestamp '2024-05-01T02:03:04.5+02:00'", "x == timestamp '2024-05-01T00:03:04.500'");
    prints("x == timestamp '-9223372036854775807 as'", "x == timestamp '1969-12-31T23:59:50.776627963145224193'");
    prints("x < timestamp '9223372036854775807 D'", "x < timestamp '9223372036854775807 D'");
    prints("x < timedelta 'NaT W'", "x < timedelta 'NaT W'");
    prints("x > -0.0 and x < 1e300", "x > -0.0 and x < 1e300");
}

#[test]
fn dates_are_right() {
    for (text, ticks) in
        [("1969-12-31", -1), ("2000-02-29", 11_016), ("0000-03-01", -719_468), ("-4713-11-24", -2_440_588)]
    {
        let Condition::Compare { is: Comparison::Eq, value: Literal::Datetime(found, _), .. } =
            Condition::parse(&format!("t == date '{text}'")).unwrap()
        else {
            panic!("a comparison")
        };
        assert_eq!(found, ticks, "{text}");
    }
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let refused = |text: &str, message: &str, caret: usize| {
        let error = Condition::parse(text).unwrap_err();
        let mut lines = error.message().lines();
        let first = lines.next().unwrap();
        assert!(first.contains(message), "{text}: {first}");
        assert!(lines.next().is_some_and(|line| line.starts_with("  ")));
        assert_eq!(lines.next().unwrap().chars().count(), caret + 3, "{error}");
    };
    refused("", "expected a condition, found the end", 0);
    refused("sog >", "expected a value, found the end", 5);
    refused("sog > 3 and", "expected a condition, found the end", 11);
    refused("sog > 3 status", "expected \"and\", \"or\" or the end, found the name status", 8);
    refused("(sog > 3", "expected \")\"", 8);
    refused("sog > 3)", "found \")\"", 7);
    refused("sog in 5", "a list such as (1, 5)", 7);
    refused("sog in (1 2)", "expected \",\" or \")\"", 10);
    refused("sog in (a)", "found the column a", 8);
    refused("é between 1 or 5", "expected \"and\" and the upper end", 12);
    refused("x == null", "column is null", 5);
    refused("x is 5", "expected \"null\"", 5);
    refused("x not 5", "expected \"in\" or \"between\"", 6);
    refused("t in period('May')", "write 2024-05-01", 12);
    refused("t in period(2024)", "in quotes", 12);
    refused("t in period('2024'", "expected \")\"", 18);
    refused("t in period 2024", "expected \"(\"", 12);
    refused("1 < 2", "two values are compared", 2);
    refused("5", "expected a comparison", 1);
    refused("x == 'abc", "no closing '", 5);
    refused("x == \"abc", "no closing \"", 5);
    refused("x == 1e", "is no number", 5);
    refused("x == 1__0", "is no number", 5);
    refused("x == 12abc", "is no number", 5);
    refused("x == 340282366920938463463374607431768211456", "is no number", 5);
    refused("x == 170141183460469231731687303715884105728", "128 bits", 5);
    refused("x == $", "'$' has no meaning", 5);
    refused("x == x'0'", "hexadecimal", 5);
    refused("x == b'é'", "ASCII", 5);
    refused("t > timestamp 'soon'", "is no date or time", 14);
    refused("t > date '2024-01-01T05:00'", "write timestamp", 9);
    refused("abs '5'", "after the column", 4);
    let long = format!("{} and $", vec!["x > 1"; 1_000].join(" and "));
    let error = Condition::parse(&long).unwrap_err();
    assert!(error.message().len() < 400 && error.message().contains('…'));
}

#[test]
fn depth_and_size_have_limits() {
    for deep in [
        "(".repeat(100_000),
        format!("{}x{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{}x", "not ".repeat(100_000)),
        format!("x > {}", "(".repeat(100_000)),
        "x and (".repeat(100_000),
        "~".repeat(100_000),
    ] {
        assert!(Condition::parse(&deep).unwrap_err().message().contains("levels"));
        fuzz(deep.as_bytes()).unwrap();
    }
    let fifty = format!("{}x", "not ".repeat(49));
    assert_eq!(Condition::from_json(&Condition::parse(&fifty).unwrap().to_json()).unwrap().to_string(), fifty);
    assert!(Condition::parse(&format!("not {fifty}")).unwrap_err().message().contains("50 levels"));
    let nested = format!("{}x > 1{}", "(y and (z or ".repeat(24), "))".repeat(24));
    let tree = Condition::parse(&nested).unwrap();
    assert_eq!(Condition::from_json(&tree.to_json()).unwrap(), tree);
    assert!(Condition::from_json(&r#"{"op":"not","arg":"#.repeat(100_000)).is_err());
    let many = format!("x in ({})", vec!["1"; (1 << 20) + 1].join(","));
    assert!(Condition::parse(&many).unwrap_err().message().contains("parts"));
    assert!(Condition::parse(&vec!["x"; 100_000].join(" and ")).is_ok());
}

#[test]
fn json_is_stable() {
    let text = "sog > 3.5 and (status in (1, -5) or not (b and s is null)) and a <= c and t between '2024' and \
                timestamp '2024-05-01T12:00:00' and r == x'00ff' and s is not null and w != timedelta '5 W' and true";
    let json = concat!(
        r#"{"op":"and","args":[{"op":"compare","is":">","column":"sog","value":{"float":"3.5"}},"#,
        r#"{"op":"or","args":[{"op":"in","column":"status","values":[{"int":"1"},{"int":"-5"}]},"#,
        r#"{"op":"not","arg":{"op":"and","args":[{"op":"column","column":"b"},{"op":"is_null","column":"s"}]}}]},"#,
        r#"{"op":"compare_columns","is":"<=","left":"a","right":"c"},"#,
        r#"{"op":"between","column":"t","low":{"text":"2024"},"high":{"datetime":["1714564800","s"]}},"#,
        r#"{"op":"compare","is":"==","column":"r","value":{"bytes":"00ff"}},{"op":"is_not_null","column":"s"},"#,
        r#"{"op":"compare","is":"!=","column":"w","value":{"timedelta":["5","W"]}},{"op":"true"}]}"#
    );
    assert_eq!(Condition::parse(text).unwrap().to_json(), json);
    assert_eq!(Condition::from_json(json).unwrap(), Condition::parse(text).unwrap());
    for bad in [
        r#"{"op":"xor","args":[]}"#,
        r#"{"op":"and","args":[]}"#,
        r#"{"op":"and","args":[{"op":"true"}]}"#,
        r#"{"op":"is_null","column":"s","also":1}"#,
        r#"{"op":"compare","is":"=","column":"s","value":{"int":"1"}}"#,
        r#"{"op":"compare","is":"==","column":"s","value":{"int":"1.5"}}"#,
        r#"{"op":"compare","is":"==","column":"s","value":{"datetime":["1","parsec"]}}"#,
        r#"{"op":"compare","is":"==","column":"s","value":5}"#,
        "[]",
        "",
    ] {
        assert!(Condition::from_json(bad).is_err(), "{bad}");
    }
}
