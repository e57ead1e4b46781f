//! What only a store gives: labels, ends of domains, arrays of no dimension.

use crate::base::Error;
use crate::schema::{KeyRange, Schema, SchemaOptions};

#[test]
fn what_only_a_store_gives_survives_its_json() {
    let stored = |dims: &str, rest: &str| {
        let text = format!(r#"{{"dims":[{dims}],"attrs":[{{"name":"v","dtype":"int8"}}]{rest}}}"#);
        let schema = Schema::from_stored_json(&text)?;
        assert_eq!(Schema::from_stored_json(&schema.to_stored_json()).unwrap(), schema, "{text}");
        if ["labels", "scalar", "origin"].iter().any(|word| text.contains(word)) {
            let error = Schema::from_json(&text).unwrap_err();
            assert!(error.message().contains("given by the store"), "{error}");
        } else {
            assert_eq!(Schema::from_json(&text).unwrap(), schema);
            assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
        }
        Ok::<_, Error>(schema)
    };
    let id = "0123456789abcdef0123456789abcdef";
    let labels = [
        r#"{"start":"0.5","step":"-0.25","dtype":"float64"}"#.to_owned(),
        r#"{"start":"1850","step":"10","dtype":"datetime64[Y]"}"#.to_owned(),
        format!(r#"{{"array":"{id}"}}"#),
    ];
    for labels in &labels {
        let dim = format!(r#"{{"name":"x","dtype":"int8","domain":["0","9"],"labels":{labels}}}"#);
        let schema = stored(&dim, "").unwrap();
        assert!(schema.to_stored_json().contains(&format!(r#""labels":{labels}"#)));
        assert!(!schema.to_json().contains("labels"));
        assert!(stored(&dim, r#","sparse":true"#).unwrap_err().message().contains("labels"));
    }
    for bad in [r#"{"start":"0","step":"1"}"#, r#"{"array":"x"}"#, &format!(r#"{{"array":"{id}","start":"0"}}"#), "{}"]
    {
        stored(&format!(r#"{{"name":"x","dtype":"int8","domain":["0","9"],"labels":{bad}}}"#), "").unwrap_err();
    }
    for (domain, tile, reached) in [
        ("[]", "null", (70, 72)),
        ("[]", "\"5\"", (70, 72)),
        (r#"["3",null]"#, "\"5\"", (3, 72)),
        (r#"[null,"90"]"#, "\"5\"", (70, 90)),
        ("[null,null]", "\"5\"", (70, 72)),
    ] {
        let schema = stored(&format!(r#"{{"name":"x","dtype":"uint8","domain":{domain},"tile":{tile}}}"#), "").unwrap();
        assert!(schema.is_without_cells() && schema.domain().ranges()[0] == KeyRange::EMPTY);
        assert!(schema.to_stored_json().contains(&format!(r#""domain":{domain}"#)), "{domain}");
        let written = schema.reaching(&crate::schema::Subarray::new(vec![KeyRange::new(70, 72)]));
        assert_eq!(written.domain().ranges()[0], KeyRange::new(reached.0, reached.1), "{domain}");
        let is_closed = domain == "[]";
        assert_eq!(written.to_stored_json().contains(&format!(r#""domain":{domain}"#)), !is_closed, "{domain}");
        assert_eq!(written.to_json_with_reach().contains(r#""reach":["#), !is_closed, "{domain}");
    }
    for (domain, word) in [(r#"["3",null]"#, "needs a tile extent"), (r#"["3"]"#, "needs a domain"), ("null", "domain")]
    {
        let error = stored(&format!(r#"{{"name":"x","dtype":"uint8","domain":{domain}}}"#), "").unwrap_err();
        assert!(error.message().contains(word), "{error}");
    }
    let axis = r#"{"name":"@","dtype":"uint8","domain":["0","0"],"tile":null}"#;
    let scalar = stored(axis, r#","scalar":true"#).unwrap();
    assert!(scalar.is_scalar() && scalar.to_stored_json().contains(r#""scalar":true"#));
    assert_eq!(scalar, Schema::of_scalar(scalar.attrs().to_vec(), SchemaOptions::default()).unwrap());
    for (dim, rest) in [(axis, r#","scalar":true,"sparse":true"#), (&axis.replace('@', "x"), r#","scalar":true"#)] {
        assert!(stored(dim, rest).unwrap_err().message().contains("no dimension"));
    }
}

#[test]
fn a_curve_over_an_endless_domain_needs_tiles_or_a_frame() {
    let stored = |domain: &str, tile: &str, frame: &str| {
        Schema::from_stored_json(&format!(
            r#"{{"sparse":true,"cell_order":"hilbert","dims":[{{"name":"x","dtype":"int32","domain":{domain},"tile":{tile}}}],
            "attrs":[{{"name":"v","dtype":"int8"}}]{frame}}}"#
        ))
    };
    let frame = r#","frame":{"by":"key","bits":4,"sides":[["9223372036854775808","9223372036854775823"]]}"#;
    for domain in ["[]", "[null,null]", r#"["0",null]"#] {
        assert!(stored(domain, "null", "").unwrap_err().message().contains("open or empty a tile"));
        assert_eq!(stored(domain, "\"16\"", "").unwrap().frame().bits(), 4);
        let framed = stored(domain, "null", frame).unwrap();
        let again = Schema::from_stored_json(&framed.to_stored_json()).unwrap();
        assert_eq!((framed.frame().bits(), &again), (4, &framed));
        let grown = framed.reaching(&crate::schema::Subarray::new(vec![KeyRange::new(1 << 63, (1 << 63) + 99)]));
        assert_eq!(grown.frame(), framed.frame());
    }
}

/// The stored form of a dense schema with one dimension.
fn along(dim: &str) -> Schema {
    Schema::from_stored_json(&format!(r#"{{"dims":[{dim}],"attrs":[{{"name":"v","dtype":"int8"}}]}}"#)).unwrap()
}

#[test]
fn origins_are_written_where_a_reader_would_take_another() {
    for (domain, origin, is_written) in [
        (r#"[null,"9"]"#, "-128", true),
        (r#"[null,"9"]"#, "0", false),
        (r#"[null,"9"]"#, "9", true),
        ("[null,null]", "-128", true),
        (r#"["-128",null]"#, "-128", false),
        (r#"["-128",null]"#, "0", true),
        (r#"["-3","9"]"#, "-3", false),
        (r#"["-3","9"]"#, "0", true),
        ("[]", "-128", true),
        ("[]", "127", true),
        ("[]", "0", false),
    ] {
        let dim = format!(r#"{{"name":"x","dtype":"int8","domain":{domain},"tile":"7","origin":"{origin}"}}"#);
        let schema = along(&dim);
        let again = Schema::from_stored_json(&schema.to_stored_json()).unwrap();
        assert_eq!(again.dims()[0].text(again.dims()[0].origin()), origin, "{dim}");
        assert_eq!((&again, schema.to_stored_json().contains("origin")), (&schema, is_written), "{dim}");
    }
}

#[test]
fn labels_at_steps_stay_where_they_are_without_tiles_too() {
    use crate::schema::{Evolution, Labels, Steps, Subarray, key};
    let labels = r#""labels":{"start":"5","step":"2","dtype":"int16"}"#;
    for tile in ["null", "\"4\""] {
        let first = along(&format!(r#"{{"name":"x","dtype":"int8","domain":["0","9"],"tile":{tile},{labels}}}"#));
        let low = |value: i64| key::of_int(crate::schema::Datatype::Int8, value.into()).unwrap();
        let grown = first.reaching(&Subarray::new(vec![KeyRange::new(low(-6), low(9))]));
        let step = Evolution { rename: vec![("x".to_owned(), "y".to_owned())], ..Evolution::default() };
        let next = grown.evolved(&first, &step).unwrap();
        assert_eq!((next.dims()[0].range().lo, next.dims()[0].origin()), (low(-6), low(0)), "{tile}");
        let stored = next.to_stored_json();
        assert!(stored.contains(r#""origin":"0""#), "{stored}");
        assert_eq!(Schema::from_stored_json(&stored).unwrap(), next);
    }
    // Without labels and tiles there is nothing that an origin could place.
    let bare = along(r#"{"name":"x","dtype":"int8","domain":["0","9"],"tile":null,"origin":"7"}"#);
    assert!(!bare.to_stored_json().contains("origin"));
    assert_eq!(bare.dims()[0].text(bare.dims()[0].origin()), "0");
    let steps = Labels::Steps(Steps::new(crate::schema::Datatype::Int8, "0", "1").unwrap());
    let labelled = bare.dims()[0].with_labels(Some(steps)).with_origin("7").unwrap();
    assert_eq!(labelled.text(labelled.origin()), "7");
    assert_eq!(labelled.with_labels(None), bare.dims()[0]);
}

#[test]
fn a_tile_may_be_as_long_as_the_type_and_longer_than_the_domain() {
    let stored = |domain: &str, tile: &str| {
        Schema::from_stored_json(&format!(
            r#"{{"sparse":true,"dims":[{{"name":"x","dtype":"uint8","domain":{domain},"tile":"{tile}"}}],
            "attrs":[{{"name":"v","dtype":"int8"}}]}}"#
        ))
    };
    for domain in [r#"["3",null]"#, r#"[null,"9"]"#, "[null,null]", "[]", r#"["3","9"]"#] {
        for tile in ["8", "254", "256"] {
            let schema = stored(domain, tile).unwrap();
            assert_eq!(Schema::from_stored_json(&schema.to_stored_json()).unwrap(), schema, "{domain} {tile}");
        }
        assert!(stored(domain, "257").unwrap_err().message().contains("is longer than"), "{domain}");
    }
}

#[test]
fn texts_have_neither_an_origin_nor_labels() {
    let stored = |more: &str| {
        let dim = format!(r#"{{"name":"g","dtype":"string","domain":null,"tile":null{more}}}"#);
        let attrs = r#"[{"name":"v","dtype":"int8"}]"#;
        Schema::from_stored_json(&format!(r#"{{"sparse":true,"dims":[{dim}],"attrs":{attrs}}}"#))
    };
    assert!(stored("").is_ok());
    for more in [r#","origin":"0""#, r#","labels":{"start":"0","step":"1","dtype":"int8"}"#] {
        assert!(stored(more).unwrap_err().message().contains("neither an origin"), "{more}");
    }
}
