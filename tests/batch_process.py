"""A run by batches in a process of its own, to be killed: provider, address, folder, number of cases, batch size."""

from __future__ import annotations

import sys

from adjudge import Judge, open_model, run
from adjudge.runs import BatchOptions
from run_support import make_cases

if __name__ == "__main__":
    kind, base, out, number, size = sys.argv[1:]
    judge = Judge(open_model(f"{kind}:small", base_url=base))
    batch = BatchOptions(check=0, poll=0.05, size=int(size))
    run(make_cases(int(number)), judge, criteria="Is good.", out=out, resume=True, batch=batch).finish_sync()
