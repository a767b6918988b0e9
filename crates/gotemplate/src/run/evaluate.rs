//! Evaluates pipelines. The result of a command is the last argument of the next command.

use std::borrow::Cow;

use serde_json::Value;

use super::walk::{Held, Run};
use crate::bounds;
use crate::fault::Fault;
use crate::funcs::{Arguments, Body, Function};
use crate::go;
use crate::syntax::tree::{Base, Command, Operand, Pipeline};

impl<'a> Run<'a> {
    /// Evaluates a pipeline and sets its variables.
    pub(super) fn pipeline(&mut self, pipeline: &'a Pipeline, dot: &Held<'a>) -> Result<Held<'a>, Fault> {
        self.budget.deeper().map_err(Fault::at(pipeline.at))?;
        self.charge(bounds::STEP, pipeline.at)?;
        let mut value = None;
        for command in &pipeline.commands {
            value = Some(self.command(command, dot, value)?);
        }
        let value = value.unwrap_or(Cow::Owned(Value::Null));
        for name in &pipeline.names {
            self.charge_copy(&value, pipeline.at)?;
            self.set(name, pipeline, value.clone())?;
        }
        self.budget.shallower();
        Ok(value)
    }

    fn command(&mut self, command: &'a Command, dot: &Held<'a>, piped: Option<Held<'a>>) -> Result<Held<'a>, Fault> {
        let Command { operand, arguments } = command;
        if let Base::Function(function) = &operand.base
            && operand.fields.is_empty()
        {
            return self.call_function(function, operand.at, arguments, dot, piped);
        }
        let value = self.base(operand, dot)?;
        let Some((last, first)) = operand.fields.split_last() else {
            return Ok(value);
        };
        let value = first.iter().try_fold(value, |value, field| self.field(value, field, operand.at))?;
        if arguments.is_empty() && piped.is_none() {
            return self.field(value, last, operand.at);
        }
        let arguments = self.arguments(arguments, dot, piped)?;
        self.method(&value, last, &arguments, operand.at)
    }

    fn operand(&mut self, operand: &'a Operand, dot: &Held<'a>) -> Result<Held<'a>, Fault> {
        let value = self.base(operand, dot)?;
        operand.fields.iter().try_fold(value, |value, field| self.field(value, field, operand.at))
    }

    /// Evaluates the base of an operand, such as `$x` in `$x.Field`.
    fn base(&mut self, operand: &'a Operand, dot: &Held<'a>) -> Result<Held<'a>, Fault> {
        self.charge(bounds::STEP, operand.at)?;
        match &operand.base {
            Base::Dot => {
                self.charge_copy(dot, operand.at)?;
                Ok(dot.clone())
            }
            Base::Variable(name) => {
                let known = self.find(name, operand.at)?;
                let value = known.map_or(Cow::Owned(Value::Null), |known| self.variables[known].1.clone());
                self.charge_copy(&value, operand.at)?;
                Ok(value)
            }
            Base::Function(function) => self.call_function(function, operand.at, &[], dot, None),
            Base::Literal(value) => Ok(Cow::Borrowed(value)),
            Base::Pipeline(pipeline) => self.pipeline(pipeline, dot),
        }
    }

    fn arguments(
        &mut self,
        operands: &'a [Operand],
        dot: &Held<'a>,
        piped: Option<Held<'a>>,
    ) -> Result<Vec<Held<'a>>, Fault> {
        let mut arguments = Vec::with_capacity(operands.len() + 1);
        for operand in operands {
            arguments.push(self.operand(operand, dot)?);
        }
        arguments.extend(piped);
        Ok(arguments)
    }

    fn call_function(
        &mut self,
        function: &'static Function,
        at: usize,
        operands: &'a [Operand],
        dot: &Held<'a>,
        piped: Option<Held<'a>>,
    ) -> Result<Held<'a>, Fault> {
        let count = operands.len() + usize::from(piped.is_some());
        function.check_count(count).map_err(|message| Fault::new(at, message))?;
        let make = match function.body {
            Body::And => return self.and_or(operands, dot, piped, |truth| !truth),
            Body::Or => return self.and_or(operands, dot, piped, |truth| truth),
            Body::Plain(make) => make,
        };
        let arguments = self.arguments(operands, dot, piped)?;
        for argument in &arguments {
            self.charge_value(argument, at)?;
        }
        let value = make(&Arguments::new(&arguments, &self.budget)).and_then(|value| {
            bounds::check_size(self.budget.charge_value(&value)?)?;
            Ok(Cow::Owned(value))
        });
        value.map_err(|message| Fault::new(at, format!("{}: {message}", function.name)))
    }

    /// Evaluates `and` or `or`. Returns the first argument that decides the result, or the last argument.
    fn and_or(
        &mut self,
        operands: &'a [Operand],
        dot: &Held<'a>,
        piped: Option<Held<'a>>,
        settles: fn(bool) -> bool,
    ) -> Result<Held<'a>, Fault> {
        let mut value = Cow::Owned(Value::Null);
        for operand in operands {
            value = self.operand(operand, dot)?;
            if settles(go::is_true(&value)) {
                return Ok(value);
            }
        }
        Ok(piped.unwrap_or(value))
    }
}
