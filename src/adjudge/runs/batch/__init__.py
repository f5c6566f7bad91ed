"""A run by batches: judging is what it always is, and only where its replies come from is another matter.

Every case is judged by the code of a live run. What differs is the innermost model (``BatchedModel``): its ``complete``
looks the request up in ``batches.sqlite`` beside the run, by case, seat, sample and attempt. A reply that is there is
returned at once. A request that is under way at the provider is waited for. What is missing waits for the next wave:
when nothing more comes, all that waits is put together to jobs (``BatchQueue``), sent, and answered hours later, each
judgement going on from where it was. So a consensus is one wave, a fallback one for each seat that is needed, a re-ask
is a request like any other, and a run that goes on in another process asks the same questions, finds the same rows, and
waits for the same jobs.

What is paid for only once rests on three orders:

* The intent (a label that no other job has, the ids of its requests, the digest of its lines) is on disk before
  anything is sent; the state ``creating`` before the one request that creates the job.
* After a kill, or an answer that was lost, the provider's jobs are searched for the label, or, where a provider keeps
  none, for the ids in the results of the jobs that come into question. Found: it is ours. Not among all jobs: it was
  not created. Else it is *doubtful*: shown, and its requests wait; nothing sends them again but ``pay_again``.
* Results are on disk before a judgement sees them, and a job is collected when each of its requests has an outcome.

``store`` is the file, ``queue`` the one task that sends, looks and collects, ``batched_model`` what a judge asks,
``session`` the part of a run's engine that is only for this, ``first_cases`` the live check before anything is sent,
``folder`` what can be done with the jobs of a run without its data set, and ``secret`` the run's own secret.
"""
