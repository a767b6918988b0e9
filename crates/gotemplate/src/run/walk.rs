//! Renders the nodes of a syntax tree.

use std::borrow::Cow;

use serde_json::Value;

use crate::bounds;
use crate::budget::Budget;
use crate::fault::Fault;
use crate::go::{self, display};
use crate::output::Output;
use crate::syntax::tree::{Binding, Branch, Keyword, Node, Pipeline, Tree};

/// Value of a pipeline. A literal or a part of the data is borrowed. A computed value is owned.
pub(super) type Held<'a> = Cow<'a, Value>;

pub(crate) fn render(tree: &Tree, data: &Value) -> Result<String, Fault> {
    let mut run =
        Run { tree, data, variables: vec![("$", Cow::Borrowed(data))], out: Output::default(), budget: Budget::new() };
    run.nodes(&tree.body, &Cow::Borrowed(data))?;
    Ok(run.out.into_text())
}

pub(super) struct Run<'a> {
    tree: &'a Tree,
    /// Initial value of `.` and `$`.
    pub(super) data: &'a Value,
    /// The variables in scope, innermost last.
    pub(super) variables: Vec<(&'a str, Held<'a>)>,
    out: Output,
    pub(super) budget: Budget,
}

/// Effect of a rendered node on the enclosing `{{ range }}`.
enum Flow {
    On,
    Break,
    Continue,
}

impl<'a> Run<'a> {
    fn nodes(&mut self, nodes: &'a [Node], dot: &Held<'a>) -> Result<Flow, Fault> {
        for node in nodes {
            let flow = self.node(node, dot)?;
            if !matches!(flow, Flow::On) {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn node(&mut self, node: &'a Node, dot: &Held<'a>) -> Result<Flow, Fault> {
        match node {
            Node::Text(text) => self.write(text, 0)?,
            Node::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.names.is_empty() {
                    self.charge_value(&value, pipeline.at)?;
                    self.write(&display::action(&value), pipeline.at)?;
                }
            }
            Node::Branch(branch) => return self.branch(branch, dot),
            Node::Call { at, name, argument } => self.call(*at, name, argument.as_ref(), dot)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn write(&mut self, text: &str, at: usize) -> Result<(), Fault> {
        self.charge(1 + text.len(), at)?;
        self.out.push(text).map_err(Fault::at(at))
    }

    /// Renders an `{{ if }}`, `{{ with }}` or `{{ range }}` block.
    fn branch(&mut self, branch: &'a Branch, dot: &Held<'a>) -> Result<Flow, Fault> {
        self.budget.deeper().map_err(Fault::at(branch.pipeline.at))?;
        let scope = self.variables.len();
        let value = self.pipeline(&branch.pipeline, dot)?;
        let flow = match branch.keyword {
            Keyword::Range => self.range(branch, value, dot)?,
            _ if !go::is_true(&value) => self.nodes(&branch.otherwise, dot)?,
            Keyword::If => self.nodes(&branch.body, dot)?,
            Keyword::With => self.nodes(&branch.body, &value)?,
        };
        self.variables.truncate(scope);
        self.budget.shallower();
        Ok(flow)
    }

    fn range(&mut self, branch: &'a Branch, value: Held<'a>, dot: &Held<'a>) -> Result<Flow, Fault> {
        let at = branch.pipeline.at;
        match value {
            Cow::Borrowed(Value::Array(items)) => {
                let items = items.iter().enumerate().map(|(index, item)| (Value::from(index), Cow::Borrowed(item)));
                self.each(branch, items, dot)
            }
            Cow::Owned(Value::Array(items)) => {
                let items = items.into_iter().enumerate().map(|(index, item)| (Value::from(index), Cow::Owned(item)));
                self.each(branch, items, dot)
            }
            Cow::Borrowed(Value::Object(entries)) => {
                self.charge(entries.len(), at)?;
                let entries = display::sorted(entries).into_iter();
                self.each(branch, entries.map(|(key, value)| (Value::from(key.as_str()), Cow::Borrowed(value))), dot)
            }
            Cow::Owned(Value::Object(entries)) => {
                let mut entries: Vec<_> = entries.into_iter().collect();
                entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                self.each(branch, entries.into_iter().map(|(key, value)| (Value::from(key), Cow::Owned(value))), dot)
            }
            value => match value.as_ref() {
                Value::Null => self.nodes(&branch.otherwise, dot),
                Value::Number(number) if number.as_i64().is_some() => {
                    if branch.pipeline.names.len() > 1 {
                        return Err(Fault::new(at, "a range over a number has one variable"));
                    }
                    let numbers = 0..number.as_i64().unwrap_or(0);
                    self.each(branch, numbers.map(|number| (Value::Null, Cow::Owned(Value::from(number)))), dot)
                }
                other => Err(Fault::new(at, format!("cannot range over {}", go::kind(other)))),
            },
        }
    }

    fn each(
        &mut self,
        branch: &'a Branch,
        items: impl Iterator<Item = (Value, Held<'a>)>,
        dot: &Held<'a>,
    ) -> Result<Flow, Fault> {
        let pipeline = &branch.pipeline;
        let scope = self.variables.len();
        let mut empty = true;
        for (index, item) in items {
            empty = false;
            self.charge(bounds::STEP, pipeline.at)?;
            self.charge_copy(&item, pipeline.at)?;
            match pipeline.names.as_slice() {
                [] => {}
                [name] => self.set(name, pipeline, item.clone())?,
                [first, second, ..] => {
                    self.charge_copy(&item, pipeline.at)?;
                    self.set(first, pipeline, Cow::Owned(index))?;
                    self.set(second, pipeline, item.clone())?;
                }
            }
            let flow = self.nodes(&branch.body, &item)?;
            self.variables.truncate(scope);
            if let Flow::Break = flow {
                break;
            }
        }
        if empty { self.nodes(&branch.otherwise, dot) } else { Ok(Flow::On) }
    }

    /// Renders a named template with the argument as `.` and `$`.
    fn call(&mut self, at: usize, name: &str, argument: Option<&'a Pipeline>, dot: &Held<'a>) -> Result<(), Fault> {
        let argument = match argument {
            Some(pipeline) => self.pipeline(pipeline, dot)?,
            None => Cow::Owned(Value::Null),
        };
        let Some(body) = self.tree.named.get(name) else {
            return Err(Fault::new(at, format!("there is no template {name:?}")));
        };
        self.charge(bounds::STEP, at)?;
        self.charge_copy(&argument, at)?;
        self.budget.deeper().map_err(Fault::at(at))?;
        let outside = std::mem::replace(&mut self.variables, vec![("$", argument.clone())]);
        self.nodes(body, &argument)?;
        self.variables = outside;
        self.budget.shallower();
        Ok(())
    }

    /// Declares a variable for `:=`, or assigns to a variable for `=`.
    pub(super) fn set(&mut self, name: &'a str, pipeline: &Pipeline, value: Held<'a>) -> Result<(), Fault> {
        let known = match pipeline.binding {
            Binding::Declare => None,
            Binding::Assign => self.find(name, pipeline.at)?,
        };
        match known {
            Some(known) => self.variables[known].1 = value,
            None => self.variables.push((name, value)),
        }
        Ok(())
    }

    /// Returns the index of the innermost variable with this name.
    pub(super) fn find(&self, name: &str, at: usize) -> Result<Option<usize>, Fault> {
        let found = self.variables.iter().rposition(|(known, _)| *known == name);
        self.charge(self.variables.len() - found.unwrap_or(0), at)?;
        Ok(found)
    }

    pub(super) fn charge(&self, bytes: usize, at: usize) -> Result<(), Fault> {
        self.budget.charge(bytes).map_err(Fault::at(at))
    }

    pub(super) fn charge_value(&self, value: &Value, at: usize) -> Result<usize, Fault> {
        self.budget.charge_value(value).map_err(Fault::at(at))
    }

    /// Reduces the budget by the cost of copying a value. A copy of a borrowed value costs nothing.
    pub(super) fn charge_copy(&self, value: &Held<'a>, at: usize) -> Result<(), Fault> {
        match value {
            Cow::Borrowed(_) => Ok(()),
            Cow::Owned(value) => self.charge_value(value, at).map(drop),
        }
    }
}
