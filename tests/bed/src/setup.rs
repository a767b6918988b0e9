//! Paths of the control plane's programs, of the Python and of the project's files.
//!
//! `make bed-setup` fills the user's cache folder; environment variables name other places.

use std::path::{Path, PathBuf};

use crate::error::BedError;

const PROGRAMS: [&str; 7] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "aws-iam-authenticator"];

#[derive(Debug)]
pub struct Setup {
    bin: PathBuf,
    pub python: PathBuf,
}

impl Setup {
    /// Checks all paths, so that one error names all that are missing.
    pub fn find() -> Result<Self, BedError> {
        let cache = cache_folder();
        let named = |variable| std::env::var_os(variable).map(PathBuf::from);
        let setup = Self {
            bin: named("SPILLWAY_BED_BIN").unwrap_or_else(|| cache.join("control-plane/bin")),
            python: named("SPILLWAY_BED_PYTHON").unwrap_or_else(|| cache.join("venv/bin/python")),
        };
        let missing: Vec<PathBuf> = PROGRAMS
            .iter()
            .map(|name| setup.program(name))
            .chain([setup.python.clone()])
            .filter(|path| !path.is_file())
            .collect();
        if missing.is_empty() { Ok(setup) } else { Err(BedError::NotSetUp { missing }) }
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// A file in the user's cache folder, by its path there.
pub fn cached(path: &str) -> PathBuf {
    cache_folder().join(path)
}

/// Folder that `scripts/karpenter` fills.
pub(crate) fn karpenter() -> Result<PathBuf, BedError> {
    let named = std::env::var_os("SPILLWAY_BED_KARPENTER").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| cached("karpenter"));
    if folder.is_dir() { Ok(folder) } else { Err(BedError::NotSetUp { missing: vec![folder] }) }
}

fn cache_folder() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .unwrap_or_default();
    base.join("spillway")
}

/// A file of this crate.
pub(crate) fn own_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A file of the product, by its path in the repository.
pub fn project_file(path: &str) -> Result<PathBuf, BedError> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let file = repository.expect("this crate lies two folders deep").join(path);
    match file.metadata() {
        Ok(_) => Ok(file),
        Err(error) => Err(BedError::io(format!("find {}", file.display()))(error)),
    }
}
