//! What a condition or value begins with: signs, parentheses, literals, columns, functions, `cast` and `case`.

use super::super::complaint::complaint;
use super::super::expression::{Expression, When, type_named};
use super::super::shared::{Branch, Term};
use super::super::time;
use super::super::token::Token;
use super::super::tree::{Condition, Literal};
use super::{NOT, NOTHING, Parsed, Parser, SIGN, value_of};
use crate::base::Result;

impl Parser<'_> {
    /// What stands before the first operator; `what` is expected there.
    pub(super) fn front(&mut self, least: u8, what: &str) -> Result<Parsed> {
        match self.next {
            Token::Word("not") | Token::Sign("~") if least <= NOT => {
                self.advance()?;
                let parsed = self.deeper(|p| p.parsed(NOT, "a condition"))?;
                Ok(Parsed::Condition(Condition::negate(self.condition_of(parsed)?)))
            }
            Token::Sign("(") => {
                self.advance()?;
                let inner = self.deeper(|p| p.parsed(NOTHING, what))?;
                self.needs(&Token::Sign(")"))?;
                Ok(inner)
            }
            _ => self.simple(what).map(Parsed::Value),
        }
    }

    /// A value without operators.
    fn simple(&mut self, what: &str) -> Result<Expression> {
        match &self.next {
            Token::Word("null" | "none") => {
                Err(self.wrong("nothing equals null; write: column is null, or: column is not null"))
            }
            Token::Sign("+" | "-") => self.signed(),
            Token::Int(_) | Token::Float(_) | Token::Word("nan" | "inf" | "infinity") => self.number(false),
            Token::Word(word @ ("true" | "false")) => {
                let value = Literal::Bool(*word == "true");
                self.advance()?;
                Ok(Expression::Literal { value })
            }
            Token::Text(_) | Token::Bytes(_) | Token::Name(..) => self.named(),
            _ => Err(self.expected(what)),
        }
    }

    /// A sign directly before a number is a part of it.
    fn signed(&mut self) -> Result<Expression> {
        let negative = self.advance()? == Token::Sign("-");
        if matches!(self.next, Token::Int(_) | Token::Float(_) | Token::Word("nan" | "inf" | "infinity")) {
            return self.number(negative);
        }
        let arg = self.deeper(|p| p.value(SIGN))?;
        if negative { Ok(Expression::Negate { arg: Term::new(arg)? }) } else { Ok(arg) }
    }

    fn number(&mut self, negative: bool) -> Result<Expression> {
        let sign = if negative { -1.0 } else { 1.0 };
        let value = match self.next {
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
        Ok(Expression::Literal { value })
    }

    /// Text, bytes, a column, a function, `case`, or a time as `timestamp '…'`, `date '…'`, `timedelta '…'`.
    fn named(&mut self) -> Result<Expression> {
        let word = match self.advance()? {
            Token::Text(text) => return Ok(Expression::Literal { value: Literal::Text(text) }),
            Token::Bytes(bytes) => return Ok(Expression::Literal { value: Literal::Bytes(bytes) }),
            Token::Name(column, false) => return Ok(Expression::Column { column }),
            Token::Name(word, true) => word,
            _ => return Err(self.expected("a value")),
        };
        match &self.next {
            Token::Text(text) => {
                let made = match word.to_lowercase().as_str() {
                    "timestamp" | "datetime" | "datetime64" => time::datetime(text),
                    "date" => time::date(text),
                    "timedelta" | "timedelta64" | "interval" => time::timedelta(text),
                    _ => {
                        return Err(self.expected("a comparison, \"in\", \"between\" or \"is\" after the column"));
                    }
                };
                let value = made.map_err(|e| self.wrong(e))?;
                self.advance()?;
                Ok(Expression::Literal { value })
            }
            Token::Sign("(") => {
                self.advance()?;
                self.deeper(|p| p.function(word.to_lowercase()))
            }
            _ if word.eq_ignore_ascii_case("case") && self.is_word("when") => self.deeper(Self::case),
            _ => Ok(Expression::Column { column: word }),
        }
    }

    fn function(&mut self, name: String) -> Result<Expression> {
        if name != "cast" {
            let args = self.list()?.into_iter().map(Term::new).collect::<Result<_>>()?;
            return Ok(Expression::Function { name, args });
        }
        let arg = Term::new(self.value(NOTHING)?)?;
        if !self.takes_word("as")? {
            return Err(self.expected("\"as\" and a type"));
        }
        let to = self.type_name()?;
        self.needs(&Token::Sign(")"))?;
        Ok(Expression::Cast { arg, to })
    }

    /// Arguments, up to the closing parenthesis.
    pub(super) fn list(&mut self) -> Result<Vec<Expression>> {
        let mut args = Vec::new();
        while !self.takes(&Token::Sign(")"))? {
            args.push(self.value(NOTHING)?);
            if !self.takes(&Token::Sign(","))? && self.next != Token::Sign(")") {
                return Err(self.expected("\",\" or \")\""));
            }
        }
        Ok(args)
    }

    /// Takes "distinct", unless it is the name of a column.
    pub(super) fn takes_distinct(&mut self) -> Result<bool> {
        let word = "distinct";
        let rest = self.text.get(self.at + word.len()..).unwrap_or_default().trim_start();
        let names_column = rest.is_empty() || rest.starts_with([')', ',']);
        if names_column { Ok(false) } else { self.takes_word(word) }
    }

    /// The name of a type, such as `float64` or `datetime64[ms]`.
    pub(super) fn type_name(&mut self) -> Result<String> {
        let at = self.at;
        let Token::Name(name, true) = &self.next else { return Err(self.expected("a type such as float64")) };
        let mut name = name.to_lowercase();
        self.advance()?;
        if self.next == Token::Sign("[") {
            let Some(inner) = self.tokens.up_to(']') else { return Err(self.expected("a type such as datetime64[s]")) };
            name = format!("{name}[{}]", inner.trim());
            self.advance()?;
        }
        let datatype = type_named(&name).map_err(|e| complaint(self.text, at, e.message()))?;
        Ok(datatype.to_string())
    }

    /// What follows the word "case".
    fn case(&mut self) -> Result<Expression> {
        let mut whens = Vec::new();
        while self.takes_word("when")? {
            let parsed = self.parsed(NOTHING, "a condition")?;
            let when = Branch::new(self.condition_of(parsed)?)?;
            self.needs_word("then")?;
            whens.push(When { when, then: self.value_or_null()? });
        }
        let otherwise = if self.takes_word("else")? { self.value_or_null()? } else { None };
        if !self.takes_word("end")? {
            return Err(self.expected("\"when\", \"else\" or \"end\""));
        }
        Ok(Expression::Case { whens, otherwise })
    }

    fn value_or_null(&mut self) -> Result<Option<Term>> {
        if matches!(self.next, Token::Word("null" | "none")) {
            self.advance()?;
            return Ok(None);
        }
        let parsed = self.parsed(NOTHING, "a value")?;
        Term::new(value_of(parsed)).map(Some)
    }
}
