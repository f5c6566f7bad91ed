from adjudge.trust.difference import Means as Means
from adjudge.trust.difference import compute_mcnemar as compute_mcnemar
from adjudge.trust.intervals import IntervalMethod as IntervalMethod
from adjudge.trust.intervals import Share as Share
from adjudge.trust.intervals import WeightedShare as WeightedShare
from adjudge.trust.intervals import find_interval as find_interval
from adjudge.trust.intervals import find_limits as find_limits
from adjudge.trust.intervals import find_weighted_share as find_weighted_share
