//! Schema evolution: the domain of an array grows; dimensions get other names and labels; attributes are added, dropped,
//! and changed in everything but the meaning of their bytes.
//!
//! Data written before is not changed and is read through the newer schema. So a newer schema keeps the space tiles and
//! the orders in place, the types of attributes, and what may be null. A fragment of any older schema then is in global
//! order, and has valid values, under the newer one.

use super::{Attribute, Dimension, Labels, Order, Schema};
use crate::base::{Error, Result};

/// The changes. Attributes are referred to by their names before them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evolution {
    /// Dimensions by name, with the low and high end of the larger domain as text, both inclusive.
    pub domains: Vec<(String, String, String)>,
    /// New attributes.
    pub add: Vec<Attribute>,
    /// Attributes to drop.
    pub drop: Vec<String>,
    /// Attributes and dimensions with their new names.
    pub rename: Vec<(String, String)>,
    /// Attributes with their new fill as text; `None`: 0, "", NaT.
    pub fill: Vec<(String, Option<String>)>,
    /// Attributes with the filters for data written from now on.
    pub filters: Vec<(String, String)>,
    /// Attributes that may be null from now on.
    pub nullable: Vec<String>,
    /// Enumerated attributes with the categories to append.
    pub categories: Vec<(String, Vec<String>)>,
    /// Dimensions of a dense array with their labels from now on; `None`: without.
    pub labels: Vec<(String, Option<Labels>)>,
}

/// The item of `name`.
fn of<'a, T>(list: &'a [(String, T)], name: &str) -> Option<&'a T> {
    list.iter().find(|(n, _)| n == name).map(|(_, item)| item)
}

impl Evolution {
    /// A Schema error if a name is not that of an attribute, or the same property of it changes twice.
    fn check(&self, schema: &Schema) -> Result<()> {
        let lists: [(&str, Vec<&String>); 6] = [
            ("drop", self.drop.iter().collect()),
            ("rename", self.rename.iter().map(|(n, _)| n).collect()),
            ("fill", self.fill.iter().map(|(n, _)| n).collect()),
            ("filters", self.filters.iter().map(|(n, _)| n).collect()),
            ("nullable", self.nullable.iter().collect()),
            ("categories", self.categories.iter().map(|(n, _)| n).collect()),
        ];
        for (what, names) in &lists {
            for (place, name) in names.iter().enumerate() {
                let known = schema.attrs().iter().map(Attribute::name);
                let is_dimension = *what == "rename" && schema.coordinates().any(|d| d.name() == name.as_str());
                if !is_dimension && !known.clone().any(|n| n == name.as_str()) {
                    let known: Vec<&str> = known.collect();
                    let kind = if *what == "rename" { "attribute or dimension" } else { "attribute" };
                    return Err(Error::schema(format!(
                        "{what}: there is no {kind} {name:?}; there are the attributes {}",
                        known.join(", ")
                    )));
                }
                if names.iter().take(place).any(|n| n == name) {
                    let kind = if is_dimension { "dimension" } else { "attribute" };
                    return Err(Error::schema(format!("{what}: the {kind} {name:?} is named twice")));
                }
                if *what != "drop" && self.drop.contains(*name) {
                    return Err(Error::schema(format!("the attribute {name:?} cannot be dropped and changed at once")));
                }
            }
        }
        if self.drop.len() == schema.attrs().len() && self.add.is_empty() {
            return Err(Error::schema(
                "the last attribute cannot be dropped: a cell needs a value; add another one first",
            ));
        }
        let stays = |name: &str| schema.attrs().iter().any(|a| a.name() == name) && !self.goes(name);
        match self.add.iter().find(|new| stays(new.name())) {
            Some(new) => Err(Error::schema(format!(
                "there is an attribute {:?}, and its type cannot change; drop it and add another one, or take another name",
                new.name()
            ))),
            None => Ok(()),
        }
    }

    /// Whether the attribute `name` is gone afterwards.
    fn goes(&self, name: &str) -> bool {
        self.drop.iter().any(|n| n == name) || of(&self.rename, name).is_some()
    }

    /// The new form of an attribute that stays.
    fn attribute(&self, attr: &Attribute) -> Result<Attribute> {
        let name = of(&self.rename, attr.name()).map_or_else(|| attr.name(), String::as_str);
        let kept = attr.fill_text();
        let fill = of(&self.fill, attr.name()).map_or(kept.as_deref(), Option::as_deref);
        let filters = of(&self.filters, attr.name()).cloned().unwrap_or_else(|| attr.filters_text());
        let nullable = attr.nullable() || self.nullable.iter().any(|n| n == attr.name());
        let more = of(&self.categories, attr.name()).map_or(&[][..], Vec::as_slice);
        attr.changed(name, nullable, fill, &filters, more)
    }
}

impl Schema {
    /// The schema after `evolution`; `first` is the one that the array was created with.
    ///
    /// # Errors
    /// Schema: what cannot change, and what can.
    pub fn evolved(&self, first: &Self, evolution: &Evolution) -> Result<Self> {
        evolution.check(self)?;
        let dims = self.evolved_dims(evolution)?;
        let kept = self.attrs().iter().filter(|a| !evolution.drop.iter().any(|n| n == a.name()));
        let mut attrs = kept.map(|a| evolution.attribute(a)).collect::<Result<Vec<_>>>()?;
        let mut next_id = self.next_id();
        for new in &evolution.add {
            attrs.push(new.clone().with_id(next_id));
            next_id = next_id.checked_add(1).ok_or_else(|| Error::schema("the array has had 2^32 attributes"))?;
        }
        let frame = (self.options().cell_order == Order::Hilbert).then(|| self.frame());
        let schema = Self::numbered(dims, attrs, next_id, self.options().clone())?.framed(frame);
        let schema = if self.is_scalar() { schema.into_scalar()? } else { schema };
        let schema = schema.with_extra(self.extra().cloned().unwrap_or_default());
        schema.check_follows(self, first)?;
        Ok(schema)
    }

    /// Like [`Schema::check_follows`], as far as this release can read all three.
    ///
    /// # Errors
    /// Schema.
    pub fn check_may_follow(&self, before: &Self, first: &Self) -> Result<()> {
        if self.is_readable() && before.is_readable() && first.is_readable() {
            return self.check_follows(before, first);
        }
        if self.ndim() == before.ndim() {
            return Ok(());
        }
        Err(Error::schema("the number of dimensions cannot change"))
    }

    /// The axes after `evolution`.
    fn evolved_dims(&self, evolution: &Evolution) -> Result<Vec<Dimension>> {
        let mut dims = self.dims().to_vec();
        let place_of = |name: &str| {
            let names: Vec<&str> = self.coordinates().map(|d| d.name()).collect();
            self.dims()
                .iter()
                .position(|d| d.name() == name)
                .ok_or_else(|| Error::schema(format!("there is no dimension {name:?}; there are {}", names.join(", "))))
        };
        let twice = |name: &str| Err(Error::schema(format!("the dimension {name:?} is named twice")));
        for (place, (name, lo, hi)) in evolution.domains.iter().enumerate() {
            if evolution.domains.iter().take(place).any(|(n, ..)| n == name) {
                return twice(name);
            }
            let at = place_of(name)?;
            dims.get_mut(at).map(|dim| dim.grown(lo, hi).map(|grown| *dim = grown)).transpose()?;
        }
        for (place, (name, labels)) in evolution.labels.iter().enumerate() {
            if evolution.labels.iter().take(place).any(|(n, _)| n == name) {
                return twice(name);
            }
            let at = place_of(name)?;
            dims.iter_mut().skip(at).take(1).for_each(|dim| *dim = dim.with_labels(labels.clone()));
        }
        let named =
            |dim: &Dimension| of(&evolution.rename, dim.name()).map_or_else(|| dim.clone(), |to| dim.renamed(to));
        Ok(dims.iter().map(named).collect())
    }

    /// A Schema error unless this may follow `before` in the history of an array whose first schema is `first`.
    pub fn check_follows(&self, before: &Self, first: &Self) -> Result<()> {
        let wrong = |why: String| Err(Error::schema(why));
        if self.ndim() != before.ndim() || self.options() != before.options() {
            return wrong(
                "the number of dimensions, the orders, the capacity, duplicates and the filters of coordinates cannot change"
                    .to_owned(),
            );
        }
        if self.is_scalar() != before.is_scalar() {
            return wrong("an array of no dimension stays one, and no other becomes one".to_owned());
        }
        self.dims().iter().zip(before.dims()).try_for_each(|(new, old)| new.check_grown(old))?;
        self.check_curve(before)?;
        if self.next_id() < before.next_id() {
            return wrong(format!("attribute numbers from {} on would be used again", self.next_id()));
        }
        for attr in self.attrs() {
            let Some(old) = before.attr_by_id(attr.id()) else {
                if attr.id() < before.next_id() {
                    return wrong(format!("the number {} of a dropped attribute would be used again", attr.id()));
                }
                continue;
            };
            if attr.datatype() != old.datatype() {
                return wrong(format!(
                    "attribute {:?}: its type {} cannot become {}; add another attribute",
                    old.name(),
                    old.datatype(),
                    attr.datatype()
                ));
            }
            attr.check_categories(old)?;
            if old.nullable() && !attr.nullable() {
                return wrong(format!(
                    "attribute {:?}: it may be null, and cells that are null would stay",
                    old.name()
                ));
            }
            let later = self.sparse() && first.attr_by_id(attr.id()).is_none();
            if later && (attr.nullable(), attr.fill()) != (old.nullable(), old.fill()) {
                return wrong(format!(
                    "attribute {:?}: in a sparse array the fill of an attribute that was added, and whether it may be null, \
                     cannot change: cells written before it was added have that value, and merging fragments writes it down",
                    old.name()
                ));
            }
        }
        Ok(())
    }

    /// A Schema error if the cells of `before` would have another order along a Hilbert curve.
    fn check_curve(&self, before: &Self) -> Result<()> {
        if self.options().cell_order != Order::Hilbert || self.frame() == before.frame() {
            return Ok(());
        }
        Err(Error::schema(
            "the frame of the Hilbert curve cannot change: cells that are there would have another order",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Datatype;

    fn schema(sparse: bool) -> Schema {
        Schema::from_json(&format!(
            r#"{{"sparse":{sparse},"dims":[{{"name":"y","dtype":"int64","domain":["0","9"],"tile":"5"}},
            {{"name":"x","dtype":"int64","domain":["0","9"]}}],"attrs":[{{"name":"v","dtype":"int32"}},
            {{"name":"w","dtype":"string","fill":"?"}}]}}"#
        ))
        .unwrap()
    }

    fn attr(name: &str, nullable: bool) -> Attribute {
        Attribute::new(name, Datatype::Float64, nullable, Some("1.5"), "auto").unwrap()
    }

    fn text(name: &str) -> String {
        name.to_owned()
    }

    #[test]
    fn numbers_stay_and_are_never_used_again() {
        let first = schema(false);
        let step = Evolution { drop: vec![text("w")], add: vec![attr("w", true)], ..Evolution::default() };
        let second = first.evolved(&first, &step).unwrap();
        assert_eq!(second.attrs().iter().map(Attribute::id).collect::<Vec<_>>(), [0, 2]);
        let step = Evolution { drop: vec![text("w")], rename: vec![(text("v"), text("w"))], ..Evolution::default() };
        let third = second.evolved(&first, &step).unwrap();
        assert_eq!((third.attrs()[0].name(), third.attrs()[0].id(), third.next_id()), ("w", 0, 3));
        let step = Evolution { add: vec![attr("z", false)], ..Evolution::default() };
        assert_eq!(third.evolved(&first, &step).unwrap().attrs()[1].id(), 3);
    }

    #[test]
    fn names_swap_and_properties_change() {
        let first = schema(false);
        let step = Evolution {
            domains: vec![(text("y"), text("-5"), text("20"))],
            rename: vec![(text("v"), text("w")), (text("w"), text("v"))],
            fill: vec![(text("v"), Some(text("-3"))), (text("w"), None)],
            filters: vec![(text("v"), text("delta,zstd:3"))],
            nullable: vec![text("w")],
            ..Evolution::default()
        };
        let next = first.evolved(&first, &step).unwrap();
        let [w, v] = next.attrs() else { panic!("two attributes") };
        assert_eq!((w.name(), w.id(), w.fill_text(), w.nullable()), ("w", 0, Some(text("-3")), false));
        assert_eq!((v.name(), v.id(), v.fill_text(), v.nullable()), ("v", 1, Some(text("")), true));
        assert_eq!(w.filters().text(), "delta,zstd:3");
        assert_eq!(next.dims()[0].texts(), (text("-5"), text("20"), Some(text("5"))));
        assert_eq!(next.evolved(&first, &Evolution::default()).unwrap(), next);
    }

    #[test]
    fn dimensions_get_other_names_and_labels() {
        let first = schema(false);
        let rename = |from: &str, to: &str| {
            let rename = vec![(text(from), text(to))];
            first.evolved(&first, &Evolution { rename, ..Evolution::default() })
        };
        let swapped = vec![(text("y"), text("x")), (text("x"), text("y"))];
        let domains = vec![(text("y"), text("-5"), text("9"))];
        let labels = Labels::Steps(crate::schema::Steps::new(Datatype::Float64, "0", "0.5").unwrap());
        let step = Evolution {
            rename: swapped,
            domains,
            labels: vec![(text("x"), Some(labels.clone()))],
            ..Evolution::default()
        };
        let next = first.evolved(&first, &step).unwrap();
        let [x, y] = next.dims() else { panic!("two dimensions") };
        assert_eq!((x.name(), x.text(x.range().lo), x.labels()), ("x", text("-5"), None));
        assert_eq!((y.name(), y.labels()), ("y", Some(&labels)));
        assert_eq!(Schema::from_stored_json(&next.to_stored_json()).unwrap(), next);
        let bare = Evolution { labels: vec![(text("y"), None)], ..Evolution::default() };
        assert_eq!(next.evolved(&first, &bare).unwrap().dims()[1].labels(), None);
        assert_eq!(rename("x", "lon").unwrap().dims()[1].name(), "lon");
        let twice = vec![(text("x"), text("a")), (text("x"), text("b"))];
        let twice = first.evolved(&first, &Evolution { rename: twice, ..Evolution::default() }).unwrap_err();
        assert!(twice.message().contains("rename: the dimension \"x\" is named twice"), "{twice}");
        for (from, to, word) in [("x", "v", "twice"), ("x", "", "1 to 255"), ("z", "a", "attribute or dimension")] {
            let error = rename(from, to).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        }
        // A text dimension takes its axes along.
        let genes = Schema::from_json(
            r#"{"sparse":true,"dims":[{"name":"gene","dtype":"string"}],"attrs":[{"name":"v","dtype":"int8"}]}"#,
        )
        .unwrap();
        let step = Evolution { rename: vec![(text("gene"), text("symbol"))], ..Evolution::default() };
        let next = genes.evolved(&genes, &step).unwrap();
        assert_eq!(next.coordinates().map(|d| d.name()).collect::<Vec<_>>(), ["symbol"]);
    }

    #[test]
    fn categories_come_at_the_end_only() {
        let of = |attr: &str| {
            Schema::from_json(&format!(
                r#"{{"dims":[{{"name":"x","dtype":"int8","domain":["0","9"]}}],"attrs":[{attr},{{"name":"v","dtype":"int8"}}]}}"#
            ))
            .unwrap()
        };
        let first = of(r#"{"name":"a","dtype":"string","categories":["ok"],"codes":"uint8"}"#);
        let with = |name: &str, more: &[&str]| {
            let categories = vec![(text(name), more.iter().copied().map(text).collect())];
            first.evolved(&first, &Evolution { categories, fill: vec![(text(name), None)], ..Evolution::default() })
        };
        let next = with("a", &["bad", "worse"]).unwrap();
        assert_eq!(next.attrs()[0].categories().unwrap().texts(), ["ok", "bad", "worse"]);
        assert!(first.check_follows(&next, &first).unwrap_err().message().contains("come behind them"));
        let many: Vec<String> = (0..256).map(|i| i.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (name, more, word) in [
            ("a", &["bad", "ok"][..], "twice"),
            ("v", &["bad"], "no categories"),
            ("z", &["bad"], "no attribute"),
            ("a", &many, "wider codes"),
        ] {
            let error = with(name, more).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        }
        for other in [
            r#"{"name":"a","dtype":"uint8"}"#,
            r#"{"name":"a","dtype":"string","categories":["ok"],"ordered":true}"#,
            r#"{"name":"a","dtype":"bytes","categories":["6f6b"]}"#,
            r#"{"name":"a","dtype":"string","categories":["fine"]}"#,
        ] {
            assert!(of(other).check_follows(&first, &first).is_err(), "{other}");
        }
        let plain = of(r#"{"name":"a","dtype":"uint8"}"#);
        assert!(first.check_follows(&plain, &plain).is_err());
    }

    #[test]
    fn what_cannot_change_is_refused_with_a_reason() {
        let refuse = |sparse: bool, evolution: Evolution, word: &str| {
            let first = schema(sparse);
            let error = first.evolved(&first, &evolution).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        };
        let none = Evolution::default;
        refuse(false, Evolution { drop: vec![text("v"), text("w")], ..none() }, "last attribute");
        refuse(false, Evolution { drop: vec![text("z")], ..none() }, "v, w");
        refuse(false, Evolution { drop: vec![text("v"), text("v")], ..none() }, "twice");
        refuse(false, Evolution { drop: vec![text("v")], nullable: vec![text("v")], ..none() }, "at once");
        refuse(false, Evolution { add: vec![attr("v", true)], ..none() }, "type cannot change");
        refuse(false, Evolution { add: vec![attr("x", true)], ..none() }, "twice");
        refuse(false, Evolution { add: vec![attr("z", true), attr("z", true)], ..none() }, "twice");
        refuse(false, Evolution { rename: vec![(text("v"), text("w"))], ..none() }, "twice");
        refuse(false, Evolution { rename: vec![(text("v"), text(""))], ..none() }, "1 to 255");
        refuse(false, Evolution { fill: vec![(text("v"), Some(text("a")))], ..none() }, "int32");
        refuse(false, Evolution { filters: vec![(text("v"), text("zip"))], ..none() }, "zip");
        refuse(false, Evolution { domains: vec![(text("z"), text("0"), text("9"))], ..none() }, "y, x");
        refuse(false, Evolution { domains: vec![(text("x"), text("0"), text("9000000000"))], ..none() }, "space tile");
        let (first, step) = (schema(true), Evolution { add: vec![attr("z", false)], ..none() });
        let added = first.evolved(&first, &step).unwrap();
        for step in [
            Evolution { fill: vec![(text("z"), Some(text("2")))], ..none() },
            Evolution { nullable: vec![text("z")], ..none() },
        ] {
            let error = added.evolved(&first, &step).unwrap_err();
            assert!(error.message().contains("merging fragments"), "{error}");
        }
        let step = Evolution { fill: vec![(text("v"), Some(text("2")))], nullable: vec![text("v")], ..none() };
        assert!(added.evolved(&first, &step).is_ok());
    }

    #[test]
    fn the_curve_of_a_hilbert_order_stays_where_it_is() {
        let first = Schema::from_json(
            r#"{"sparse":true,"cell_order":"hilbert","dims":[{"name":"x","dtype":"int32","domain":["0","99"]},
            {"name":"y","dtype":"int16","domain":["-10","9"],"tile":"10"}],"attrs":[{"name":"v","dtype":"int8"}]}"#,
        )
        .unwrap();
        let grown = |name: &str, lo: &str, hi: &str| {
            let domains = vec![(text(name), text(lo), text(hi))];
            first.evolved(&first, &Evolution { domains, ..Evolution::default() })
        };
        for (name, lo, hi) in [("x", "0", "99999"), ("x", "-70", "99"), ("y", "-1003", "999")] {
            let next = grown(name, lo, hi).unwrap();
            assert_eq!((next.frame(), next.frame().bits()), (first.frame(), 7), "{name} {lo} {hi}");
            let stored = Schema::from_stored_json(&next.to_stored_json()).unwrap();
            assert_eq!((stored.frame(), stored.dims()), (next.frame(), next.dims()));
        }
        // Another frame is another order.
        let next = grown("x", "-70", "99").unwrap().framed(None);
        let error = next.check_follows(&first, &first).unwrap_err();
        assert!(error.message().contains("frame of the Hilbert curve"), "{error}");
    }

    #[test]
    fn a_schema_that_does_not_follow_is_told() {
        let first = schema(false);
        let refuse = |from: &str, to: &str, word: &str| {
            let text = first.to_json();
            assert!(text.contains(from), "{text}");
            let error = Schema::from_json(&text.replace(from, to)).unwrap().check_follows(&first, &first).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        };
        refuse("\"tile_order\":\"row\"", "\"tile_order\":\"col\"", "orders");
        refuse("int32", "int64", "type int32 cannot become int64");
        refuse("\"tile\":\"5\"", "\"tile\":\"4\"", "tile extent");
        refuse("[\"0\",\"9\"],\"tile\":\"5\"", "[\"0\",\"8\"],\"tile\":\"5\"", "only grows");
        let gone = first.evolved(&first, &Evolution { drop: vec![text("v")], ..Evolution::default() }).unwrap();
        assert!(first.check_follows(&gone, &first).unwrap_err().message().contains("used again"));
        let nullable = first.evolved(&first, &Evolution { nullable: vec![text("v")], ..Evolution::default() }).unwrap();
        assert!(first.check_follows(&nullable, &first).unwrap_err().message().contains("null"));
    }
}
