"""A run by batches: the cases are judged as in a live run, and only the replies come from somewhere else.

Every case is judged by the code of a live run. What differs is the innermost model (``BatchedModel``). Its ``complete``
looks the request up in ``batches.sqlite`` beside the run, by case, order, seat, sample and attempt:

* A reply that is there is returned at once.
* A request that is at the provider is waited for.
* Any other request waits until no judgement is about to ask more. Then all that wait are put together to jobs
  (``BatchDispatcher``) and sent. Hours later each judgement goes on where it was.

So a consensus takes one round of batches, and a fallback one round for each seat that is needed. A run that is resumed
in another process asks the same questions, finds the same rows, and waits for the same jobs.

Three rules keep anything from being paid for twice. Keep their order when you change this package:

1. The intent (a label that no other job has, the ids of its requests, the digest of its lines) is on disk before
   anything is sent, and the state ``creating`` before the one request that creates the job.
2. After a kill, or after an answer that was lost, the provider's jobs are searched for the label, or, where a provider
   keeps no labels, for the ids in the results of jobs that may be it. If the job is found, it is ours. If it is not
   among all jobs, it was not created. Otherwise it is *doubtful*: it is shown, its requests wait, and nothing but
   ``pay_again`` sends them again.
3. Results are on disk, and read to their end, before a judgement sees them: of two different answers to one request
   neither counts. A job is collected when each of its requests has an outcome. Where one has none and nothing says that
   it was not run, the job is doubtful as well.

``store`` is the file. ``dispatcher`` sends, polls and collects. ``batched_model`` is the model that a judge asks.
``session`` is the part of a run's engine that is only for this. ``first_cases`` is the live check before anything is
sent. ``folder`` lists, collects and cancels the jobs of a run without its data set. ``secret`` is the run's own secret.
"""
