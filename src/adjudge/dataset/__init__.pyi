from adjudge.dataset.case import Case as Case
from adjudge.dataset.case import Label as Label
from adjudge.dataset.dataset import BadRow as BadRow
from adjudge.dataset.dataset import Dataset as Dataset
from adjudge.dataset.dataset import open_dataset as open_dataset
from adjudge.dataset.importers.inspect import import_inspect as import_inspect
from adjudge.dataset.importers.promptfoo import import_promptfoo as import_promptfoo
from adjudge.dataset.write import write_cases as write_cases
