from adjudge.trust.difference import Means as Means
from adjudge.trust.difference import compute_mcnemar as compute_mcnemar
from adjudge.trust.intervals import Share as Share
from adjudge.trust.intervals import find_interval as find_interval
