from adjudge.labels.truth import LabelledVerdict as LabelledVerdict
from adjudge.labels.truth import SettledBy as SettledBy
from adjudge.labels.truth import Truth as Truth
from adjudge.labels.truth import TruthHeap as TruthHeap
from adjudge.labels.truth import TruthTable as TruthTable
from adjudge.labels.truth import find_truths as find_truths
from adjudge.labels.truth import tabulate_truths as tabulate_truths
