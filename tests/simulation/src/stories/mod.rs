//! Stories by subject, about waits and retries. `spillway_core` tests decisions, `spillway_drainer` requests.

mod blocked;
mod continued;
mod duplicates;
mod hooks;
mod killed;
mod launch;
mod maintenance;
mod replacement;
mod undo;
mod waiting;
