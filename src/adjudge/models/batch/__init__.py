"""Providers' batch interfaces: many requests in one job, answered within a day or two, mostly for half the price.

A provider's batch is a *job* here. All jobs go through one state machine, whatever their provider calls its steps:

    planned → uploading → creating → waiting → ended → collected
                             ├→ doubtful (the creation was not answered)    └→ doubtful (lines are missing)
                             └→ refused  (nothing was created)            waiting → cancelling → ended

* ``job`` has the states, what a provider says of a job, and what a line of its results came to.
* ``wire`` sends: reads and uploads may be repeated, a creation is sent exactly once.
* ``lines`` cuts result files into lines and requests into jobs, within a provider's limits.
* ``openai``, ``anthropic`` and ``gemini`` say it in a provider's own words, with the request bodies of its live model.
* ``open`` finds the interface of a model.

No provider has an idempotency key for creating a job, so a creation whose answer is lost may have created one that is
paid for. Nothing here ever sends a creation twice. Whoever uses it keeps the intent first, with a label that no other
job has, and on a lost answer looks for the label among the provider's jobs (``list_jobs``). Who remembers is
``adjudge.runs.batch``.
"""
