//! Floor `runtime`: what the engine takes from its process: threads, time, randomness, cancellation, memory for results
//! and a cache.
//!
//! Invariants: no thread is started before there is work for it; nothing here can deadlock in the child of a fork
//! (see [`PerProcess`]).

mod arena;
mod background;
mod cache;
mod cancel;
mod claims;
#[cfg(feature = "object-stores")]
mod driver;
mod owner;
mod patience;
mod per_process;
mod pool;
mod signal;
mod system;
mod work;

pub use arena::Arena;
pub use background::Background;
pub use cache::LruCache;
pub use cancel::CancelFlag;
pub use claims::{Claim, Claims};
#[cfg(feature = "object-stores")]
pub use driver::{Asked, Driven, drive, driven};
pub use owner::Owner;
pub use patience::{standing, under};
pub use per_process::PerProcess;
pub use pool::{Pool, THREADS_VARIABLE};
pub use signal::CondvarSignals;
pub use system::{SystemClock, SystemEntropy};
