//! `case`: text to tree, tree to bound case, and its values.
//!
//! ```text
//! case   = "case" ("when" condition "then" result)+ ["else" result] "end"
//!        | "case" sum ("when" sum "then" result)+ ["else" result] "end"
//!        | ("if" | "iff") "(" condition "," result "," result ")"
//!        | "nullif" "(" sum "," sum ")"
//! result = sum | "null"
//! ```
//! All forms make one node, of conditions and results: `case x when 1 then …` is `case when x == 1 then …`. The words of
//! a case are no reserved words: a column may be called `end`, and is quoted within a case only.

use super::super::batch::Batch;
use super::super::bind::{Bound, Needed};
use super::super::selection::Selection;
use super::super::token::Token;
use super::super::tree::{Comparison, Condition, Literal};
use super::bind::{BoundExpression, Node};
use super::parse::NESTING_MAX;
use super::pick::Pick;
use super::{Expression, Parser, When};
use crate::base::Result;
use crate::schema::{Datatype, Schema};
use crate::tile::Column;

/// Functions that are parsed as other nodes.
pub(super) const SYNONYMS: [&str; 5] = ["if", "iff", "nullif", "ifnull", "nvl"];

impl Parser<'_> {
    /// Whether the word `case`, which was just read, begins a case. Else it is the name of a column.
    pub(super) fn begins_case(&self) -> bool {
        match &self.next {
            Token::Name(..) => !self.is_name("like") && !self.is_name("ilike"),
            Token::Int(_) | Token::Float(_) | Token::Text(_) | Token::Bytes(_) | Token::Sign("(") => true,
            Token::Word(word) => matches!(*word, "true" | "false"),
            Token::Sign("-" | "+") => self.cases > 0 || self.reaches_when(),
            _ => false,
        }
    }

    /// Whether what follows is a value and then `when`: `case -x when …`, and not `case - x`.
    fn reaches_when(&self) -> bool {
        let (mut tokens, mut depth) = (self.tokens.clone(), 0usize);
        while let Ok((token, _)) = tokens.next() {
            match &token {
                Token::Sign("(" | "[") => depth += 1,
                Token::Sign(")" | "]") if depth > 0 => depth -= 1,
                Token::End | Token::Sign(")" | "]") => return false,
                Token::Sign("," | "&" | "|" | "==" | "!=" | "<" | "<=" | ">" | ">=") | Token::Word(_) if depth == 0 => {
                    return false;
                }
                Token::Name(name, true) if depth == 0 && name.eq_ignore_ascii_case("when") => return true,
                _ => {}
            }
        }
        false
    }

    /// The case after its first word.
    pub(super) fn case(&mut self) -> Result<Expression> {
        self.within(NESTING_MAX, |p| {
            p.cases += 1;
            let made = p.branches();
            p.cases -= 1;
            made
        })
    }

    fn branches(&mut self) -> Result<Expression> {
        let is_short = !["when", "then", "else", "end"].into_iter().any(|word| self.is_name(word));
        let operand = if is_short { Some(self.sum()?) } else { None };
        let mut whens = Vec::new();
        while self.takes_name("when")? {
            let condition = match &operand {
                Some(operand) => self.equal_to(operand)?,
                None => self.condition(0)?,
            };
            if !self.takes_name("then")? {
                return Err(self.expected("\"then\" and a value after the condition of a case"));
            }
            whens.push(When { condition: condition.into(), then: self.result()? });
        }
        if whens.is_empty() {
            return Err(self.expected("\"when\", a condition, \"then\" and a value in a case"));
        }
        let has_else = self.takes_name("else")?;
        let otherwise = if has_else { self.result()?.map(Box::new) } else { None };
        if !self.takes_name("end")? {
            return Err(match has_else {
                true => self.expected("\"end\" after the last value of a case"),
                false => self.expected("\"when\", \"else\" or \"end\" in a case"),
            });
        }
        Ok(Expression::Case { whens, otherwise })
    }

    /// The comparison of a copy of a value with the next one.
    fn equal_to(&mut self, value: &Expression) -> Result<Condition> {
        let at = self.at;
        let other = self.sum()?;
        let copy = self.copy(value)?;
        self.compared(at, Comparison::Eq, copy, other)
    }

    /// A value, or null.
    fn result(&mut self) -> Result<Option<Expression>> {
        if matches!(self.next, Token::Word("null" | "none")) {
            self.advance()?;
            return Ok(None);
        }
        self.sum().map(Some)
    }

    /// The node that a function of this name is short for, after its opening parenthesis.
    pub(super) fn synonym(&mut self, name: &str) -> Result<Option<Expression>> {
        let made = match name {
            "if" | "iff" => {
                let condition = self.within(NESTING_MAX, |p| p.condition(0))?;
                self.needs(&Token::Sign(","))?;
                let then = self.result()?;
                self.needs(&Token::Sign(","))?;
                let otherwise = self.result()?.map(Box::new);
                Expression::Case { whens: vec![When { condition: condition.into(), then }], otherwise }
            }
            "nullif" => {
                let value = self.sum()?;
                self.needs(&Token::Sign(","))?;
                let condition = self.equal_to(&value)?;
                Expression::Case {
                    whens: vec![When { condition: condition.into(), then: None }],
                    otherwise: Some(Box::new(value)),
                }
            }
            "ifnull" | "nvl" => {
                return self.list().map(|args| Some(Expression::Function { name: "coalesce".into(), args }));
            }
            _ => return Ok(None),
        };
        self.needs(&Token::Sign(")"))?;
        Ok(Some(made))
    }
}

/// A case bound to a schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundCase {
    whens: Vec<BoundWhen>,
    otherwise: Option<BoundExpression>,
}

#[derive(Debug, Clone, PartialEq)]
struct BoundWhen {
    condition: Bound,
    then: Option<BoundExpression>,
}

impl Expression {
    /// The node of a case, its type, and whether a value may be null.
    pub(super) fn case(
        &self,
        schema: &Schema,
        whens: &[When],
        otherwise: Option<&Self>,
    ) -> Result<(Node, Datatype, bool)> {
        let bound = |value: &Self| value.bind(schema)?.decoded(schema);
        let of_when = |when: &When| {
            let condition = when.condition.bind(schema)?;
            Ok(BoundWhen { condition, then: when.then.as_ref().map(bound).transpose()? })
        };
        let whens_bound = whens.iter().map(of_when).collect::<Result<Vec<_>>>()?;
        let made = BoundCase { whens: whens_bound, otherwise: otherwise.map(bound).transpose()? };
        let values: Vec<&BoundExpression> = made.values().collect();
        let is_flag = |value: &&Self| matches!(value, Self::Literal { value: Literal::Bool(_) });
        let datatype = match self.args().iter().all(is_flag) {
            true => Datatype::Bool,
            false => self.shared_type(&values)?,
        };
        let has_null = made.otherwise.is_none() || made.whens.iter().any(|when| when.then.is_none());
        let nullable = has_null || values.iter().any(|value| value.nullable);
        Ok((Node::Case(Box::new(made)), datatype, nullable))
    }
}

impl BoundCase {
    fn values(&self) -> impl Iterator<Item = &BoundExpression> {
        self.whens.iter().filter_map(|when| when.then.as_ref()).chain(&self.otherwise)
    }

    /// Adds the columns that its evaluation needs.
    pub(super) fn gather(&self, needed: &mut Needed) {
        for when in &self.whens {
            let Needed { dims, attrs } = when.condition.columns();
            needed.dims.extend(dims);
            needed.attrs.extend(attrs);
        }
        self.values().for_each(|value| value.gather(needed));
    }

    /// The value of each row, in the type that they share.
    pub(super) fn evaluate(&self, datatype: Datatype, nullable: bool, batch: &Batch<'_>) -> Result<Column> {
        let mut pick = Pick::new(datatype, batch);
        let mut left = Selection::all_or_none(batch.rows(), true);
        for when in &self.whens {
            if left.count() == 0 {
                break;
            }
            let chosen = chosen(&when.condition, &left, batch)?;
            left = left.and(&chosen.not());
            if let Some(value) = &when.then {
                pick.take(value, &chosen)?;
            }
        }
        if let Some(value) = &self.otherwise {
            pick.take(value, &left)?;
        }
        pick.into_column(nullable)
    }
}

/// The rows among `among` for which a condition is true. What it computes is computed for these alone.
fn chosen(condition: &Bound, among: &Selection, batch: &Batch<'_>) -> Result<Selection> {
    if among.count() == batch.rows() || !condition.computes() {
        return Ok(condition.evaluate(batch)?.and(among));
    }
    let rows: Vec<u32> = among.rows().map(|row| row as u32).collect();
    let part = batch.gather(&rows, &condition.columns());
    let found = condition.evaluate(&part.batch())?;
    Ok(Selection::of_rows(found.rows().filter_map(|place| rows.get(place)).map(|row| *row as usize), batch.rows()))
}
