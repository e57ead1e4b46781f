//! Schemas as JSON: what is read, what is refused, and what is written.

use crate::schema::*;

const AIS: &str = r#"{"sparse":true,"capacity":1000,"tile_order":"col","cell_order":"row","duplicates":true,
    "coord_filters":"delta,zstd:3","dims":[{"name":"x","dtype":"int64","domain":["-9","999"],"tile":"100"},
    {"name":"t","dtype":"datetime64[s]","domain":["0","999"],"tile":null}],
    "attrs":[{"name":"sog","dtype":"float32","nullable":true,"fill":"-1.5","filters":"shuffle,zstd:1"},
    {"name":"name","dtype":"string"}]}"#;

#[test]
fn schemas_survive_json() {
    let mut text = AIS.to_owned();
    text = text.replace("delta,zstd:3", "zstd:3");
    let schema = Schema::from_json(&text).unwrap();
    assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
    assert_eq!(schema.attrs()[1].id(), 1);
    assert_eq!(schema.attrs()[0].fill(), (-1.5f32).to_le_bytes());
}

#[test]
fn text_dimensions_are_several_axes() {
    let with = |gene: &str, rest: &str| {
        Schema::from_json(&format!(
            r#"{{"sparse":true,"dims":[{{"name":"x","dtype":"int8","domain":["0","9"]}},{{"name":"gene","dtype":"string"{gene}}}],
            "attrs":[{{"name":"v","dtype":"int8"}}]{rest}}}"#
        ))
    };
    let schema = with("", "").unwrap();
    assert_eq!((schema.ndim(), schema.coordinates().count()), (5, 2));
    let gene = schema.coordinates().nth(1).unwrap();
    assert_eq!(
        (gene.name(), gene.datatype(), gene.axes(), gene.max_bytes()),
        ("gene", Datatype::String, 1..5, Some(32))
    );
    assert!(schema.to_json().contains(r#"{"name":"gene","dtype":"string","domain":null,"tile":null,"max_bytes":32}"#));
    assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
    assert_eq!(with(r#","max_bytes":9"#, "").unwrap().ndim(), 3);
    assert_eq!(schema.slowest_first(Order::Row), [0, 1, 2, 3, 4]);
    assert_eq!(schema.slowest_first(Order::Col), [1, 2, 3, 4, 0], "the words of a text keep their order");
    assert_eq!(with(r#","max_bytes":248"#, "").unwrap().ndim(), 32);
    assert_eq!(
        schema.describe_cell(|axis| [(1 << 63) + 3, 0x41 << 56].get(axis).copied().unwrap_or(0)),
        "x=3, gene=\"A\""
    );
    for (gene, rest, word) in [
        (r#","max_bytes":0"#, "", "max_bytes"),
        (r#","max_bytes":257"#, "", "256"),
        (r#","max_bytes":256"#, "", "33 axes"),
        (r#","domain":["a","b"]"#, "", "no domain"),
        (r#","tile":"3""#, "", "one tile"),
        ("", r#","cell_order":"hilbert""#, "Hilbert"),
        ("", r#","coord_filters":"zstd:99""#, "zstd"),
    ] {
        let error = with(gene, rest).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    let dense = with("", "").unwrap().to_json().replace("\"sparse\":true", "\"sparse\":false");
    assert!(Schema::from_json(&dense).unwrap_err().message().contains("is text"));
    let number = r#"{"dims":[{"name":"x","dtype":"int8"}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
    assert!(Schema::from_json(number).unwrap_err().message().contains("needs a domain"));
    let number = number.replacen("\"int8\"}]", "\"int8\",\"domain\":[\"0\",\"9\"],\"max_bytes\":8}]", 1);
    assert!(Schema::from_json(&number).unwrap_err().message().contains("max_bytes"));
}

#[test]
fn categories_survive_json() {
    let of = |attr: &str| {
        Schema::from_json(&format!(r#"{{"dims":[{{"name":"x","dtype":"int8","domain":["0","9"]}}],"attrs":[{attr}]}}"#))
    };
    let schema = of(r#"{"name":"a","dtype":"string","categories":["ok","bad"],"fill":"bad"}"#).unwrap();
    let attr = &schema.attrs()[0];
    assert_eq!((attr.datatype(), attr.value_type(), attr.fill()), (Datatype::UInt8, Datatype::String, &[1][..]));
    let text = schema.to_json();
    assert!(
        text.contains(r#""fill":"bad","filters":"auto","categories":["ok","bad"],"ordered":false,"codes":"uint8""#)
    );
    assert_eq!(Schema::from_json(&text).unwrap(), schema);
    let wide =
        of(r#"{"name":"a","dtype":"int64","categories":[],"ordered":true,"codes":"uint32","nullable":true}"#).unwrap();
    assert_eq!(Schema::from_json(&wide.to_json()).unwrap(), wide);
    assert!(wide.to_json().contains("\"fill\":null"));
    for (attr, word) in [
        (r#"{"name":"a","dtype":"string","categories":[]}"#, "without a category"),
        (r#"{"name":"a","dtype":"string","categories":["b"],"fill":"c"}"#, "none of the categories"),
        (r#"{"name":"a","dtype":"string","ordered":true}"#, "are of attributes with"),
        (r#"{"name":"a","dtype":"uint8","codes":"uint8"}"#, "are of attributes with"),
        (r#"{"name":"a","dtype":"string","categories":["b","b"]}"#, "twice"),
        (r#"{"name":"a","dtype":"string","categories":["b"],"codes":"int8"}"#, "uint8, uint16 or uint32"),
        (r#"{"name":"a","dtype":"list[int8]","categories":["[1]"]}"#, "not list[int8]"),
        (r#"{"name":"a","dtype":"float32","categories":["1.5"],"filters":"bitround:3"}"#, "floats"),
    ] {
        let error = of(attr).unwrap_err();
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn changes_are_read_from_json() {
    let text = r#"{"domains":[["x","0","99"]],"add":[{"name":"q","dtype":"int8","fill":"3"}],"rename":[["v","w"]],
        "fill":[["v",null]],"filters":[["v","zstd:1"]],"nullable":["v"],"drop":["z"]}"#;
    let found = Evolution::from_json(text).unwrap();
    assert_eq!((found.add[0].fill(), found.fill[0].1.as_deref(), found.domains[0].2.as_str()), (&[3][..], None, "99"));
    assert_eq!(Evolution::from_json("{}").unwrap(), Evolution::default());
    for bad in ["", "7", r#"{"dorp":[]}"#, r#"{"add":[{"name":"q","dtype":"int7"}]}"#] {
        assert!(Evolution::from_json(bad).is_err(), "{bad}");
    }
    assert!(Evolution::from_json(r#"{"add":[{"name":"q","dtype":"int8","id":7}]}"#).is_err());
}

#[test]
fn labels_are_told_to_bindings_and_set_by_them() {
    let first = Schema::from_json(
        r#"{"dims":[{"name":"x","dtype":"int8","domain":["5","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#,
    );
    let first = first.unwrap();
    let evolved = |json: &str| first.evolved(&first, &Evolution::from_json(json)?);
    let steps = r#"{"start":"1","step":"2","dtype":"int16"}"#;
    let labelled = evolved(&format!(r#"{{"labels":[["x",{steps}]]}}"#)).unwrap();
    assert!(
        labelled.to_json_with_reach().contains(&format!(r#""labels":{steps}"#))
            && !labelled.to_json().contains("labels")
    );
    let grown = labelled.reaching(&Subarray::new(vec![KeyRange::new(key::from_signed(0), key::from_signed(9))]));
    assert!(grown.to_json_with_reach().contains(r#""origin":"5""#), "{}", grown.to_json_with_reach());
    assert_eq!(evolved(r#"{"labels":[["x",null]]}"#).unwrap(), first);
    for (wrong, word) in [(r#"[["y",null]]"#, "no dimension \"y\""), (r#"[["x",{"start":"1"}]]"#, "dimension \"x\"")] {
        let error = evolved(&format!(r#"{{"labels":{wrong}}}"#)).unwrap_err();
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn numbers_are_written_where_they_are_not_the_places() {
    let (one, plain) = (r#"{"dims":[{"name":"x","dtype":"int8","domain":["0","9"]}],"attrs":["#, r#""dtype":"int8""#);
    let stored = |attrs: &str, rest: &str| Schema::from_stored_json(&format!("{one}{attrs}]{rest}}}"));
    let gaps = stored(&format!(r#"{{"name":"a",{plain},"id":1}},{{"name":"b",{plain},"id":4}}"#), r#","next_id":9"#);
    let gaps = gaps.unwrap();
    assert_eq!((gaps.attrs()[1].id(), gaps.next_id()), (4, 9));
    assert_eq!(Schema::from_stored_json(&gaps.to_stored_json()).unwrap(), gaps);
    assert!(!gaps.to_json().contains("id\"") && gaps.to_stored_json().contains("\"next_id\":9"));
    let fresh = Schema::from_json(&gaps.to_json()).unwrap();
    assert_eq!((fresh.attrs()[1].id(), fresh.next_id()), (1, 2));
    assert_eq!(gaps.clone().of_new_array(), fresh);
    assert_eq!(fresh.to_stored_json(), fresh.to_json());
    let dropped_last = stored(&format!(r#"{{"name":"a",{plain},"id":0}}"#), r#","next_id":3"#).unwrap();
    assert!(dropped_last.to_stored_json().contains("\"next_id\":3"));
    for (attrs, rest) in [
        (format!(r#"{{"name":"a",{plain},"id":1}},{{"name":"b",{plain},"id":1}}"#), r#","next_id":9"#),
        (format!(r#"{{"name":"a",{plain},"id":1}},{{"name":"b",{plain}}}"#), r#","next_id":9"#),
        (format!(r#"{{"name":"a",{plain},"id":1}}"#), r#","next_id":1"#),
        (format!(r#"{{"name":"a",{plain},"id":1}}"#), ""),
        (format!(r#"{{"name":"a",{plain}}}"#), r#","next_id":1"#),
    ] {
        assert!(stored(&attrs, rest).is_err(), "{attrs}{rest}");
    }
    assert!(Schema::from_json(&gaps.to_stored_json()).unwrap_err().message().contains("leave them out"));
}

#[test]
fn origins_and_frames_are_written_where_they_do_not_follow_from_the_domain() {
    let text = |order: &str| {
        format!(
            r#"{{"sparse":true,"cell_order":"{order}","dims":[{{"name":"x","dtype":"uint8","domain":["5","9"],"tile":"3"}},
            {{"name":"y","dtype":"float64","domain":["0","2"],"tile":"0.5"}},{{"name":"z","dtype":"int8","domain":["-9","9"]}}],
            "attrs":[{{"name":"v","dtype":"int8"}}]}}"#
        )
    };
    for order in ["row", "hilbert"] {
        let first = Schema::from_json(&text(order)).unwrap();
        assert!(!first.to_stored_json().contains("origin") && !first.to_stored_json().contains("frame"));
        let ranges = first.dims().iter().map(|dim| match dim.name() {
            "x" => crate::schema::KeyRange::new(0, 255),
            _ => dim.range(),
        });
        let grown = first.reaching(&crate::schema::Subarray::new(ranges.collect()));
        let stored = grown.to_stored_json();
        assert!(stored.contains(r#""domain":["0","255"],"tile":"3","origin":"5""#), "{stored}");
        assert_eq!(stored.matches("origin").count(), 1);
        assert!(!stored.contains("\"frame\""), "the tiles frame x: {stored}");
        assert_eq!(Schema::from_stored_json(&stored).unwrap().to_stored_json(), stored);
        // A user's schema has neither: the store gives them.
        assert_eq!(Schema::from_json(&stored).unwrap_err().kind(), crate::base::ErrorKind::Schema);
        assert!(!grown.to_json().contains("origin"));
        let told = grown.to_json_with_reach();
        assert!(told.contains(r#""domain":["0","255"],"tile":"3","origin":"5""#) && !told.contains("frame"), "{told}");
    }
    let bad = |from: &str, to: &str| {
        let stored = r#"{"sparse":true,"cell_order":"hilbert","dims":[{"name":"x","dtype":"uint8","domain":["5","9"],"tile":"3",
            "origin":"4"}],"attrs":[{"name":"v","dtype":"int8"}],"frame":{"by":"value","bits":9,"sides":[["0","2"]]}}"#;
        assert!(Schema::from_stored_json(stored).is_ok() && stored.contains(from));
        Schema::from_stored_json(&stored.replace(from, to)).unwrap_err().message().to_owned()
    };
    assert!(bad(r#""origin":"4""#, r#""origin":"x""#).contains("origin"));
    assert!(bad(r#"["0","2"]"#, r#"["0","1"]"#).contains("does not fit"));
    assert!(bad(r#"["0","2"]"#, r#"["0","2"],["0","2"]"#).contains("does not fit"));
    assert!(bad(r#"["0","2"]"#, r#"["2","0"]"#).contains("does not fit"));
    assert!(bad(r#""bits":9"#, r#""bits":65"#).contains("does not fit"));
    assert!(bad(r#""by":"value""#, r#""by":"sum""#).contains("sum"));
}

#[test]
fn bad_schemas_are_refused() {
    let refuse = |from: &str, to: &str, word: &str| {
        let error = Schema::from_json(&AIS.replace(from, to)).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    };
    refuse("\"sparse\":true", "\"sparse\":false", "duplicates");
    refuse("\"name\":\"sog\"", "\"name\":\"x\"", "twice");
    refuse("\"capacity\":1000", "\"capacity\":0", "capacity");
    refuse("float32", "float128", "float128");
    refuse("\"nullable\":true", "\"nulable\":true", "nulable");
    refuse("shuffle,zstd:1", "shufle", "shufle");
    refuse("\"cell_order\":\"row\"", "\"cell_order\":\"zig\"", "zig");
    assert!(Schema::from_json("{}").is_err() && Schema::from_json("").is_err());
}
