//! Random changes of an array's schema: as requests to the engine, and applied to the oracle.

use crate::Dice;
use crate::coord::{Coord, Dim};
use crate::enumeration::another;
use crate::model::Shape;
use crate::plan::{Plan, Size, attribute, limits};
use crate::session::{Session, context, opened};
use gridstone::base::{ElementKind, ErrorKind};
use gridstone::engine::At;
use gridstone::schema::{Attribute, Dimension, Evolution, Schema};
use gridstone::storage::Fault;
use std::sync::Arc;

/// A change of schema, as a request and applied.
struct Step {
    evolution: Evolution,
    shape: Shape,
    plan: Plan,
}

/// An attribute with another name, fill or filters.
fn made(name: &str, like: &Attribute, nullable: bool, fill: &str, filters: &str) -> Option<Attribute> {
    let made = match like.categories() {
        Some(known) => {
            Attribute::enumerated(name, (known.clone(), Some(like.datatype())), nullable, Some(fill), filters)
        }
        None => Attribute::new(name, like.datatype(), nullable, Some(fill), filters),
    };
    made.ok()
}

/// The same attribute with one more category, and that category's text.
fn with_another(attr: &Attribute) -> Option<(Attribute, String)> {
    let text = another(attr.categories()?);
    let more = attr.categories()?.extended(&[&text]).ok()?;
    let (fill, codes) = (attr.fill_text(), Some(attr.datatype()));
    let made =
        Attribute::enumerated(attr.name(), (more, codes), attr.nullable(), fill.as_deref(), &attr.filters_text());
    Some((made.ok()?, text))
}

/// Grows the domain of a dimension, where its type and its tiles allow it, and adds coordinates in use.
fn grown(dim: &Dim, sparse: bool, used: &[Coord], room: usize, dice: &mut Dice) -> (Coord, Coord, Vec<Coord>) {
    let mut used = used.to_vec();
    let (lo, hi) = match (dim.lo, dim.hi) {
        (Coord::Int(lo), Coord::Int(hi)) => {
            let (least, greatest) = limits(dim.datatype);
            let far = (hi - lo + 6).min(40);
            let up = dice.between(0, far).min(greatest - hi);
            let down = dice.between(0, far).min(lo - least);
            (Coord::Int(lo - down), Coord::Int(hi + up))
        }
        (Coord::Float(lo), Coord::Float(hi)) => {
            let narrow = |v: f64| if dim.datatype.width() == Some(4) { f64::from(v as f32) } else { v };
            let narrow = |v: f64| if v == 0.0 { 0.0 } else { narrow(v) };
            let share = dice.below(100) as f64 / 100.0;
            let low = if dice.chance(50) { narrow(lo - (hi - lo) * share) } else { lo };
            (Coord::Float(low), Coord::Float(narrow(hi + (hi - lo) * share)))
        }
        _ => panic!("coordinates of two kinds"),
    };
    if sparse {
        used.extend([lo, hi]);
    }
    if let (Some(Coord::Int(first)), Some(Coord::Int(last))) = (used.first().copied(), used.last().copied())
        && !sparse
    {
        let more = (1..=room.min(3) as i128).flat_map(|n| [first - n, last + n]).map(Coord::Int);
        used.extend(more.filter(|c| lo <= *c && *c <= hi));
    }
    used.sort();
    used.dedup();
    (lo, hi, used)
}

impl Step {
    /// A random change; `None` if it would not be allowed, or there is nothing to do.
    fn new(plan: &Plan, shape: &Shape, dice: &mut Dice) -> Option<Self> {
        let mut step = Self { evolution: Evolution::default(), shape: shape.clone(), plan: plan.clone() };
        let mut dims = plan.schema.dims().to_vec();
        let mut attrs: Vec<(u32, Attribute)> =
            shape.keys.iter().copied().zip(plan.schema.attrs().iter().cloned()).collect();
        for _ in 0..1 + dice.below(3) {
            match dice.below(6) {
                0..=1 => step.grow(&mut dims, dice)?,
                2..=3 => step.add(&mut attrs, dice),
                4 => step.drop(&mut attrs, dice),
                _ => step.change(&mut attrs, dice)?,
            }
        }
        step.shape.keys = attrs.iter().map(|(key, _)| *key).collect();
        let attrs = attrs.into_iter().map(|(_, attr)| attr).collect();
        let schema = Arc::new(Schema::new(dims, attrs, plan.schema.options().clone()).ok()?);
        step.shape.changes += u32::from(step.shape.keys != shape.keys || schema.attrs() != plan.schema.attrs());
        let mut dims = Dim::all(&schema);
        dims.iter_mut().zip(&shape.dims).for_each(|(dim, before)| dim.keep(before));
        (step.shape.dims, step.shape.schema, step.plan.schema) = (dims, schema.clone(), schema);
        Some(step)
    }

    fn grow(&mut self, dims: &mut [Dimension], dice: &mut Dice) -> Option<()> {
        let number = dice.below(self.shape.dims.len());
        let coordinate = self.plan.schema.coordinates().nth(number)?;
        let (name, axis) = (coordinate.name().to_owned(), coordinate.axes().start);
        // Text has no domain.
        if coordinate.number().is_none() || self.evolution.domains.iter().any(|(n, ..)| *n == name) {
            return Some(());
        }
        let dim = self.shape.dims[number].clone();
        let cells: usize = self.plan.used.iter().map(Vec::len).product();
        let most = if self.plan.size == Size::Tiny { 300 } else { 60_000 };
        let room = most / (cells / self.plan.used[number].len()).max(1);
        let room = room.saturating_sub(self.plan.used[number].len()) / 2;
        let (lo, hi, used) = grown(&dim, self.plan.schema.sparse(), &self.plan.used[number], room, dice);
        let (lo, hi, tile) = (dim.text(lo), dim.text(hi), dims[axis].texts().2);
        dims[axis] = Dimension::new(&name, dim.datatype, &lo, &hi, tile.as_deref()).ok()?;
        self.evolution.domains.push((name, lo, hi));
        self.plan.used[number] = used;
        Some(())
    }

    fn add(&mut self, attrs: &mut Vec<(u32, Attribute)>, dice: &mut Dice) {
        let key = self.shape.next_key;
        let new = attribute(key as usize, self.plan.size, dice);
        // Sometimes one takes the name of another that is dropped.
        let free = self.evolution.drop.iter().find(|n| !attrs.iter().any(|(_, a)| a.name() == n.as_str()));
        let name = free.filter(|_| dice.chance(50)).map_or_else(|| new.name().to_owned(), Clone::clone);
        let new = made(&name, &new, new.nullable(), &new.fill_text().unwrap(), &new.filters_text()).unwrap();
        self.shape.next_key += 1;
        self.evolution.add.push(new.clone());
        attrs.push((key, new));
    }

    /// The index of an attribute that existed before and that is not changed yet.
    fn untouched(&self, attrs: &[(u32, Attribute)], dice: &mut Dice) -> Option<usize> {
        let place = dice.below(attrs.len());
        let known = self.plan.schema.attrs().iter().zip(&self.shape.keys);
        let same = |(old, key): (&Attribute, &u32)| *key == attrs[place].0 && *old == attrs[place].1;
        let name = attrs[place].1.name();
        // The new value may equal the old one.
        let asked = self.evolution.fill.iter().map(|(n, _)| n).chain(&self.evolution.nullable);
        let asked = asked.chain(self.evolution.categories.iter().map(|(n, _)| n));
        let asked = asked.chain(self.evolution.filters.iter().map(|(n, _)| n)).any(|n| n == name);
        (known.clone().any(|(old, key)| same((old, key))) && !asked).then_some(place)
    }

    fn drop(&mut self, attrs: &mut Vec<(u32, Attribute)>, dice: &mut Dice) {
        if attrs.len() < 2 {
            return;
        }
        if let Some(place) = self.untouched(attrs, dice) {
            let (_, attr) = attrs.remove(place);
            self.evolution.drop.push(attr.name().to_owned());
        }
    }

    /// Renames an attribute, or changes its fill, filters, or whether it may be null.
    fn change(&mut self, attrs: &mut [(u32, Attribute)], dice: &mut Dice) -> Option<()> {
        let Some(place) = self.untouched(attrs, dice) else { return Some(()) };
        let (key, attr) = attrs[place].clone();
        let (name, fill, filters) = (attr.name().to_owned(), attr.fill_text().unwrap(), attr.filters_text());
        if dice.chance(50)
            && let Some((more, text)) = with_another(&attr)
        {
            self.evolution.categories.push((name, vec![text]));
            attrs[place].1 = more;
            return Some(());
        }
        // In a sparse array the fill and the nullability of attributes that were added later are fixed.
        let first = !self.plan.schema.sparse() || key < self.plan.firsts;
        attrs[place].1 = match dice.below(4) {
            0 => {
                let new = format!("r{}x{}", self.shape.next_key, dice.below(1_000_000));
                self.evolution.rename.push((name, new.clone()));
                made(&new, &attr, attr.nullable(), &fill, &filters)?
            }
            1 => {
                let float = attr.datatype().element().kind == ElementKind::Float;
                let filters = if float && dice.chance(50) { "bitround:2,zstd:2" } else { "zstd:2" };
                self.evolution.filters.push((name.clone(), filters.to_owned()));
                made(&name, &attr, attr.nullable(), &fill, filters)?
            }
            2 if first => {
                self.evolution.nullable.push(name.clone());
                made(&name, &attr, true, &fill, &filters)?
            }
            _ if first => {
                let other = attribute(0, self.plan.size, dice);
                let same =
                    other.datatype() == attr.datatype() && attr.categories().is_none() && other.categories().is_none();
                let fill = if same { other.fill_text().unwrap() } else { blank(&attr) };
                self.evolution.fill.push((name.clone(), Some(fill.clone())));
                made(&name, &attr, attr.nullable(), &fill, &filters)?
            }
            _ => attr,
        };
        Some(())
    }

    /// Whether it applies after `newest`, which came after `before`: domains grow together, attributes change in turn.
    fn applies(&self, before: &Shape, newest: &Shape) -> bool {
        self.shape.changes == before.changes || before.changes == newest.changes
    }

    /// The same change after `newest`, which made the domain grow meanwhile, or changed other things while this did.
    fn after(mut self, before: &Shape, newest: &Shape, plan: &Plan) -> Self {
        let domain = self.shape.schema.domain();
        let mut used = std::mem::take(&mut self.plan.used);
        if self.shape.changes == before.changes {
            (self.shape, self.plan) = (newest.clone(), plan.clone());
        }
        let schema = Arc::new(self.shape.schema.reaching(&newest.schema.domain()).reaching(&domain));
        self.shape.dims = Dim::all(&schema);
        self.shape.dims.iter_mut().zip(&newest.dims).for_each(|(dim, before)| dim.keep(before));
        for (used, more) in used.iter_mut().zip(&plan.used) {
            used.extend(more);
            used.sort();
            used.dedup();
        }
        (self.shape.schema, self.plan.schema, self.plan.used) = (schema.clone(), schema, used);
        self
    }

    fn changes_nothing(&self, before: &Shape) -> bool {
        // The frame of a curve is known to the dimensions of the first schema alone.
        let same = |a: &Schema, b: &Schema| a.dims() == b.dims() && a.attrs() == b.attrs();
        same(&self.shape.schema, &before.schema) && self.shape.keys == before.keys
    }
}

/// The default fill of an attribute.
fn blank(attr: &Attribute) -> String {
    match attr.categories() {
        Some(categories) => categories.texts()[0].clone(),
        None => Attribute::new("x", attr.datatype(), false, None, "auto").unwrap().fill_text().unwrap(),
    }
}

impl Session {
    /// Changes the schema, through either handle. One that has not seen the newest change of attributes must get an error if it
    /// changes attributes too.
    pub(crate) fn evolve(&mut self, dice: &mut Dice) {
        let through_other = dice.chance(30);
        let array = if through_other { self.other.clone() } else { self.array.clone() };
        let seen = array.version();
        let before = self.model.shape_at(seen).clone();
        let Some(step) = Step::new(self.plan_at(seen), &before, dice) else { return };
        let newest = self.model.shape().clone();
        let late = !Arc::ptr_eq(&before, &newest);
        let applies = step.applies(&before, &newest);
        self.note(format!("alter {:?}{}", step.evolution, if through_other { " (other)" } else { "" }));
        match array.alter(&step.evolution, None) {
            Ok(version) if step.changes_nothing(&before) => assert_eq!(version, seen, "{self:?}"),
            Ok(version) => {
                assert!(applies, "a schema that was seen no more was changed\n{self:?}");
                let step = if late { step.after(&before, &newest, &self.plan) } else { step };
                self.take(version, step);
            }
            Err(e) => assert!(!applies && e.kind() == ErrorKind::Conflict, "{e}\n{self:?}"),
        }
        if through_other {
            self.other = array;
        }
        self.array.refresh().unwrap();
        assert_eq!(self.array.version(), self.model.newest(), "{self:?}");
        self.check_everything(dice);
    }

    fn take(&mut self, version: u64, step: Step) {
        self.model.evolve(version, step.shape);
        self.plans.insert(version, step.plan.clone());
        self.plan = step.plan;
    }

    /// A change of schema while the storage fails somewhere: it either took effect or did not.
    pub(crate) fn failing_evolve(&mut self, dice: &mut Dice) {
        let Some(plan) = self.faults.clone() else { return };
        let before = self.model.shape().clone();
        let Some(step) = Step::new(&self.plan, &before, dice) else { return };
        if step.changes_nothing(&before) {
            return;
        }
        let fault = *dice.pick(&[Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full, Fault::Kill]);
        self.note(format!("{fault:?}: alter {:?}", step.evolution));
        plan.clear();
        plan.fail_nth(1 + dice.below(5) as u64, fault);
        let outcome = self.array.alter(&step.evolution, None);
        plan.clear();
        let storage = Self::used_storage(&self.healthy, &self.faults);
        self.array =
            opened(&context(dice, &self.tiles), &storage, true, At::Latest).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let (newest, now) = (self.model.newest(), self.array.version());
        match outcome {
            Ok(version) => assert_eq!(version, now, "{self:?}"),
            Err(e) if e.kind() == ErrorKind::CommitUnknown => {}
            Err(e) => assert_eq!(now, newest, "{e} was reported\n{self:?}"),
        }
        assert!(now <= newest + 1, "{self:?}");
        if now > newest {
            self.take(now, step);
        }
        self.check_everything(dice);
    }
}
