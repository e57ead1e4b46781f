//! Text to tree: a Pratt parser over [`super::token`].
//!
//! ```text
//! condition  = condition ("or" | "|" | "||") condition            binds least
//!            | condition ("and" | "&" | "&&") condition
//!            | ("not" | "~" | "!") condition                      binds most
//!            | "(" condition ")" | "true" | "false" | column
//!            | operand (sign operand)+                            chains: 1 < x <= 5
//!            | column ["not"] "between" literal "and" literal
//!            | column ["not"] "in" ("(" | "[") literal, … (")" | "]")
//!            | column "is" ["not"] ("null" | "none" | "nan")
//! sign       = "==" | "=" | "!=" | "<>" | "<" | "<=" | ">" | ">="
//! ```
//! `and` and `or` take whole chains: `a and b and c` is one node of three.

use super::complaint::complaint;
use super::time;
use super::token::{Token, Tokens};
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
        let mut parser = Parser { text, tokens: Tokens::new(text), next: Token::End, at: 0, nesting: 0 };
        parser.advance()?;
        let condition = parser.condition(0)?;
        if parser.next != Token::End {
            return Err(parser.expected("\"and\", \"or\" or the end"));
        }
        condition.check()?;
        Ok(condition)
    }
}

/// A side of a comparison.
#[derive(Debug, Clone)]
enum Operand {
    Column(String),
    Literal(Literal),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
    next: Token,
    /// The position of `next`.
    at: usize,
    nesting: usize,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token> {
        let (next, at) = self.tokens.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn wrong(&self, message: impl AsRef<str>) -> Error {
        complaint(self.text, self.at, message)
    }

    fn expected(&self, what: &str) -> Error {
        self.wrong(format!("expected {what}, found {}", self.next.describe()))
    }

    /// Takes the next token if it is this word or sign.
    fn takes(&mut self, token: &Token) -> Result<bool> {
        let found = self.next == *token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn needs(&mut self, token: &Token) -> Result<()> {
        if self.takes(token)? { Ok(()) } else { Err(self.expected(&token.describe())) }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == NESTING_MAX {
            return Err(self.wrong(format!("more than {NESTING_MAX} levels of parentheses or \"not\"")));
        }
        self.nesting += 1;
        let made = inner(self);
        self.nesting -= 1;
        made
    }

    /// How strongly the next token binds two conditions; 0 if it does not.
    fn power(&self) -> u8 {
        match self.next {
            Token::Word("or") | Token::Sign("|") => OR,
            Token::Word("and") | Token::Sign("&") => AND,
            _ => 0,
        }
    }

    /// Parses a condition up to a token that binds less than `least`.
    fn condition(&mut self, least: u8) -> Result<Condition> {
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
            return Ok(Condition::negate(self.deeper(Self::unit)?));
        }
        if self.takes(&Token::Sign("("))? {
            let inner = self.deeper(|p| p.condition(0))?;
            self.needs(&Token::Sign(")"))?;
            return match inner {
                Condition::Column { column } => self.predicate(Operand::Column(column)),
                other => Ok(other),
            };
        }
        let first = self.operand("a condition")?;
        self.predicate(first)
    }

    /// Parses the predicate on `first`.
    fn predicate(&mut self, first: Operand) -> Result<Condition> {
        if self.comparison().is_some() {
            return self.chain(first);
        }
        let column = match first {
            Operand::Column(column) => column,
            Operand::Literal(Literal::Bool(true)) => return Ok(Condition::True {}),
            Operand::Literal(Literal::Bool(false)) => return Ok(Condition::False {}),
            Operand::Literal(_) => return Err(self.expected("a comparison after the value")),
        };
        if self.takes(&Token::Word("is"))? {
            return self.test(column);
        }
        let negated = self.next == Token::Word("not");
        if negated {
            self.advance()?;
        }
        let found = match self.next {
            Token::Word("in") => self.members(column)?,
            Token::Word("between") => self.between(column)?,
            _ if negated => return Err(self.expected("\"in\" or \"between\"")),
            _ => return Ok(Condition::Column { column }),
        };
        Ok(if negated { Condition::negate(found) } else { found })
    }

    fn test(&mut self, column: String) -> Result<Condition> {
        let negated = self.takes(&Token::Word("not"))?;
        match self.next {
            Token::Word("null" | "none") => {
                self.advance()?;
                Ok(if negated { Condition::IsNotNull { column } } else { Condition::IsNull { column } })
            }
            // NaN is the value that differs from itself.
            Token::Word("nan" | "nat") => {
                self.advance()?;
                let is = if negated { Comparison::Eq } else { Comparison::Ne };
                Ok(Condition::CompareColumns { is, left: column.clone(), right: column })
            }
            _ => Err(self.expected("\"null\", \"not null\", \"nan\" or \"not nan\"")),
        }
    }

    fn members(&mut self, column: String) -> Result<Condition> {
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
        Ok(Condition::In { column, values })
    }

    fn between(&mut self, column: String) -> Result<Condition> {
        self.advance()?;
        let low = self.literal()?;
        if !matches!(self.next, Token::Word("and") | Token::Sign("&")) {
            return Err(self.expected("\"and\" and the upper end"));
        }
        self.advance()?;
        Ok(Condition::Between { column, low, high: self.literal()? })
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

    fn chain(&mut self, first: Operand) -> Result<Condition> {
        let (mut left, mut parts) = (first, Vec::new());
        while let Some(is) = self.comparison() {
            let at = self.at;
            self.advance()?;
            let right = self.operand("a value")?;
            parts.push(match (left, right.clone()) {
                (Operand::Column(column), Operand::Literal(value)) => Condition::Compare { is, column, value },
                (Operand::Literal(value), Operand::Column(column)) => {
                    Condition::Compare { is: is.flipped(), column, value }
                }
                (Operand::Column(left), Operand::Column(right)) => Condition::CompareColumns { is, left, right },
                (Operand::Literal(_), Operand::Literal(_)) => {
                    return Err(complaint(self.text, at, "two values are compared; one side must be a column"));
                }
            });
            left = right;
        }
        Ok(Condition::all(parts))
    }

    fn literal(&mut self) -> Result<Literal> {
        let at = self.at;
        match self.operand("a value")? {
            Operand::Literal(literal) => Ok(literal),
            Operand::Column(name) => Err(complaint(
                self.text,
                at,
                format!("expected a value, found the column {name}; text stands in single quotes"),
            )),
        }
    }

    fn operand(&mut self, what: &str) -> Result<Operand> {
        if self.next == Token::Sign("(") {
            self.advance()?;
            let inner = self.deeper(|p| p.operand(what))?;
            self.needs(&Token::Sign(")"))?;
            return Ok(inner);
        }
        if let Token::Word("null" | "none") = self.next {
            return Err(self.wrong("nothing equals null; write: column is null, or: column is not null"));
        }
        if matches!(self.next, Token::Sign("+" | "-")) {
            let negative = self.advance()? == Token::Sign("-");
            return self.number(negative).map(Operand::Literal);
        }
        Ok(match &self.next {
            Token::Int(_) | Token::Float(_) | Token::Word("nan" | "inf" | "infinity") => {
                Operand::Literal(self.number(false)?)
            }
            Token::Word(word @ ("true" | "false")) => {
                let value = *word == "true";
                self.advance()?;
                Operand::Literal(Literal::Bool(value))
            }
            Token::Text(_) | Token::Bytes(_) | Token::Name(..) => self.named()?,
            _ => return Err(self.expected(what)),
        })
    }

    fn number(&mut self, negative: bool) -> Result<Literal> {
        let sign = if negative { -1.0 } else { 1.0 };
        let made = match self.next {
            Token::Int(value) => {
                let made = if negative { 0i128.checked_sub_unsigned(value) } else { i128::try_from(value).ok() };
                made.map(Literal::Int).ok_or_else(|| self.wrong("an integer has 128 bits at most"))?
            }
            Token::Float(value) => Literal::Float(sign * value),
            Token::Word("inf" | "infinity") => Literal::Float(sign * f64::INFINITY),
            Token::Word("nan") => Literal::Float(f64::NAN),
            _ => return Err(self.expected("a number")),
        };
        self.advance()?;
        Ok(made)
    }

    /// Text, bytes, a column, or a time as `timestamp '…'`, `date '…'`, `timedelta '…'`.
    fn named(&mut self) -> Result<Operand> {
        let word = match self.advance()? {
            Token::Text(text) => return Ok(Operand::Literal(Literal::Text(text))),
            Token::Bytes(bytes) => return Ok(Operand::Literal(Literal::Bytes(bytes))),
            Token::Name(name, plain) if !plain || !matches!(self.next, Token::Text(_)) => {
                return Ok(Operand::Column(name));
            }
            Token::Name(word, _) => word,
            _ => return Err(self.expected("a value")),
        };
        let Token::Text(text) = &self.next else { return Err(self.expected("a text")) };
        let made = match word.to_lowercase().as_str() {
            "timestamp" | "datetime" | "datetime64" => time::datetime(text),
            "date" => time::date(text),
            "timedelta" | "timedelta64" | "interval" => time::timedelta(text),
            _ => return Err(self.expected("a comparison, \"in\", \"between\" or \"is\" after the column")),
        };
        let made = made.map_err(|e| self.wrong(e))?;
        self.advance()?;
        Ok(Operand::Literal(made))
    }
}
