from adjudge.rubric.file import load_rubric as load_rubric
from adjudge.rubric.rubric import Criterion as Criterion
from adjudge.rubric.rubric import Example as Example
from adjudge.rubric.rubric import Rubric as Rubric
