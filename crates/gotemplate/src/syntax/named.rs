//! Parses `{{ define }}`, `{{ template }}` and `{{ block }}`.

use super::parser::{Opened, Parser, Stop, string, unexpected};
use super::token::{Kind, Token};
use super::tree::Node;
use crate::fault::Fault;

impl<'a> Parser<'a> {
    /// Reads the rest of `{{ template "name" pipeline }}` after the keyword.
    pub(super) fn call(&mut self, keyword: Token<'a>) -> Result<Node, Fault> {
        let name = self.name("{{template}}")?;
        let argument = if self.peek().kind == Kind::Close {
            self.take();
            None
        } else {
            Some(self.pipeline("{{template}}", Kind::Close)?)
        };
        self.called.push((keyword.at, name.clone()));
        Ok(Node::Call { at: keyword.at, name, argument })
    }

    /// Reads a `{{ block }}`, which defines a template and calls it.
    pub(super) fn block(&mut self, opened: Opened<'a>) -> Result<Node, Fault> {
        let name = self.name("{{block}}")?;
        let argument = self.pipeline("{{block}}", Kind::Close)?;
        self.definition(opened, name.clone())?;
        Ok(Node::Call { at: opened.at, name, argument: Some(argument) })
    }

    pub(super) fn define(&mut self, opened: Opened<'a>) -> Result<(), Fault> {
        let name = self.name("{{define}}")?;
        self.close("{{define}}")?;
        self.definition(opened, name)
    }

    /// Reads the body of a `{{ define }}` or `{{ block }}`.
    fn definition(&mut self, opened: Opened<'a>, name: String) -> Result<(), Fault> {
        self.deeper(opened.at)?;
        let variables = std::mem::replace(&mut self.variables, vec!["$"]);
        let ranges = std::mem::take(&mut self.ranges);
        let (body, stop) = self.nodes(Some(opened))?;
        if let Stop::Else(at) = stop {
            return Err(Fault::new(at, format!("a {{{{{}}}}} has no {{{{else}}}}", opened.keyword)));
        }
        self.variables = variables;
        self.ranges = ranges;
        self.shallower();
        // As in Go, an empty template does not replace an earlier one, and a later one may replace it.
        let empty = |body: &[Node]| body.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()));
        match self.named.get(&name) {
            Some(first) if !empty(first) && !empty(&body) => {
                Err(Fault::new(opened.at, format!("a second template {name:?}")))
            }
            Some(first) if !empty(first) => Ok(()),
            _ => {
                self.named.insert(name, body);
                Ok(())
            }
        }
    }

    fn name(&mut self, context: &str) -> Result<String, Fault> {
        let token = self.take();
        match token.kind {
            Kind::Quoted | Kind::Raw => string(token),
            _ => Err(unexpected(token, &format!("{context}, where a name in quotes belongs"))),
        }
    }
}
