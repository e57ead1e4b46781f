//! Promise: a read gives the cells that it selects, however they are stored, and fetches little else.

mod ahead;
mod apart;
mod around;
mod block_sizes;
mod filtered;
mod io_count;
mod laid_over;
mod oracle;
mod paper_examples;
mod points;
mod portions;
mod positions;
mod regions;
mod sorted_copies;
mod straight;
mod unopened;
