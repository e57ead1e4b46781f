//! The plan of a question: what is evaluated of each cell, and in which stages groups are made of it.
//!
//! The first stage has the groups that were asked for. Each argument of an aggregate that needs all values at once has a
//! stage of its own: its groups have the value as one more key, and are counted. So values that repeat are held once.

use super::answer::ResultColumn;
use super::function::Function;
use super::groups::Groups;
use super::key::{Bin, GroupKey};
use super::quantile::{Distribution, Reduction};
use super::stage::{Stage, Stages};
use super::state::Counts;
use super::state::input::State;
use crate::base::{Error, Result};
use crate::condition::{BoundExpression, Call, Expression, Needed, Place};
use crate::schema::{Datatype, Schema};
use std::sync::Arc;

/// A key that cells are grouped by.
#[derive(Debug, Clone)]
pub struct By {
    /// Its name in results.
    pub name: String,
    /// Its value.
    pub value: Expression,
    /// The width of bins; `None`: each value is a group.
    pub width: Option<Width>,
}

/// The width of bins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Width {
    /// A whole number.
    Whole(u64),
    /// Any number.
    Float(f64),
}

/// An aggregate that is asked for.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Its name in results.
    pub name: String,
    /// What it computes.
    pub call: Call,
    /// The same as it was written, for errors.
    pub text: String,
}

/// What is asked of the cells of an array: aggregates, by groups.
///
/// ```
/// use gridstone::{Attribute, Call, ColumnView, Context, Datatype, Dimension, Options, Order, Question, Schema, SchemaOptions};
///
/// # fn main() -> gridstone::Result<()> {
/// let context = Context::new(&Options::default())?;
/// let dim = Dimension::new("i", Datatype::Int64, "0", "5", None)?;
/// let attrs = ["kind", "v"].map(|name| Attribute::new(name, Datatype::Int32, false, None, "auto"));
/// let schema = Schema::new(vec![dim], attrs.into_iter().collect::<gridstone::Result<_>>()?, SchemaOptions::default())?;
/// let array = gridstone::create_array(&context, "mem://asking", "/", schema, false)?;
/// let call = Call::default();
/// let (kind, v) = ([1, 2, 1, 2, 1, 2], [10, 20, 30, 40, 50, 60]);
/// let data = vec![("kind".to_owned(), ColumnView::of(&kind)), ("v".to_owned(), ColumnView::of(&v))];
/// array.commit(vec![array.stage_box(None, &data, Order::Row, &call)?], None)?;
///
/// let question = Question::parse(&["kind"], &["count(*)", "mean(v)"])?;
/// let (answer, _) = array.aggregate(None, None, &question, &call)?;
/// assert_eq!(answer.rows, 2);
/// assert_eq!(answer.columns[2].1.numbers::<f64>()?, [30.0, 40.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The keys; without any there is one group.
    pub by: Vec<By>,
    /// The aggregates.
    pub aggregates: Vec<Aggregate>,
}

impl Question {
    /// A question of texts: expressions that cells are grouped by, and aggregates of each group. A text names its column of
    /// the answer.
    ///
    /// # Errors
    /// Input: a text that is no expression, or no aggregate.
    ///
    /// ```
    /// use gridstone::engine::Question;
    ///
    /// # fn main() -> gridstone::Result<()> {
    /// let question = Question::parse(&["kind"], &["count(*)", "mean(knots * 1.852)"])?;
    /// assert_eq!(question.aggregates[1].name, "mean(knots * 1.852)");
    /// assert!(Question::parse(&["kind +"], &[]).is_err() && Question::parse(&[], &["knots"]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn parse(by: &[&str], aggregates: &[&str]) -> Result<Self> {
        let key = |text: &&str| Ok(By { name: (*text).to_owned(), value: Expression::parse(text)?, width: None });
        let aggregate = |text: &&str| {
            let (name, text, call) = ((*text).to_owned(), (*text).to_owned(), Call::parse(text)?);
            Ok(Aggregate { name, call, text })
        };
        let by = by.iter().map(key).collect::<Result<_>>()?;
        Ok(Self { by, aggregates: aggregates.iter().map(aggregate).collect::<Result<_>>()? })
    }
}

/// Where the result of an aggregate comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// A state of the first stage.
    State(usize),
    /// All values, in another stage; a state of the first stage counts them.
    Values(usize, Reduction, usize),
}

/// A question, planned.
#[derive(Debug)]
pub(super) struct Plan {
    /// What is evaluated of each chunk of cells.
    pub(super) sources: Vec<BoundExpression>,
    pub(super) stages: Stages,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) columns: Vec<ResultColumn>,
    /// Whether places in the order of the array are asked for.
    pub(super) asks_places: bool,
}

#[derive(Default)]
struct Sources(Vec<BoundExpression>);

impl Sources {
    fn place_of(&mut self, expression: BoundExpression) -> usize {
        if let Some(place) = self.0.iter().position(|held| *held == expression) {
            return place;
        }
        self.0.push(expression);
        self.0.len() - 1
    }

    fn datatype(&self, place: usize) -> Datatype {
        self.0.get(place).map_or(Datatype::Int64, BoundExpression::datatype)
    }

    fn nullable(&self, place: usize) -> bool {
        self.0.get(place).is_some_and(BoundExpression::nullable)
    }

    /// The attribute whose codes an expression gives.
    fn categories(&self, place: usize, schema: &Schema) -> Option<usize> {
        let Some(Place::Attr(attr)) = self.0.get(place)?.plain() else { return None };
        schema.attrs().get(attr)?.categories().map(|_| attr)
    }
}

impl Plan {
    /// Plans a question to arrays of a schema.
    ///
    /// # Errors
    /// Input: a name, type or number of arguments that does not fit; two columns of one name.
    pub(super) fn new(schema: &Schema, question: &Question) -> Result<Self> {
        if question.aggregates.is_empty() {
            return Err(Error::input("no aggregate is asked for; name one, such as {\"n\": \"count(*)\"}"));
        }
        let names = question.by.iter().map(|by| &by.name).chain(question.aggregates.iter().map(|a| &a.name));
        let mut names: Vec<&String> = names.collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.windows(2).find(|pair| matches!(pair, [a, b] if a == b)) {
            return Err(Error::input(format!(
                "two columns of the result have the name {twice:?}; give one another name"
            )));
        }
        let mut sources = Sources::default();
        let (mut keys, mut key_sources, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for by in &question.by {
            let place = sources.place_of(by.value.bind(schema)?);
            let bin = match by.width {
                None => Bin::None,
                Some(Width::Whole(width)) if !sources.datatype(place).is_float() => Bin::Whole(width),
                Some(Width::Whole(width)) => Bin::Float(width as f64),
                Some(Width::Float(width)) => Bin::Float(width),
            };
            let key = GroupKey {
                name: by.name.clone(),
                datatype: sources.datatype(place),
                nullable: sources.nullable(place),
                bin,
            };
            key.check()?;
            let categories = sources.categories(place, schema);
            if categories.is_some() && bin != Bin::None {
                return Err(Error::input(format!("{:?} has categories, which have no bins", by.name)));
            }
            columns.push(ResultColumn { name: by.name.clone(), categories, nullable: key.nullable });
            keys.push(key);
            key_sources.push(place);
        }
        let (states, others, counts) = (Vec::new(), Vec::new(), Vec::new());
        let mut made = Made { schema, keys, key_sources, sources, states, others, counts, asks_places: false };
        let mut outcomes = Vec::new();
        for asked in &question.aggregates {
            let (outcome, column) = made.add(asked)?;
            outcomes.push(outcome);
            columns.push(column);
        }
        let Made { keys, key_sources, sources, states, others, asks_places, .. } = made;
        let first = Stage::new(Groups::new(Arc::new(keys))?, key_sources, states);
        let stages = Stages::new(std::iter::once(first).chain(others).collect());
        Ok(Self { sources: sources.0, stages, outcomes, columns, asks_places })
    }

    /// The columns of the array that it looks at.
    pub(super) fn columns_needed(&self, ndim: usize) -> Needed {
        let mut needed = Needed::default();
        for source in &self.sources {
            let Needed { dims, attrs } = source.columns();
            needed.dims.extend(dims);
            needed.attrs.extend(attrs);
        }
        if self.asks_places {
            needed.dims.extend(0..ndim);
        }
        for places in [&mut needed.dims, &mut needed.attrs] {
            places.sort_unstable();
            places.dedup();
        }
        needed
    }
}

/// A plan in the making.
struct Made<'s> {
    schema: &'s Schema,
    keys: Vec<GroupKey>,
    key_sources: Vec<usize>,
    sources: Sources,
    states: Vec<(Box<dyn State>, Vec<usize>)>,
    others: Vec<Stage>,
    /// Sources of which all values are needed, and the states that count these.
    counts: Vec<(usize, usize)>,
    asks_places: bool,
}

impl Made<'_> {
    /// Adds an aggregate; gives where its result comes from, and its column.
    fn add(&mut self, asked: &Aggregate) -> Result<(Outcome, ResultColumn)> {
        let named = |e: Error| Error::input(format!("{:?}: {}", asked.name, e.message())).with_source(e);
        let (function, args) = Function::of(&asked.call).map_err(named)?;
        let mut places = Vec::with_capacity(args.len());
        for (place, arg) in args.iter().enumerate() {
            let bound = arg.bind(self.schema).map_err(named)?;
            let bound = if function.compares() == Some(place) { bound.comparable(self.schema) } else { Ok(bound) };
            places.push(self.sources.place_of(bound.map_err(named)?));
        }
        let types: Vec<Datatype> = places.iter().map(|place| self.sources.datatype(*place)).collect();
        let codes = places.first().and_then(|place| self.sources.categories(*place, self.schema));
        if codes.is_some()
            && matches!(
                function,
                Function::Sum
                    | Function::Mean
                    | Function::Spread(_)
                    | Function::Some
                    | Function::All
                    | Function::Quantile { discrete: false, .. }
            )
        {
            return Err(Error::input(format!("{}: the values are categories, which are no numbers", asked.text)));
        }
        self.asks_places |= function.asks_places();
        // Groups by keys have rows.
        let of_nothing = self.keys.is_empty() || places.iter().any(|place| self.sources.nullable(*place));
        let nullable = function.may_be_null(of_nothing);
        let column = |categories| ResultColumn { name: asked.name.clone(), categories, nullable };
        if let Some(state) = function.state(&types, self.schema.ndim(), &asked.text)? {
            self.states.push((state, places));
            let gives_value = !matches!(
                function,
                Function::CountAll | Function::Count | Function::ApproxCountDistinct | Function::Some | Function::All
            );
            return Ok((Outcome::State(self.states.len() - 1), column(codes.filter(|_| gives_value))));
        }
        let place = places.first().copied().unwrap_or(0);
        let datatype = self.sources.datatype(place);
        let reduction = match function {
            Function::Quantile { share, discrete } => {
                Reduction::Quantile(Distribution::new(datatype, share, discrete, &asked.text)?)
            }
            _ => Reduction::Count,
        };
        let gives_value = matches!(reduction, Reduction::Quantile(d) if d.discrete());
        let stage = self.stage_of(place, datatype)?;
        Ok((Outcome::Values(stage, reduction, self.count_of(place)), column(codes.filter(|_| gives_value))))
    }

    /// The state that counts the values of a source, which is made where there is none: ranks follow from it.
    fn count_of(&mut self, place: usize) -> usize {
        if let Some((_, state)) = self.counts.iter().find(|(source, _)| *source == place) {
            return *state;
        }
        self.states.push((Box::new(Counts::new(false)), vec![place]));
        self.counts.push((place, self.states.len() - 1));
        self.states.len() - 1
    }

    /// The stage with all values of a source, which is made where there is none.
    fn stage_of(&mut self, place: usize, datatype: Datatype) -> Result<usize> {
        if let Some(held) = self.others.iter().position(|stage| stage.value_source() == Some(place)) {
            return Ok(held + 1);
        }
        let value = GroupKey { name: "value".to_owned(), datatype, nullable: false, bin: Bin::None };
        let keys = self.keys.iter().cloned().chain([value]).collect();
        let sources = self.key_sources.iter().copied().chain([place]).collect();
        let counts: Box<dyn State> = Box::new(Counts::new(true));
        self.others.push(Stage::new(Groups::new(Arc::new(keys))?, sources, vec![(counts, Vec::new())]).of_values());
        Ok(self.others.len())
    }
}
