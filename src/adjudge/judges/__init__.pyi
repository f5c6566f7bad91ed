from adjudge.judges.chain import JudgeChain as JudgeChain
from adjudge.judges.evaluate import JudgeLike as JudgeLike
from adjudge.judges.judge import Judge as Judge
from adjudge.judges.layers import with_layers as with_layers
from adjudge.judges.strategies import Strategy as Strategy
