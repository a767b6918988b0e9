//! Parses pipelines such as `$name := .Field | default "none"`.

use serde_json::Value;

use super::literal;
use super::parser::{Parser, string, unexpected};
use super::token::Kind;
use super::tree::{Base, Binding, Command, Operand, Pipeline};
use crate::fault::Fault;
use crate::funcs;

impl<'a> Parser<'a> {
    /// Reads a pipeline up to and including the token `end`.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipeline, Fault> {
        let at = self.peek().at;
        let (names, binding) = self.bindings(context)?;
        let mut commands = Vec::new();
        loop {
            let token = self.peek();
            if token.kind == end {
                self.take();
                break;
            }
            let command = self.command(context, commands.len() + 1)?;
            commands.push(command);
        }
        if commands.is_empty() {
            return Err(Fault::new(at, format!("missing value in {context}")));
        }
        // A new variable is not in scope in its own value.
        self.variables.extend(names.iter().filter(|_| binding == Binding::Declare));
        Ok(Pipeline { at, names: names.into_iter().map(str::to_owned).collect(), binding, commands })
    }

    /// Reads the variables that a pipeline sets, such as `$index, $item :=`.
    fn bindings(&mut self, context: &str) -> Result<(Vec<&'a str>, Binding), Fault> {
        let start = self.position();
        let mut names = Vec::new();
        while self.peek().kind == Kind::Variable {
            let variable = self.take();
            names.push(variable.text);
            let next = self.peek();
            let binding = match next.kind {
                Kind::Declare => Binding::Declare,
                Kind::Assign => Binding::Assign,
                Kind::Comma if context == "{{range}}" && names.len() == 1 => {
                    self.take();
                    continue;
                }
                Kind::Comma => return Err(Fault::new(next.at, format!("too many variables in {context}"))),
                _ => break,
            };
            self.take();
            if binding == Binding::Assign
                && let Some(name) = names.iter().find(|name| !self.variables.contains(*name))
            {
                return Err(undefined(variable.at, name));
            }
            return Ok((names, binding));
        }
        if names.len() > 1 {
            return Err(unexpected(self.peek(), &format!("{context}, where := belongs")));
        }
        self.back_to(start);
        Ok((Vec::new(), Binding::Declare))
    }

    /// Reads one command of a pipeline, and the `|` that may follow.
    fn command(&mut self, context: &str, stage: usize) -> Result<Command, Fault> {
        let mut operands = Vec::new();
        loop {
            let Some(operand) = self.operand()? else {
                return Err(unexpected(self.peek(), context));
            };
            operands.push(operand);
            let next = self.peek();
            match next.kind {
                Kind::Pipe => {
                    self.take();
                    break;
                }
                Kind::Close | Kind::RightParenthesis => break,
                _ if next.spaced => {}
                _ => return Err(unexpected(next, context)),
            }
        }
        let operand = operands.remove(0);
        check_callable(&operand, operands.first(), stage)?;
        Ok(Command { operand, arguments: operands })
    }

    /// Reads a value and its fields, such as `$x.Field`. Returns `None` if no value follows.
    fn operand(&mut self) -> Result<Option<Operand>, Fault> {
        let token = self.peek();
        let at = token.at;
        let mut fields = Vec::new();
        let base = match token.kind {
            Kind::Dot => Base::Dot,
            Kind::Field => {
                fields.push(token.text[1..].to_owned());
                Base::Dot
            }
            Kind::Variable if self.variables.contains(&token.text) => Base::Variable(token.text.to_owned()),
            Kind::Variable => return Err(undefined(at, token.text)),
            Kind::Word => Base::Function(funcs::find(token.text).map_err(|message| Fault::new(at, message))?),
            Kind::True => Base::Literal(Value::Bool(true)),
            Kind::False => Base::Literal(Value::Bool(false)),
            Kind::Nil => Base::Literal(Value::Null),
            Kind::Number => Base::Literal(literal::number(token.text).map_err(|message| Fault::new(at, message))?),
            Kind::Character => {
                Base::Literal(literal::character(token.text).map_err(|message| Fault::new(at, message))?)
            }
            Kind::Quoted | Kind::Raw => Base::Literal(Value::String(string(token)?)),
            Kind::LeftParenthesis => {
                self.take();
                self.deeper(at)?;
                let pipeline = self.pipeline("a parenthesis", Kind::RightParenthesis)?;
                self.shallower();
                return Ok(Some(self.with_fields(at, Base::Pipeline(pipeline), fields)));
            }
            _ => return Ok(None),
        };
        self.take();
        let next = self.peek();
        let fieldless = matches!(base, Base::Literal(_)) || token.kind == Kind::Dot;
        if fieldless && next.kind == Kind::Field && !next.spaced {
            return Err(unexpected(next, &format!("a value, after {:?}", token.text)));
        }
        Ok(Some(self.with_fields(at, base, fields)))
    }

    /// Reads the fields that directly follow a value, such as `.Field.Field`.
    fn with_fields(&mut self, at: usize, base: Base, mut fields: Vec<String>) -> Operand {
        while self.peek().kind == Kind::Field && !self.peek().spaced {
            fields.push(self.take().text[1..].to_owned());
        }
        Operand { at, base, fields }
    }
}

/// Fails if the operand is `nil`. Only functions and fields may have arguments.
fn check_callable(operand: &Operand, argument: Option<&Operand>, stage: usize) -> Result<(), Fault> {
    let takes_arguments = matches!(operand.base, Base::Function(_)) || !operand.fields.is_empty();
    if matches!(operand.base, Base::Literal(Value::Null)) {
        return Err(Fault::new(operand.at, "nil cannot stand alone"));
    }
    match argument {
        _ if takes_arguments => Ok(()),
        Some(argument) => Err(Fault::new(argument.at, "what stands before this takes no arguments: it is no function")),
        None if stage > 1 => Err(Fault::new(operand.at, "nothing can be piped into this: it is no function")),
        None => Ok(()),
    }
}

fn undefined(at: usize, variable: &str) -> Fault {
    Fault::new(at, format!("there is no variable {variable} here"))
}
