"""One fresh process of the benchmark: `python worker.py JSON`, started by `harness`. Prints its figures as JSON."""

import json
import sys
from pathlib import Path

import workloads
from inputs import Size


def main() -> None:
    """Runs the one (workload, system) that it is asked for."""
    asked = json.loads(sys.argv[1])
    workload = next(w for w in workloads.PLAN if w.key == asked["workload"])
    system = next(s for s in workload.systems if s.name == asked["system"])
    task = workloads.Task(Path(asked["folder"]), Size(asked["scale"]), system, asked["check"])
    try:
        answer = workloads.run(workload, task)
    except Exception as error:
        kind = "wrong result" if isinstance(error, workloads.WrongResultError) else type(error).__name__
        answer = {"error": f"{kind}: {error}"}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
