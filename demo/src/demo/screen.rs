//! What the demo writes: lines for a person, in at most 100 columns, with colours only on a terminal.

use std::io::{IsTerminal as _, Write as _};

use super::scene::{Line, Tone};

const WIDTH: usize = 100;
/// Where the live view's second column begins: wide enough for `kube-system/` and a pod's whole name.
const NAMES: usize = 34;

#[derive(Debug)]
pub(super) struct Screen {
    colours: bool,
}

impl Screen {
    pub(super) fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colours: std::io::stdout().is_terminal() && !unwanted }
    }

    pub(super) fn heading(&self, text: &str) {
        self.write("");
        self.write(&self.paint("1", text));
    }

    /// A paragraph.
    pub(super) fn say(&self, text: &str) {
        for line in wrapped(text, WIDTH - 2) {
            self.write(&format!("  {line}"));
        }
    }

    pub(super) fn say_in(&self, tone: Tone, text: &str) {
        for line in wrapped(text, WIDTH - 2) {
            self.write(&format!("  {}", self.paint(colour(tone), &line)));
        }
    }

    /// Lines that are laid out already.
    pub(super) fn show(&self, lines: &[String]) {
        for line in lines {
            self.write(&format!("  {}", line.trim_end()));
        }
    }

    /// Lines that are only there to be looked up.
    pub(super) fn show_quietly(&self, lines: &[String]) {
        for line in lines {
            self.write(&self.paint("2", &format!("  {line}")));
        }
    }

    pub(super) fn gap(&self) {
        self.write("");
    }

    /// A line of the live view: seconds since the notice, whose line it is, what happened.
    pub(super) fn live(&self, seconds: f64, line: &Line) {
        let Line { tone, who, what } = line;
        let text = format!("{who:<NAMES$} {what}");
        self.write(&format!("  {seconds:>6.1} s  {}", self.paint(colour(*tone), &text)));
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours && !colour.is_empty() { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }

    #[expect(clippy::unused_self, reason = "there is one way onto the screen")]
    fn write(&self, line: &str) {
        // Whoever closed the pipe has read enough.
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}

fn colour(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Cloud => "36",
        Tone::Leaves => "33",
        Tone::Blocked => "35",
        Tone::Gone => "2",
        Tone::Good => "32",
        Tone::Bad => "31",
    }
}

/// Broken between words.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
