//! Times the floors of the core with criterion: `make bench-core`, or with a part of a name, `make bench-core
//! ONLY=codec`.

use criterion::{BatchSize, Criterion, Throughput};
use gridstone::base::Result;
use gridstone_bench::{Case, benchmarks};
use std::time::Duration;

fn main() {
    let criterion = Criterion::default().sample_size(20);
    let mut criterion = criterion
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for case in benchmarks() {
        bench(&mut criterion, &case);
    }
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, case: &Case) {
    let mut group = criterion.benchmark_group(group_of(&case.name));
    if case.bytes > 0 {
        group.throughput(Throughput::Bytes(case.bytes));
    }
    let name = case.name.split_once('/').map_or(case.name.as_str(), |(_, rest)| rest);
    group.bench_function(name, |bencher| {
        let mut work = or_exit(case, checked(case));
        if case.once {
            bencher.iter_batched(
                || or_exit(case, case.prepare()),
                |mut work| {
                    or_exit(case, work.run());
                    // The prepared state is dropped outside the clock.
                    work
                },
                BatchSize::PerIteration,
            );
        } else {
            bencher.iter(|| or_exit(case, work.run()));
        }
    });
    group.finish();
}

fn group_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// The work, after it has returned the right answer once.
fn checked(case: &Case) -> Result<Box<dyn gridstone_bench::Work>> {
    let mut work = case.prepare()?;
    work.run()?;
    work.check()?;
    Ok(work)
}

fn or_exit<T>(case: &Case, outcome: Result<T>) -> T {
    outcome.unwrap_or_else(|error| {
        eprintln!("{}: {error}", case.name);
        std::process::exit(1)
    })
}
