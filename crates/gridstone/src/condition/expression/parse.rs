//! Text to expression.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = unary (("*" | "/" | "//" | "%") unary)*
//! unary   = ("-" | "+") unary | cast
//! cast    = atom ("::" type)*
//! atom    = number | 'text' | name | name "(" sum, … ")" | "cast" "(" sum "as" type ")" | "(" sum ")"
//! call    = name "(" ["distinct"] (sum, … | "*") ")"
//! type    = name ["[" name "]"]
//! ```

use super::super::complaint::complaint;
use super::super::token::{Token, Tokens};
use super::super::tree::Literal;
use super::{Call, Expression, Operator};
use crate::base::{Error, Result};

/// The longest text, the deepest nesting, and the most operators: a chain of them is as deep a tree.
const TEXT_BYTES_MAX: usize = 1 << 16;
const NESTING_MAX: usize = 100;
const OPERATORS_MAX: usize = 500;

impl Expression {
    /// The expression in `text`.
    ///
    /// # Errors
    /// Input: it shows the position of the mistake and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::new(text)?;
        let found = parser.sum()?;
        parser.ends()?;
        Ok(found)
    }
}

impl Call {
    /// The aggregate in `text`.
    ///
    /// # Errors
    /// As [`Expression::parse`].
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
            call.distinct = parser.takes_word("distinct")?;
            call.args = parser.list()?;
        }
        parser.ends()?;
        Ok(call)
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
    next: Token,
    at: usize,
    nesting: usize,
    operators: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::input(format!("an expression of {} bytes; {TEXT_BYTES_MAX} are allowed", text.len())));
        }
        let mut parser = Self { text, tokens: Tokens::new(text), next: Token::End, at: 0, nesting: 0, operators: 0 };
        parser.advance()?;
        Ok(parser)
    }

    fn advance(&mut self) -> Result<Token> {
        let (next, at) = self.tokens.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn expected(&self, what: &str) -> Error {
        complaint(self.text, self.at, format!("expected {what}, found {}", self.next.describe()))
    }

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

    fn ends(&self) -> Result<()> {
        if self.next == Token::End { Ok(()) } else { Err(self.expected("the end")) }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == NESTING_MAX {
            return Err(complaint(self.text, self.at, format!("more than {NESTING_MAX} levels")));
        }
        self.nesting += 1;
        let made = inner(self);
        self.nesting -= 1;
        made
    }

    /// Takes an operator.
    fn operator(&mut self) -> Result<()> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            return Err(complaint(self.text, self.at, format!("more than {OPERATORS_MAX} operators")));
        }
        self.advance().map(drop)
    }

    fn sum(&mut self) -> Result<Expression> {
        self.deeper(|p| {
            let mut left = p.product()?;
            loop {
                let operator = match p.next {
                    Token::Sign("+") => Operator::Add,
                    Token::Sign("-") => Operator::Subtract,
                    _ => return Ok(left),
                };
                p.operator()?;
                left = joined(operator, left, p.product()?);
            }
        })
    }

    fn product(&mut self) -> Result<Expression> {
        let mut left = self.unary()?;
        loop {
            let operator = match self.next {
                Token::Sign("*") => Operator::Multiply,
                Token::Sign("/") => Operator::Divide,
                Token::Sign("//") => Operator::FloorDivide,
                Token::Sign("%") => Operator::Remainder,
                _ => return Ok(left),
            };
            self.operator()?;
            left = joined(operator, left, self.unary()?);
        }
    }

    fn unary(&mut self) -> Result<Expression> {
        if self.takes(&Token::Sign("-"))? {
            return Ok(match self.deeper(Self::unary)? {
                Expression::Literal { value: Literal::Int(value) } => literal(Literal::Int(-value)),
                Expression::Literal { value: Literal::Float(value) } => literal(Literal::Float(-value)),
                arg => Expression::Negate { arg: Box::new(arg) },
            });
        }
        if self.takes(&Token::Sign("+"))? {
            return self.deeper(Self::unary);
        }
        let mut found = self.atom()?;
        while self.next == Token::Sign("::") {
            self.operator()?;
            found = Expression::Cast { arg: Box::new(found), to: self.type_name()? };
        }
        Ok(found)
    }

    fn atom(&mut self) -> Result<Expression> {
        if self.takes(&Token::Sign("("))? {
            let inner = self.sum()?;
            self.needs(&Token::Sign(")"))?;
            return Ok(inner);
        }
        let made = match &self.next {
            Token::Int(value) => match i128::try_from(*value) {
                Ok(value) => literal(Literal::Int(value)),
                Err(_) => return Err(complaint(self.text, self.at, "an integer has 128 bits at most")),
            },
            Token::Float(value) => literal(Literal::Float(*value)),
            Token::Text(text) => literal(Literal::Text(text.clone())),
            Token::Word("nan") => literal(Literal::Float(f64::NAN)),
            Token::Word("inf" | "infinity") => literal(Literal::Float(f64::INFINITY)),
            Token::Word("true") => literal(Literal::Bool(true)),
            Token::Word("false") => literal(Literal::Bool(false)),
            Token::Name(name, plain) => {
                let (name, plain) = (name.clone(), *plain);
                self.advance()?;
                return self.named(name, plain);
            }
            _ => return Err(self.expected("a value")),
        };
        self.advance()?;
        Ok(made)
    }

    /// A column, or a function.
    fn named(&mut self, name: String, plain: bool) -> Result<Expression> {
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
        Ok(Expression::Function { name, args: self.list()? })
    }

    /// Arguments, up to the closing parenthesis.
    fn list(&mut self) -> Result<Vec<Expression>> {
        let mut args = Vec::new();
        while !self.takes(&Token::Sign(")"))? {
            args.push(self.sum()?);
            if !self.takes(&Token::Sign(","))? && self.next != Token::Sign(")") {
                return Err(self.expected("\",\" or \")\""));
            }
        }
        Ok(args)
    }

    fn type_name(&mut self) -> Result<String> {
        let Token::Name(name, true) = self.advance()? else { return Err(self.expected("a type such as float64")) };
        if !self.takes(&Token::Sign("["))? {
            return Ok(name.to_lowercase());
        }
        let Token::Name(unit, true) = self.advance()? else { return Err(self.expected("a unit of time")) };
        self.needs(&Token::Sign("]"))?;
        Ok(format!("{}[{unit}]", name.to_lowercase()))
    }
}

fn literal(value: Literal) -> Expression {
    Expression::Literal { value }
}

fn joined(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary { operator, left: Box::new(left), right: Box::new(right) }
}
