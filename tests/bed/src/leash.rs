//! A shell behind this program: when the program ends, however it ends, the shell kills the process groups and removes the
//! folder that the program leaves.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

const SCRIPT: &str = r#"
while read -r word value; do
  case $word in
    folder) folder=$value ;;
    watch) groups="$groups -$value" ;;
    release) groups= ;;
    keep-logs) keep=yes ;;
  esac
done
[ -z "$groups" ] || kill -s KILL -- $groups 2>/dev/null
[ -n "$folder" ] || exit 0
if [ -n "$keep" ]; then
  for entry in "$folder"/*; do [ "$entry" = "$folder/logs" ] || rm -rf -- "$entry"; done
  echo "the test bed's logs are kept in $folder/logs" >&2
else
  rm -rf -- "$folder" || { sleep 1; rm -rf -- "$folder"; }
fi
"#;

/// The pipe to the shell: when the pipe closes, the shell cleans up.
#[derive(Debug)]
pub struct Leash {
    stdin: Mutex<Option<ChildStdin>>,
    shell: Child,
}

impl Leash {
    pub fn start() -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C and a kill of the whole group must not reach the shell.
            .process_group(0)
            .spawn()?;
        Ok(Self { stdin: Mutex::new(shell.stdin.take()), shell })
    }

    /// Hands over a process group.
    pub fn watch(&self, group: u32) {
        self.write(&format!("watch {group}"));
    }

    /// Takes back all process groups: each has ended, or is about to.
    pub fn release(&self) {
        self.write("release");
    }

    /// Hands over a folder.
    pub(crate) fn remove(&self, folder: &Path) {
        self.write(&format!("folder {}", folder.display()));
    }

    /// Keeps the folder's `logs`.
    pub(crate) fn keep_logs(&self) {
        self.write("keep-logs");
    }

    fn write(&self, line: &str) {
        if let Some(stdin) = &mut *self.stdin.lock().unwrap_or_else(PoisonError::into_inner) {
            // Fails only if the shell was killed.
            let _ = writeln!(stdin, "{line}");
        }
    }
}

/// Returns when the shell has cleaned up.
impl Drop for Leash {
    fn drop(&mut self) {
        *self.stdin.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.shell.wait();
    }
}
