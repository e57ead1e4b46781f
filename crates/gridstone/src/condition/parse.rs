//! Text to tree: a Pratt parser over [`super::token`].
//!
//! ```text
//! condition  = condition ("or" | "|" | "||") condition            binds least
//!            | condition ("and" | "&" | "&&") condition
//!            | ("not" | "~" | "!") condition                      binds most
//!            | "(" condition ")" | "true" | "false" | column
//!            | value (sign value)+                                chains: 1 < x <= 5
//!            | value ["not"] "between" value "and" value
//!            | value ["not"] "in" ("(" | "[") literal, … (")" | "]")
//!            | value ["not"] "in" "period" "(" 'date' ")"        from its first instant to its last
//!            | value ["not"] ("like" | "ilike") 'pattern'
//!            | value "is" ["not"] ("null" | "none" | "nan")
//!            | value                                              one that is true or false
//! value      = a column, a literal or an expression (`expression/parse.rs`)
//! sign       = "==" | "=" | "!=" | "<>" | "<" | "<=" | ">" | ">="
//! ```
//! `and` and `or` take whole chains: `a and b and c` is one node of three.

use super::complaint::complaint;
use super::expression::{Expression, Parser};
use super::time;
use super::token::Token;
use super::tree::{Comparison, Condition, Literal, TEXT_BYTES_MAX};
use crate::base::{Error, Result};

/// The largest nesting depth of parentheses and `not`.
const NESTING_MAX: usize = 200;
const OR: u8 = 1;
const AND: u8 = 2;

impl Condition {
    /// Parses the condition in `text`; an Input error shows the position of the mistake and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::input(format!("a condition of {} bytes; {TEXT_BYTES_MAX} are allowed", text.len())));
        }
        let mut parser = Parser::new(text)?;
        let condition = parser.condition(0)?;
        if parser.next != Token::End {
            return Err(parser.expected("\"and\", \"or\" or the end"));
        }
        condition.check()?;
        Ok(condition)
    }
}

impl Parser<'_> {
    /// How strongly the next token binds two conditions; 0 if it does not.
    fn power(&self) -> u8 {
        match self.next {
            Token::Word("or") | Token::Sign("|") => OR,
            Token::Word("and") | Token::Sign("&") => AND,
            _ => 0,
        }
    }

    /// Parses a condition up to a token that binds less than `least`.
    pub(super) fn condition(&mut self, least: u8) -> Result<Condition> {
        let mut left = self.unit()?;
        loop {
            let power = self.power();
            if power == 0 || power < least {
                return Ok(left);
            }
            let mut parts = vec![left];
            while self.power() == power {
                self.advance()?;
                parts.push(self.condition(power + 1)?);
            }
            left = if power == AND { Condition::all(parts) } else { Condition::any(parts) };
        }
    }

    fn unit(&mut self) -> Result<Condition> {
        if matches!(self.next, Token::Word("not") | Token::Sign("~")) {
            self.advance()?;
            return Ok(Condition::negate(self.within(NESTING_MAX, Self::unit)?));
        }
        if self.takes(&Token::Sign("("))? {
            let inner = self.within(NESTING_MAX, |p| p.condition(0))?;
            self.needs(&Token::Sign(")"))?;
            // What is a value by itself may be the beginning of a longer one.
            let first = match inner {
                Condition::Column { column } => Expression::Column { column },
                Condition::Holds { value } => value,
                other => return Ok(other),
            };
            let whole = self.rest(first)?;
            return self.predicate(whole);
        }
        self.wanted = "a condition";
        let first = self.sum()?;
        self.predicate(first)
    }

    /// Parses the predicate on `first`.
    fn predicate(&mut self, first: Expression) -> Result<Condition> {
        if self.comparison().is_some() {
            return self.chain(first);
        }
        match &first {
            Expression::Literal { value: Literal::Bool(true) } => return Ok(Condition::True {}),
            Expression::Literal { value: Literal::Bool(false) } => return Ok(Condition::False {}),
            Expression::Literal { .. } => return Err(self.expected("a comparison after the value")),
            _ => {}
        }
        if self.takes(&Token::Word("is"))? {
            return self.test(first);
        }
        let negated = self.next == Token::Word("not");
        if negated {
            self.advance()?;
        }
        let like = match &self.next {
            Token::Name(name, true) => Some(name.to_lowercase()).filter(|name| name == "like" || name == "ilike"),
            _ => None,
        };
        let found = match (&self.next, like) {
            (Token::Word("in"), _) => self.members(first)?,
            (Token::Word("between"), _) => self.between(first)?,
            (_, Some(name)) => {
                self.advance()?;
                let args = vec![first, self.sum()?];
                Condition::Holds { value: Expression::Function { name, args } }
            }
            _ if negated => return Err(self.expected("\"in\" or \"between\" or \"like\"")),
            _ => match first {
                Expression::Column { column } => return Ok(Condition::Column { column }),
                value => return Ok(Condition::Holds { value }),
            },
        };
        Ok(if negated { Condition::negate(found) } else { found })
    }

    fn test(&mut self, value: Expression) -> Result<Condition> {
        let negated = self.takes(&Token::Word("not"))?;
        match self.next {
            Token::Word("null" | "none") => {
                self.advance()?;
                Ok(match (value, negated) {
                    (Expression::Column { column }, false) => Condition::IsNull { column },
                    (Expression::Column { column }, true) => Condition::IsNotNull { column },
                    (value, false) => Condition::ValueIsNull { value },
                    (value, true) => Condition::ValueIsNotNull { value },
                })
            }
            // NaN is the value that differs from itself.
            Token::Word("nan" | "nat") => {
                let at = self.at;
                self.advance()?;
                let is = if negated { Comparison::Eq } else { Comparison::Ne };
                let copy = self.copy(&value)?;
                self.compared(at, is, copy, value)
            }
            _ => Err(self.expected("\"null\", \"not null\", \"nan\" or \"not nan\"")),
        }
    }

    /// `t in period('2024-05')`: from the first instant of a written date or time to its last.
    fn in_period(&mut self, value: Expression) -> Result<Condition> {
        let at = self.at;
        self.advance()?;
        self.needs(&Token::Sign("("))?;
        let Token::Text(text) = self.next.clone() else {
            return Err(self.expected("a date or time in quotes, as in period('2024-05')"));
        };
        let wrong = |message: String| complaint(self.text, self.at, message);
        let (low, high) = time::period(&text).map_err(wrong)?;
        self.advance()?;
        self.needs(&Token::Sign(")"))?;
        let copy = self.copy(&value)?;
        let low = self.compared(at, Comparison::Ge, copy, Expression::Literal { value: low })?;
        let high = self.compared(at, Comparison::Lt, value, Expression::Literal { value: high })?;
        Ok(Condition::all(vec![low, high]))
    }

    fn members(&mut self, value: Expression) -> Result<Condition> {
        self.advance()?;
        if self.is_name("period") {
            return self.in_period(value);
        }
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
        Ok(match value {
            Expression::Column { column } => Condition::In { column, values },
            value => Condition::InValues { value, values },
        })
    }

    fn between(&mut self, value: Expression) -> Result<Condition> {
        let at = self.at;
        self.advance()?;
        let low = self.sum()?;
        if !matches!(self.next, Token::Word("and") | Token::Sign("&")) {
            return Err(self.expected("\"and\" and the upper end"));
        }
        self.advance()?;
        match (value, low, self.sum()?) {
            (
                Expression::Column { column },
                Expression::Literal { value: low },
                Expression::Literal { value: high },
            ) => Ok(Condition::Between { column, low, high }),
            (value, low, high) => {
                let copy = self.copy(&value)?;
                let above = self.compared(at, Comparison::Ge, copy, low)?;
                Ok(Condition::all(vec![above, self.compared(at, Comparison::Le, value, high)?]))
            }
        }
    }

    fn comparison(&self) -> Option<Comparison> {
        let Token::Sign(sign) = self.next else { return None };
        Some(match sign {
            "==" => Comparison::Eq,
            "!=" => Comparison::Ne,
            "<" => Comparison::Lt,
            "<=" => Comparison::Le,
            ">" => Comparison::Gt,
            ">=" => Comparison::Ge,
            _ => return None,
        })
    }

    fn chain(&mut self, first: Expression) -> Result<Condition> {
        let (mut left, mut parts) = (first, Vec::new());
        while let Some(is) = self.comparison() {
            let at = self.at;
            self.advance()?;
            let right = self.sum()?;
            let next = if self.comparison().is_some() { Some(self.copy(&right)?) } else { None };
            parts.push(self.compared(at, is, left, right)?);
            let Some(next) = next else { break };
            left = next;
        }
        Ok(Condition::all(parts))
    }

    /// The comparison whose sign stands at byte `at`.
    pub(super) fn compared(&self, at: usize, is: Comparison, left: Expression, right: Expression) -> Result<Condition> {
        use Expression::{Column, Literal};
        Ok(match (left, right) {
            (Column { column }, Literal { value }) => Condition::Compare { is, column, value },
            (Literal { value }, Column { column }) => Condition::Compare { is: is.flipped(), column, value },
            (Column { column: left }, Column { column: right }) => Condition::CompareColumns { is, left, right },
            (Literal { .. }, Literal { .. }) => {
                return Err(complaint(self.text, at, "two values are compared; one side must be a column"));
            }
            (left, right) => Condition::CompareValues { is, left, right },
        })
    }

    fn literal(&mut self) -> Result<Literal> {
        let at = self.at;
        match self.sum()? {
            Expression::Literal { value } => Ok(value),
            Expression::Column { column } => Err(complaint(
                self.text,
                at,
                format!("expected a value, found the column {column}; text stands in single quotes"),
            )),
            other => Err(complaint(self.text, at, format!("expected a value, found {other}, which is computed"))),
        }
    }
}
