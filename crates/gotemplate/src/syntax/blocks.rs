//! Parses a template and its blocks, such as `{{ if }}`.

use super::parser::{Opened, Parser, Stop, unexpected};
use super::token::{Kind, Token};
use super::tree::{Branch, Keyword, Node, Tree};
use crate::bounds;
use crate::fault::Fault;

/// Parses a template. Fails for unknown functions, variables and templates.
pub(crate) fn parse(source: &str) -> Result<Tree, Fault> {
    if source.len() > bounds::SOURCE {
        return Err(Fault::new(0, format!("a template has no more than {} bytes", bounds::SOURCE)));
    }
    let mut parser = Parser::new(source);
    let (body, stop) = parser.nodes(None)?;
    match stop {
        Stop::EndOfText => {}
        Stop::End(at) => return Err(Fault::new(at, "unexpected {{end}}: no block is open")),
        Stop::Else(at) => return Err(Fault::new(at, "unexpected {{else}}: no block is open")),
    }
    if let Some((at, name)) = parser.called.iter().find(|(_, name)| !parser.named.contains_key(name)) {
        return Err(Fault::new(*at, format!("there is no template {name:?}")));
    }
    Ok(Tree { body, named: parser.named })
}

impl<'a> Parser<'a> {
    /// Reads nodes up to the `{{ end }}` or `{{ else }}` of a block. Outside of blocks, reads to the end of the text.
    pub(super) fn nodes(&mut self, within: Option<Opened<'a>>) -> Result<(Vec<Node>, Stop), Fault> {
        let mut nodes = Vec::new();
        loop {
            let token = self.take();
            match token.kind {
                Kind::Text => nodes.push(Node::Text(token.text.to_owned())),
                Kind::Open => match self.action(token.at, within)? {
                    Action::Node(node) => nodes.push(node),
                    Action::Nothing => {}
                    Action::Stop(stop) => return Ok((nodes, stop)),
                },
                Kind::EndOfText => match within {
                    None => return Ok((nodes, Stop::EndOfText)),
                    Some(Opened { keyword, at }) => {
                        return Err(Fault::new(at, format!("this {{{{{keyword}}}}} has no {{{{end}}}}")));
                    }
                },
                _ => return Err(unexpected(token, "the text")),
            }
        }
    }

    fn action(&mut self, open: usize, within: Option<Opened<'a>>) -> Result<Action, Fault> {
        let first = self.peek();
        if first.kind != Kind::Keyword {
            return Ok(Action::Node(Node::Action(self.pipeline("an action", Kind::Close)?)));
        }
        self.take();
        let opened = Opened { keyword: first.text, at: open };
        let node = match first.text {
            "end" => {
                self.close("{{end}}")?;
                return Ok(Action::Stop(Stop::End(open)));
            }
            // The caller reads the rest of the action: `if` or `}}`.
            "else" => return Ok(Action::Stop(Stop::Else(open))),
            "define" if within.is_some() => {
                return Err(Fault::new(open, "a {{define}} stands outside of all blocks"));
            }
            "define" => {
                self.define(opened)?;
                return Ok(Action::Nothing);
            }
            "template" => self.call(first)?,
            "block" => self.block(opened)?,
            "break" | "continue" => self.jump(first, open)?,
            _ => self.branch(opened)?,
        };
        Ok(Action::Node(node))
    }

    /// Reads the rest of an `{{ if }}`, `{{ with }}` or `{{ range }}` block after the keyword.
    fn branch(&mut self, opened: Opened<'a>) -> Result<Node, Fault> {
        self.deeper(opened.at)?;
        let scope = self.variables.len();
        let (context, keyword) = match opened.keyword {
            "if" => ("{{if}}", Keyword::If),
            "with" => ("{{with}}", Keyword::With),
            _ => ("{{range}}", Keyword::Range),
        };
        let pipeline = self.pipeline(context, Kind::Close)?;
        let inside = usize::from(keyword == Keyword::Range);
        self.ranges += inside;
        let (body, stop) = self.nodes(Some(opened))?;
        self.ranges -= inside;
        let otherwise = match stop {
            Stop::Else(_) => self.otherwise(opened)?,
            Stop::End(_) | Stop::EndOfText => Vec::new(),
        };
        self.variables.truncate(scope);
        self.shallower();
        Ok(Node::Branch(Branch { keyword, pipeline, body, otherwise }))
    }

    /// Reads the rest of a block after the keyword `else`.
    fn otherwise(&mut self, opened: Opened<'a>) -> Result<Vec<Node>, Fault> {
        let next = self.peek();
        if next.kind == Kind::Keyword && next.text == opened.keyword && opened.keyword != "range" {
            self.take();
            return Ok(vec![self.branch(Opened { keyword: next.text, at: opened.at })?]);
        }
        self.close("{{else}}")?;
        match self.nodes(Some(opened))? {
            (_, Stop::Else(at)) => {
                Err(Fault::new(at, format!("a second {{{{else}}}} for one {{{{{}}}}}", opened.keyword)))
            }
            (nodes, _) => Ok(nodes),
        }
    }

    fn jump(&mut self, keyword: Token<'a>, open: usize) -> Result<Node, Fault> {
        let (name, node) = match keyword.text {
            "break" => ("{{break}}", Node::Break),
            _ => ("{{continue}}", Node::Continue),
        };
        self.close(name)?;
        if self.ranges == 0 {
            return Err(Fault::new(open, format!("{name} outside of a {{{{range}}}}")));
        }
        Ok(node)
    }
}

enum Action {
    Node(Node),
    Nothing,
    Stop(Stop),
}
