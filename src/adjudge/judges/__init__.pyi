from adjudge.judges.chain import JudgeChain as JudgeChain
from adjudge.judges.evaluate import JudgeLike as JudgeLike
from adjudge.judges.judge import Judge as Judge
from adjudge.judges.layers import wire as wire
from adjudge.judges.strategies import Strategy as Strategy
