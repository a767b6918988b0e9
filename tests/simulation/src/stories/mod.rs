//! Stories by subject: what takes time. Decisions are tested in `spillway_core`, requests in `spillway_drainer`.

mod blocked;
mod continued;
mod duplicates;
mod hooks;
mod killed;
mod launch;
mod maintenance;
mod undo;
mod waiting;
