from adjudge.runs.folder import Run as Run
from adjudge.runs.folder import open_run as open_run
from adjudge.runs.item import RunItem as RunItem
from adjudge.runs.launch import Running as Running
from adjudge.runs.launch import run as run
from adjudge.runs.plan import Progress as Progress
from adjudge.runs.redecision.redecision import Redecision as Redecision
from adjudge.runs.redecision.redecision import redecide as redecide
