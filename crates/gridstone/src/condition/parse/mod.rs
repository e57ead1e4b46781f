//! Text to tree: a Pratt parser over [`super::token`], for conditions and for the values in them.
//!
//! ```text
//! condition  = condition ("or" | "|" | "||") condition            binds least
//!            | condition ("and" | "&" | "&&") condition
//!            | ("not" | "~" | "!") condition
//!            | "(" condition ")" | "true" | "false" | value
//!            | value (sign value)+                                 chains: 1 < x <= 5
//!            | value ["not"] "between" value "and" value
//!            | value ["not"] "in" ("(" | "[") literal, … (")" | "]")
//!            | value ["not"] ("like" | "ilike") value
//!            | value "is" ["not"] ("null" | "none" | "nan" | "nat")
//! value      = value ("+" | "-") value | value ("*" | "/" | "//" | "%") value | ("-" | "+") value
//!            | value "::" type | "cast" "(" value "as" type ")" | name "(" value, … ")" | "(" condition ")"
//!            | "case" ("when" condition "then" value)+ ["else" value] "end" | column | literal    binds most
//! call       = name "(" ["distinct"] (value, … | "*") ")"
//! sign       = "==" | "=" | "!=" | "<>" | "<" | "<=" | ">" | ">="
//! ```
//! `and` and `or` take whole chains: `a and b and c` is one node of three. The words of `case`, `cast` and `like` are
//! words only where no name can stand, so that columns may be called so.

mod predicate;
mod value;

use super::complaint::complaint;
use super::expression::{Call, Expression, Operator};
use super::shared::Term;
use super::token::{Token, Tokens};
use super::tree::{Condition, Literal, TEXT_BYTES_MAX};
use crate::base::{Error, Result};

/// The largest nesting depth of parentheses and `not`.
const NESTING_MAX: usize = 200;

/// How strongly what follows binds to what stands before it.
const NOTHING: u8 = 0;
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARED: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;
const CAST: u8 = 8;

impl Condition {
    /// Parses the condition in `text`; an Input error shows the position of the mistake and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::new(text)?;
        let parsed = parser.parsed(NOTHING, "a condition")?;
        let condition = parser.condition_of(parsed)?;
        parser.ends("\"and\", \"or\" or the end")?;
        condition.check()?;
        Ok(condition)
    }
}

impl Expression {
    /// Parses the expression in `text`; an Input error shows the position of the mistake and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::new(text)?;
        let expression = parser.value(NOTHING)?;
        parser.ends("the end")?;
        expression.check()?;
        Ok(expression)
    }
}

impl Call {
    /// Parses the aggregate in `text`; an Input error shows the position of the mistake and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::new(text)?;
        let Token::Name(name, true) = parser.next.clone() else {
            return Err(parser.expected("an aggregate such as mean(x)"));
        };
        parser.advance()?;
        parser.needs(&Token::Sign("("))?;
        let mut call = Self { name: name.to_lowercase(), distinct: false, star: false, args: Vec::new() };
        if parser.takes(&Token::Sign("*"))? {
            call.star = true;
            parser.needs(&Token::Sign(")"))?;
        } else {
            call.distinct = parser.takes_distinct()?;
            call.args = parser.list()?;
        }
        parser.ends("the end")?;
        call.args.iter().try_for_each(Expression::check)?;
        Ok(call)
    }
}

/// What a part of the text says: a condition, or a value that may be one.
#[derive(Debug, Clone)]
enum Parsed {
    Condition(Condition),
    Value(Expression),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
    next: Token,
    /// The position of `next`.
    at: usize,
    nesting: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::input(format!("a condition of {} bytes; {TEXT_BYTES_MAX} are allowed", text.len())));
        }
        let mut parser = Self { text, tokens: Tokens::new(text), next: Token::End, at: 0, nesting: 0 };
        parser.advance()?;
        Ok(parser)
    }

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

    fn ends(&self, what: &str) -> Result<()> {
        if self.next == Token::End { Ok(()) } else { Err(self.expected(what)) }
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

    /// Whether the next token is this word, which is not reserved.
    fn is_word(&self, word: &str) -> bool {
        matches!(&self.next, Token::Name(name, true) if name.eq_ignore_ascii_case(word))
    }

    fn takes_word(&mut self, word: &str) -> Result<bool> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn needs_word(&mut self, word: &str) -> Result<()> {
        if self.takes_word(word)? { Ok(()) } else { Err(self.expected(&format!("{word:?}"))) }
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

    /// How strongly the next token binds to what stands before it.
    fn power(&self) -> u8 {
        match &self.next {
            Token::Word("or") | Token::Sign("|") => OR,
            Token::Word("and") | Token::Sign("&") => AND,
            Token::Word("in" | "is" | "between" | "not") => COMPARED,
            Token::Sign("==" | "!=" | "<" | "<=" | ">" | ">=") => COMPARED,
            Token::Sign("+" | "-") => SUM,
            Token::Sign("*" | "/" | "//" | "%") => PRODUCT,
            Token::Sign("::") => CAST,
            Token::Name(..) if self.is_word("like") || self.is_word("ilike") => COMPARED,
            _ => NOTHING,
        }
    }

    /// Parses up to a token that binds less than `least`; `what` is expected at its beginning.
    fn parsed(&mut self, least: u8, what: &str) -> Result<Parsed> {
        let mut left = self.front(least, what)?;
        loop {
            let power = self.power();
            if power == NOTHING || power < least {
                return Ok(left);
            }
            left = match power {
                OR | AND => Parsed::Condition(self.joined(left, power)?),
                COMPARED => {
                    let made = self.predicate(left)?;
                    if self.power() >= COMPARED {
                        return Err(self.expected("\"and\", \"or\" or the end"));
                    }
                    Parsed::Condition(made)
                }
                CAST => {
                    self.advance()?;
                    let (arg, to) = (Term::new(value_of(left))?, self.type_name()?);
                    Parsed::Value(Expression::Cast { arg, to })
                }
                _ => self.computed(left, power)?,
            };
        }
    }

    /// A value up to a token that binds less than `least`.
    fn value(&mut self, least: u8) -> Result<Expression> {
        self.parsed(least, "a value").map(value_of)
    }

    /// Parses the rest of a chain of `and` or of `or`.
    fn joined(&mut self, first: Parsed, power: u8) -> Result<Condition> {
        let mut parts = vec![self.condition_of(first)?];
        while self.power() == power {
            self.advance()?;
            let part = self.parsed(power + 1, "a condition")?;
            parts.push(self.condition_of(part)?);
        }
        Ok(if power == AND { Condition::all(parts) } else { Condition::any(parts) })
    }

    /// Parses an operator and its right side.
    fn computed(&mut self, left: Parsed, power: u8) -> Result<Parsed> {
        let operator = match self.advance()? {
            Token::Sign(sign) => Operator::parse(sign)?,
            _ => return Err(self.expected("an operator")),
        };
        let right = self.value(power + 1)?;
        let (left, right) = (Term::new(value_of(left))?, Term::new(right)?);
        Ok(Parsed::Value(Expression::Binary { operator, left, right }))
    }

    /// The condition that was parsed, directly before the next token.
    fn condition_of(&self, parsed: Parsed) -> Result<Condition> {
        match parsed {
            Parsed::Condition(condition) => Ok(condition),
            Parsed::Value(Expression::Literal { value }) if !matches!(value, Literal::Bool(_)) => {
                Err(self.expected("a comparison after the value"))
            }
            Parsed::Value(value) => Ok(Condition::of_value(value)),
        }
    }
}

fn value_of(parsed: Parsed) -> Expression {
    match parsed {
        Parsed::Condition(condition) => Expression::of_condition(condition),
        Parsed::Value(value) => value,
    }
}
