//! Text to expression.
//!
//! ```text
//! sum     = product (("+" | "-") product)*      (at most 50 operators in a row)
//! product = unary (("*" | "/" | "//" | "%") unary)*
//! unary   = ("-" | "+") unary | cast
//! cast    = atom ("::" type)*
//! atom    = literal | name | name "(" sum, … ")" | "cast" "(" sum "as" type ")" | "(" sum ")" | case (`case.rs`)
//! call    = name "(" ["distinct"] (sum, … | "*") ")"
//! type    = name ["[" name "]"]
//! ```

use super::super::complaint::complaint;
use super::super::time;
use super::super::token::{Token, Tokens, is_of_case};
use super::super::tree::{self, DEPTH_MAX, Literal};
use super::{Call, Expression, Operator};
use crate::base::{Error, Result};
use crate::schema::Datatype;

/// The longest text, and the deepest nesting.
const TEXT_BYTES_MAX: usize = 1 << 16;
pub(super) const NESTING_MAX: usize = 100;
/// What a node of a value that is copied counts beside its text.
const NODE_BYTES: usize = 16;

impl Expression {
    /// The expression in `text`.
    ///
    /// # Errors
    /// Input: it shows the position of the mistake and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::short(text)?;
        let found = parser.sum()?;
        parser.ends()?;
        found.check()?;
        Ok(found)
    }
}

impl Call {
    /// The aggregate in `text`.
    ///
    /// # Errors
    /// As [`Expression::parse`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::short(text)?;
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
            call.distinct = parser.takes_word("distinct")?;
            call.args = parser.list()?;
        }
        parser.ends()?;
        call.args.iter().try_for_each(Expression::check)?;
        Ok(call)
    }
}

/// Reads values, and with [`super::super::parse`] conditions.
pub(in crate::condition) struct Parser<'a> {
    pub(in crate::condition) text: &'a str,
    pub(super) tokens: Tokens<'a>,
    pub(in crate::condition) next: Token,
    /// The position of `next`.
    pub(in crate::condition) at: usize,
    nesting: usize,
    /// How many cases are open.
    pub(super) cases: usize,
    /// The size of the values that stand once in the text, and several times in the tree.
    copied_bytes: usize,
    /// What the next value is called if there is none.
    pub(in crate::condition) wanted: &'static str,
}

impl<'a> Parser<'a> {
    fn short(text: &'a str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::input(format!("an expression of {} bytes; {TEXT_BYTES_MAX} are allowed", text.len())));
        }
        Self::new(text)
    }

    pub(in crate::condition) fn new(text: &'a str) -> Result<Self> {
        let tokens = Tokens::new(text);
        let mut parser =
            Self { text, tokens, next: Token::End, at: 0, nesting: 0, cases: 0, copied_bytes: 0, wanted: "a value" };
        parser.advance()?;
        Ok(parser)
    }

    pub(in crate::condition) fn wrong(&self, message: impl AsRef<str>) -> Error {
        complaint(self.text, self.at, message)
    }

    pub(in crate::condition) fn advance(&mut self) -> Result<Token> {
        let (next, at) = self.tokens.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.next, next))
    }

    pub(in crate::condition) fn expected(&self, what: &str) -> Error {
        complaint(self.text, self.at, format!("expected {what}, found {}", self.next.describe()))
    }

    /// Takes the next token if it is this word or sign.
    pub(in crate::condition) fn takes(&mut self, token: &Token) -> Result<bool> {
        let found = self.next == *token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(in crate::condition) fn needs(&mut self, token: &Token) -> Result<()> {
        if self.takes(token)? { Ok(()) } else { Err(self.expected(&token.describe())) }
    }

    /// Takes the next token if it is this word, in any case, and something else than `)` or `,` follows.
    fn takes_word(&mut self, word: &str) -> Result<bool> {
        let found = matches!(&self.next, Token::Name(name, true) if name.eq_ignore_ascii_case(word));
        let rest = self.text.get(self.at + word.len()..).unwrap_or_default().trim_start();
        let goes_on = found && !rest.starts_with([')', ',']) && !rest.is_empty();
        if goes_on {
            self.advance()?;
        }
        Ok(goes_on)
    }

    /// Takes the next token if it is this plain name, in any case.
    pub(super) fn takes_name(&mut self, wanted: &str) -> Result<bool> {
        let found = self.is_name(wanted);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(in crate::condition) fn is_name(&self, wanted: &str) -> bool {
        matches!(&self.next, Token::Name(name, true) if name.eq_ignore_ascii_case(wanted))
    }

    /// A value once more. Copies have a limit in sum: in each other they would grow exponentially.
    pub(in crate::condition) fn copy(&mut self, value: &Expression) -> Result<Expression> {
        self.copied_bytes += value.parts() * NODE_BYTES + value.to_string().len();
        if self.copied_bytes > tree::TEXT_BYTES_MAX {
            return Err(
                self.wrong("values that stand several times in the condition are too large; compute them in steps")
            );
        }
        Ok(value.clone())
    }

    fn ends(&self) -> Result<()> {
        if self.next == Token::End { Ok(()) } else { Err(self.expected("the end")) }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.within(NESTING_MAX, inner)
    }

    /// Reads one level deeper, up to `most` levels.
    pub(in crate::condition) fn within<T>(
        &mut self,
        most: usize,
        inner: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.nesting >= most {
            return Err(self.wrong(format!("more than {most} levels of parentheses, signs or \"not\"")));
        }
        self.nesting += 1;
        let made = inner(self);
        self.nesting -= 1;
        made
    }

    /// A value.
    pub(in crate::condition) fn sum(&mut self) -> Result<Expression> {
        self.deeper(|p| {
            let first = p.unary()?;
            p.rest(first)
        })
    }

    /// The value that begins with `first`.
    pub(in crate::condition) fn rest(&mut self, first: Expression) -> Result<Expression> {
        let first = self.casts(first)?;
        let mut left = self.products(first)?;
        let mut count = 0;
        loop {
            let operator = match self.next {
                Token::Sign("+") => Operator::Add,
                Token::Sign("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            count = self.counted(count)?;
            self.advance()?;
            let right = self.unary()?;
            left = joined(operator, left, self.products(right)?);
        }
    }

    fn counted(&self, operators: usize) -> Result<usize> {
        if operators < DEPTH_MAX {
            return Ok(operators + 1);
        }
        Err(self
            .wrong(format!("more than {DEPTH_MAX} operators in a row; an expression has {DEPTH_MAX} levels at most")))
    }

    fn products(&mut self, first: Expression) -> Result<Expression> {
        let (mut left, mut count) = (first, 0);
        loop {
            let operator = match self.next {
                Token::Sign("*") => Operator::Multiply,
                Token::Sign("/") => Operator::Divide,
                Token::Sign("//") => Operator::FloorDivide,
                Token::Sign("%") => Operator::Remainder,
                _ => return Ok(left),
            };
            count = self.counted(count)?;
            self.advance()?;
            left = joined(operator, left, self.unary()?);
        }
    }

    fn unary(&mut self) -> Result<Expression> {
        if self.takes(&Token::Sign("-"))? {
            if let Some(number) = self.number(true)? {
                return self.casts(literal(number));
            }
            return Ok(Expression::Negate { arg: Box::new(self.deeper(Self::unary)?) });
        }
        if self.takes(&Token::Sign("+"))? {
            return self.deeper(Self::unary);
        }
        let found = self.atom()?;
        self.casts(found)
    }

    fn casts(&mut self, arg: Expression) -> Result<Expression> {
        let (mut found, mut count) = (arg, 0);
        while self.takes(&Token::Sign("::"))? {
            count = self.counted(count)?;
            found = Expression::Cast { arg: Box::new(found), to: self.type_name()? };
        }
        Ok(found)
    }

    /// A number, if one is next.
    fn number(&mut self, negative: bool) -> Result<Option<Literal>> {
        let sign = if negative { -1.0 } else { 1.0 };
        let made = match self.next {
            Token::Int(value) => {
                let made = if negative { 0i128.checked_sub_unsigned(value) } else { i128::try_from(value).ok() };
                made.map(Literal::Int).ok_or_else(|| self.wrong("an integer has 128 bits at most"))?
            }
            Token::Float(value) => Literal::Float(sign * value),
            Token::Word("inf" | "infinity") => Literal::Float(sign * f64::INFINITY),
            Token::Word("nan") => Literal::Float(f64::NAN),
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(made))
    }

    fn atom(&mut self) -> Result<Expression> {
        let wanted = std::mem::replace(&mut self.wanted, "a value");
        if self.takes(&Token::Sign("("))? {
            let inner = self.sum()?;
            self.needs(&Token::Sign(")"))?;
            return Ok(inner);
        }
        if let Some(number) = self.number(false)? {
            return Ok(literal(number));
        }
        let made = match &self.next {
            Token::Text(text) => Literal::Text(text.clone()),
            Token::Bytes(bytes) => Literal::Bytes(bytes.clone()),
            Token::Word("true") => Literal::Bool(true),
            Token::Word("false") => Literal::Bool(false),
            Token::Word("null" | "none") => {
                return Err(self.wrong("nothing equals null; write: column is null, or: column is not null"));
            }
            Token::Name(name, true) if self.cases > 0 && is_of_case(name) && !self.is_name("case") => {
                let word = self.next.describe();
                return Err(self.wrong(format!(
                    "expected {wanted}, found {word}; within a case a column of this name stands in double quotes"
                )));
            }
            Token::Name(name, plain) => {
                let (name, plain) = (name.clone(), *plain);
                self.advance()?;
                return self.named(name, plain);
            }
            _ => return Err(self.expected(wanted)),
        };
        self.advance()?;
        Ok(literal(made))
    }

    /// A time, written as `timestamp '…'`, `date '…'` or `timedelta '…'`.
    fn time(&mut self, word: &str, text: &str) -> Result<Expression> {
        let made = match word.to_lowercase().as_str() {
            "timestamp" | "datetime" | "datetime64" => time::datetime(text),
            "date" => time::date(text),
            "timedelta" | "timedelta64" | "interval" => time::timedelta(text),
            _ => return Err(self.expected("a comparison, \"in\", \"between\" or \"is\" after the column")),
        };
        let made = made.map_err(|e| self.wrong(e))?;
        self.advance()?;
        Ok(literal(made))
    }

    /// A column, or a function.
    fn named(&mut self, name: String, plain: bool) -> Result<Expression> {
        if plain && name.eq_ignore_ascii_case("case") && self.begins_case() {
            return self.case();
        }
        if let (true, Token::Text(text)) = (plain, self.next.clone()) {
            return self.time(&name, &text);
        }
        if !plain || !self.takes(&Token::Sign("("))? {
            return Ok(Expression::Column { column: name });
        }
        let name = name.to_lowercase();
        if name == "cast" {
            let arg = Box::new(self.sum()?);
            if !self.takes_word("as")? {
                return Err(self.expected("\"as\" and a type"));
            }
            let to = self.type_name()?;
            self.needs(&Token::Sign(")"))?;
            return Ok(Expression::Cast { arg, to });
        }
        if let Some(made) = self.synonym(&name)? {
            return Ok(made);
        }
        Ok(Expression::Function { name, args: self.list()? })
    }

    /// Arguments, up to the closing parenthesis.
    pub(super) fn list(&mut self) -> Result<Vec<Expression>> {
        let mut args = Vec::new();
        while !self.takes(&Token::Sign(")"))? {
            args.push(self.sum()?);
            if !self.takes(&Token::Sign(","))? && self.next != Token::Sign(")") {
                return Err(self.expected("\",\" or \")\""));
            }
        }
        Ok(args)
    }

    /// The name of a type, as types print theirs.
    fn type_name(&mut self) -> Result<String> {
        let Token::Name(mut name, true) = self.advance()? else {
            return Err(self.expected("a type such as float64"));
        };
        if self.takes(&Token::Sign("["))? {
            let Token::Name(unit, true) = self.advance()? else { return Err(self.expected("a unit of time")) };
            self.needs(&Token::Sign("]"))?;
            name = format!("{}[{unit}]", name.to_lowercase());
        } else {
            name = name.to_lowercase();
        }
        Ok(Datatype::parse(&name)?.to_string())
    }
}

fn literal(value: Literal) -> Expression {
    Expression::Literal { value }
}

fn joined(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary { operator, left: Box::new(left), right: Box::new(right) }
}
