//! What only a store gives: labels, ends of domains, arrays of no dimension.

use crate::base::Error;
use crate::schema::{KeyRange, Schema, SchemaOptions};

#[test]
fn what_only_a_store_gives_survives_its_json() {
    let stored = |dims: &str, rest: &str| {
        let text = format!(r#"{{"dims":[{dims}],"attrs":[{{"name":"v","dtype":"int8"}}]{rest}}}"#);
        let schema = Schema::from_stored_json(&text)?;
        assert_eq!(Schema::from_stored_json(&schema.to_stored_json()).unwrap(), schema, "{text}");
        let error = Schema::from_json(&text).unwrap_err();
        assert!(error.message().contains("given by the store"), "{error}");
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
    for (domain, tile, range) in [
        ("[]", "null", KeyRange::EMPTY),
        ("[]", "\"5\"", KeyRange::EMPTY),
        (r#"["3",null]"#, "\"5\"", KeyRange::new(3, 255)),
        (r#"[null,"9"]"#, "\"5\"", KeyRange::new(0, 9)),
        ("[null,null]", "\"5\"", KeyRange::new(0, 255)),
    ] {
        let schema = stored(&format!(r#"{{"name":"x","dtype":"uint8","domain":{domain},"tile":{tile}}}"#), "").unwrap();
        assert_eq!(schema.domain().ranges()[0], range);
        assert!(schema.to_stored_json().contains(&format!(r#""domain":{domain}"#)), "{domain}");
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
        assert!(stored(domain, "null", "").unwrap_err().message().contains("needs tiles or a frame"));
        assert_eq!(stored(domain, "\"16\"", "").unwrap().frame().bits(), 4);
        let framed = stored(domain, "null", frame).unwrap();
        let again = Schema::from_stored_json(&framed.to_stored_json()).unwrap();
        assert_eq!((framed.frame().bits(), &again), (4, &framed));
        let grown = framed.reaching(&crate::schema::Subarray::new(vec![KeyRange::new(1 << 63, (1 << 63) + 99)]));
        assert_eq!(grown.frame(), framed.frame());
    }
}
