//! What is said of a value: comparisons, `in`, `between`, `like`, `is`.

use super::super::complaint::complaint;
use super::super::expression::Expression;
use super::super::shared::Term;
use super::super::token::Token;
use super::super::tree::{Comparison, Condition, Literal};
use super::{AND, Parsed, Parser, SUM, value_of};
use crate::base::Result;

impl Parser<'_> {
    /// Parses the predicate on `first`.
    pub(super) fn predicate(&mut self, first: Parsed) -> Result<Condition> {
        let first = value_of(first);
        if self.comparison().is_some() {
            return self.chain(first);
        }
        if first.is_literal() {
            return Err(self.expected("a comparison after the value"));
        }
        if self.takes(&Token::Word("is"))? {
            return self.test(first);
        }
        let negated = self.takes(&Token::Word("not"))?;
        let found = match self.next {
            Token::Word("in") => self.members(first)?,
            Token::Word("between") => self.between(first)?,
            _ if self.is_word("like") => self.pattern(first, "like")?,
            _ if self.is_word("ilike") => self.pattern(first, "ilike")?,
            _ => return Err(self.expected("\"in\", \"between\" or \"like\"")),
        };
        Ok(if negated { Condition::negate(found) } else { found })
    }

    fn pattern(&mut self, value: Expression, word: &str) -> Result<Condition> {
        self.advance()?;
        let args = vec![Term::new(value)?, Term::new(self.value(SUM)?)?];
        Ok(Condition::of_value(Expression::Function { name: word.to_owned(), args }))
    }

    fn test(&mut self, value: Expression) -> Result<Condition> {
        let negated = self.takes(&Token::Word("not"))?;
        match self.next {
            Token::Word("null" | "none") => {
                self.advance()?;
                if negated { Condition::not_null(value) } else { Condition::null(value) }
            }
            // NaN is the value that differs from itself.
            Token::Word("nan" | "nat") => {
                self.advance()?;
                let is = if negated { Comparison::Eq } else { Comparison::Ne };
                Condition::compared(value.clone(), is, value)
            }
            _ => Err(self.expected("\"null\", \"not null\", \"nan\" or \"not nan\"")),
        }
    }

    fn members(&mut self, value: Expression) -> Result<Condition> {
        self.advance()?;
        let close = match self.next {
            Token::Sign("(") => Token::Sign(")"),
            Token::Sign("[") => Token::Sign("]"),
            _ => return Err(self.expected("a list such as (1, 5)")),
        };
        self.advance()?;
        let mut values = Vec::new();
        while !self.takes(&close)? {
            values.push(self.literal()?);
            if !self.takes(&Token::Sign(","))? && self.next != close {
                return Err(self.expected(&format!("\",\" or {}", close.describe())));
            }
        }
        Condition::among(value, values)
    }

    fn literal(&mut self) -> Result<Literal> {
        let at = self.at;
        let found = match self.value(SUM)? {
            Expression::Literal { value } => return Ok(value),
            Expression::Column { column } => format!("the column {column}"),
            _ => "a computed one, which a list does not take".to_owned(),
        };
        Err(complaint(self.text, at, format!("expected a value, found {found}; text stands in single quotes")))
    }

    fn between(&mut self, value: Expression) -> Result<Condition> {
        self.advance()?;
        let low = self.value(SUM)?;
        if self.power() != AND {
            return Err(self.expected("\"and\" and the upper end"));
        }
        self.advance()?;
        let high = self.value(SUM)?;
        Condition::ranged(value, low, high)
    }

    fn comparison(&self) -> Option<Comparison> {
        let Token::Sign(sign) = self.next else { return None };
        Comparison::parse(sign).ok()
    }

    fn chain(&mut self, first: Expression) -> Result<Condition> {
        let (mut left, mut parts) = (first, Vec::new());
        while let Some(is) = self.comparison() {
            let at = self.at;
            self.advance()?;
            let right = self.value(SUM)?;
            if left.is_literal() && right.is_literal() {
                return Err(complaint(self.text, at, "two values are compared; one side must be a column"));
            }
            parts.push(Condition::compared(left, is, right.clone())?);
            left = right;
        }
        Ok(Condition::all(parts))
    }
}
