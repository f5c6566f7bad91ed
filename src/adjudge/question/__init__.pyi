from adjudge.question.question import Question as Question
