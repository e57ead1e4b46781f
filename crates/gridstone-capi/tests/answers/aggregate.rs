//! Questions, answers in batches, reductions, counts, and conditions by themselves.

use super::fixture::*;
use gridstone_capi::*;
use std::ffi::CString;
use std::ptr::{null, null_mut};

fn ships() -> Handle {
    let array = sparse(r#"{"name":"kind","dtype":"string"},{"name":"v","dtype":"float64","nullable":true}"#);
    let kinds = texts("kind", &["tug", "ferry", "tug", "ferry", "tug", "yacht"]);
    let values = numbers("v", &[1.0, 2.0, 3.0, 4.0, 0.0, 9.0], f64::to_ne_bytes).with_nulls(&[1, 1, 1, 1, 0, 1]);
    write(&array, &[longs("x", &[0, 10, 25, 30, 40, 50]), kinds, values]);
    array
}

/// A question, and the texts that it points to.
struct Asked {
    _texts: Vec<CString>,
    keys: Vec<gridstone_group_key>,
    aggregates: Vec<gridstone_aggregate>,
    order: Vec<*const std::ffi::c_char>,
    question: gridstone_question,
}

fn ask(keys: &[&str], aggregates: &[(&str, &str)], having: Option<&str>, order: &[&str]) -> Asked {
    let mut texts = Vec::new();
    let mut keep = |text: &str| {
        texts.push(c(text));
        texts.last().unwrap().as_ptr()
    };
    let key = |text: &&str| gridstone_group_key {
        size: size_of::<gridstone_group_key>(),
        name: null(),
        expression: keep(text),
        bin: 0,
        bin_width: 0.0,
        period: null(),
    };
    let keys = keys.iter().map(key).collect();
    let aggregate = |(name, text): &(&str, &str)| gridstone_aggregate {
        size: size_of::<gridstone_aggregate>(),
        name: keep(name),
        text: keep(text),
    };
    let aggregates = aggregates.iter().map(aggregate).collect();
    let having = having.map_or(null(), &mut keep);
    let order = order.iter().map(|text| keep(text)).collect();
    let question = gridstone_question {
        size: size_of::<gridstone_question>(),
        region: 0,
        condition: null(),
        keys: null(),
        key_count: 0,
        aggregates: null(),
        aggregate_count: 0,
        having,
        order: null(),
        order_count: 0,
        limit: 0,
        any_order: 0,
        reserved: 0,
    };
    Asked { _texts: texts, keys, aggregates, order, question }
}

impl Asked {
    fn raw(&self) -> gridstone_question {
        gridstone_question {
            keys: self.keys.as_ptr(),
            key_count: self.keys.len(),
            aggregates: self.aggregates.as_ptr(),
            aggregate_count: self.aggregates.len(),
            order: self.order.as_ptr(),
            order_count: self.order.len(),
            ..self.question
        }
    }

    fn answer(&self, array: &Handle) -> Result<Handle, gridstone_status> {
        let mut result = 0;
        match unsafe { gridstone_array_aggregate(array.0, &self.raw(), null(), &mut result) } {
            GRIDSTONE_OK => Ok(Handle(result)),
            status => Err(status),
        }
    }
}

fn names(found: &[Option<Vec<u8>>]) -> Vec<String> {
    found.iter().map(|cell| String::from_utf8(cell.clone().unwrap()).unwrap()).collect()
}

#[test]
fn groups_ascend_by_their_keys_and_nulls_are_left_out() {
    let array = ships();
    let result = ask(&["kind"], &[("n", "count(*)"), ("m", "mean(v)")], None, &[]).answer(&array).ok().unwrap();
    let found = columns(&result);
    assert_eq!(names(&found[0].cells()), ["ferry", "tug", "yacht"]);
    assert_eq!((found[1].longs(), found[2].floats()), (vec![2, 3, 1], vec![3.0, 2.0, 9.0]));
}

#[test]
fn having_order_and_limit_choose_groups() {
    let array = ships();
    let mut asked = ask(&["kind"], &[("n", "count(*)")], Some("n < 3"), &["\"n\" desc", "kind"]);
    let found = columns(&asked.answer(&array).ok().unwrap());
    assert_eq!(names(&found[0].cells()), ["ferry", "yacht"]);
    asked = ask(&["kind"], &[("n", "count(*)")], None, &["n DESC"]);
    asked.question.limit = 1;
    let found = columns(&asked.answer(&array).ok().unwrap());
    assert_eq!(names(&found[0].cells()), ["tug"]);
}

#[test]
fn bins_and_conditions_are_taken() {
    let array = ships();
    let mut asked = ask(&["x"], &[("n", "count(*)")], None, &[]);
    asked.keys[0].bin = 20;
    let found = columns(&asked.answer(&array).ok().unwrap());
    assert_eq!((found[0].longs(), found[1].longs()), (vec![0, 20, 40], vec![2, 2, 2]));
    asked.keys[0] = gridstone_group_key { bin: 0, bin_width: 12.5, ..asked.keys[0] };
    let found = columns(&asked.answer(&array).ok().unwrap());
    assert_eq!(found[0].floats(), [0.0, 25.0, 37.5, 50.0]);
    let condition = c("kind = 'none'");
    asked.question.condition = condition.as_ptr();
    assert_eq!(rows(&asked.answer(&array).ok().unwrap()), 0);
}

#[test]
fn wrong_questions_are_named() {
    let array = ships();
    let wrong = |asked: &Asked, status, part| {
        assert_eq!(asked.answer(&array).err(), Some(status), "{}", message());
        assert!(message().contains(part), "{}", message());
    };
    let asked = ask(&["kind"], &[("n", "count(*")], None, &[]);
    wrong(&asked, GRIDSTONE_ERROR_INPUT, "");
    let mut asked = ask(&["x"], &[("n", "count(*)")], None, &["n"]);
    (asked.keys[0].bin, asked.keys[0].bin_width) = (2, 0.5);
    wrong(&asked, GRIDSTONE_ERROR_INPUT, "several widths");
    (asked.keys[0].bin, asked.keys[0].bin_width) = (0, f64::NAN);
    wrong(&asked, GRIDSTONE_ERROR_INPUT, "");
    (asked.keys[0].bin_width, asked.question.any_order) = (0.0, 1);
    wrong(&asked, GRIDSTONE_ERROR_INPUT, "order");
    wrong(&ask(&["kind"], &[("n", "count(*)")], None, &["nothing"]), GRIDSTONE_ERROR_INPUT, "nothing");
    wrong(&ask(&["kind"], &[("n", "sum(nothing)")], None, &[]), GRIDSTONE_ERROR_INPUT, "nothing");
    fails(unsafe { gridstone_array_aggregate(array.0, null(), null(), &mut 0) }, GRIDSTONE_ERROR_INPUT, "question");
}

#[test]
fn an_answer_in_batches_gives_every_group_once() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    let all: Vec<i64> = (0..1000).collect();
    write(&array, &[longs("x", &all), longs("v", &all)]);
    let asked = ask(&["x"], &[("s", "sum(v)")], None, &[]);
    let answers = made(|out| unsafe { gridstone_answers_create(array.0, &asked.raw(), null(), out) });
    drop(array);
    let mut found = Vec::new();
    loop {
        let mut batch = 1;
        ok(unsafe { gridstone_answers_next(answers.0, null(), &mut batch) });
        if batch == 0 {
            break;
        }
        let batch = Handle(batch);
        assert!(rows(&batch) > 0);
        found.extend(columns(&batch)[1].longs());
    }
    assert_eq!(found, all);
    let mut after = 5;
    ok(unsafe { gridstone_answers_next(answers.0, null(), &mut after) });
    assert_eq!(after, 0);
    assert!(told(|out| unsafe { gridstone_answers_counters(answers.0, out) }).contains("cells_returned"));
    fails(unsafe { gridstone_answers_next(answers.0, null(), null_mut()) }, GRIDSTONE_ERROR_INPUT, "result");
}

#[test]
fn a_cancelled_answer_is_over() {
    let (array, asked) = (ships(), ask(&["kind"], &[("n", "count(*)")], None, &[]));
    let answers = made(|out| unsafe { gridstone_answers_create(array.0, &asked.raw(), null(), out) });
    let cancel = made(|out| unsafe { gridstone_cancel_create(out) });
    ok(gridstone_cancel_set(cancel.0));
    let call = gridstone_call {
        size: size_of::<gridstone_call>(),
        cancel: cancel.0,
        progress: None,
        user: null_mut(),
        message: null(),
        commit_key: null(),
        commit_key_bytes: 0,
        flags: 0,
        reserved: 0,
    };
    fails(unsafe { gridstone_answers_next(answers.0, &call, &mut 0) }, GRIDSTONE_ERROR_CANCELLED, "");
    fails(unsafe { gridstone_answers_next(answers.0, null(), &mut 0) }, GRIDSTONE_ERROR_INPUT, "ended it");
    fails(unsafe { gridstone_array_count(array.0, 0, null(), &call, &mut 0) }, GRIDSTONE_ERROR_CANCELLED, "");
}

#[test]
fn a_reduction_keeps_axes() {
    let schema = r#"{"dims":[{"name":"i","dtype":"int64","domain":["0","1"]},{"name":"j","dtype":"int64","domain":["0","2"]}],
        "attrs":[{"name":"v","dtype":"int64"}]}"#;
    let array = array(schema);
    let given = [longs("v", &[1, 2, 3, 4, 5, 6])];
    let raw = raws(&given);
    ok(unsafe { gridstone_array_write(array.0, 0, GRIDSTONE_ORDER_ROW, raw.as_ptr(), 1, null(), null_mut()) });
    let asked = ask(&[], &[("s", "sum(v)"), ("m", "max(v)")], None, &[]);
    let reduce = |array: &Handle, kept: &[u64], condition: *const std::ffi::c_char, out: *mut u64| unsafe {
        let given = asked.aggregates.as_ptr();
        gridstone_array_reduce(array.0, 0, condition, given, 2, kept.as_ptr(), kept.len(), null(), out)
    };
    let result = made(|out| reduce(&array, &[1], null(), out));
    assert_eq!((shape(&result), columns(&result)[0].longs()), (vec![3], vec![5, 7, 9]));
    assert_eq!(columns(&result)[1].longs(), [4, 5, 6]);
    let result = made(|out| reduce(&array, &[], c("v > 4").as_ptr(), out));
    assert_eq!((shape(&result), columns(&result)[0].longs()), (vec![], vec![11]));
    fails(reduce(&array, &[2], null(), &mut 0), GRIDSTONE_ERROR_INPUT, "2 dimensions");
    fails(reduce(&array, &[1, 0], null(), &mut 0), GRIDSTONE_ERROR_INPUT, "ascending");
    fails(reduce(&ships(), &[0], null(), &mut 0), GRIDSTONE_ERROR_UNSUPPORTED, "sparse");
}

#[test]
fn cells_are_counted() {
    let (array, mut cells) = (ships(), 0);
    ok(unsafe { gridstone_array_count(array.0, 0, null(), null(), &mut cells) });
    assert_eq!(cells, 6);
    let condition = c("kind = 'tug' and v is not null");
    ok(unsafe { gridstone_array_count(array.0, 0, condition.as_ptr(), null(), &mut cells) });
    assert_eq!(cells, 2);
    let empty = sparse(r#"{"name":"v","dtype":"int8"}"#);
    ok(unsafe { gridstone_array_count(empty.0, 0, null(), null(), &mut cells) });
    assert_eq!(cells, 0);
}

#[test]
fn a_condition_says_what_it_means() {
    let (array, condition) = (ships(), c("x between 3 and 9 and v > 1"));
    let meaning = told(|out| unsafe { gridstone_array_check_condition(array.0, condition.as_ptr(), out) });
    assert_eq!(meaning, r#"{"columns":["x","v"],"box":[["3","9"]],"constant":null}"#);
    let wrong = c("nothing > 1");
    fails(
        unsafe { gridstone_array_check_condition(array.0, wrong.as_ptr(), &mut 0) },
        GRIDSTONE_ERROR_INPUT,
        "nothing",
    );
    fails(unsafe { gridstone_array_check_condition(array.0, null(), &mut 0) }, GRIDSTONE_ERROR_INPUT, "condition");
}
