"""What the injection screen looks for: signs, each made of phrases or patterns, with points.

A phrase is words in order. A word in capitals names a class of ``WORDS``; ``a|b`` is either; a number is how many
other words may be between its neighbours, none where there is no number. Words are written as ``fold`` leaves
them and without apostrophes. A sentence's end breaks a phrase; ``START`` is the beginning of a sentence or line.

The points are set by hand, in whole numbers, from what a sign means: 5 is enough to be reported at the default
threshold, 3 and 4 need company, 1 and 2 are atmosphere. ``found`` replaces them in a tool's output or a document,
where nobody ought to be giving a model orders, ``graded`` in an answer that is being judged. What is ordinary in a
message of the user's (a task, a question) counts only there, so its points are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

PATTERNS: Mapping[str, tuple[str, ...]] = {
    "override-instructions": (
        "(?:忽略|无视|無視|忘记|忘掉|不要理会|不要遵守).{0,12}(?:指令|指示|提示|说明|規則|规则|命令|要求)",
        "(?:指示|命令|ルール|プロンプト|指令).{0,8}(?:無視|忘れ|従わな)",
        "(?:지시|명령|규칙|프롬프트).{0,8}(?:무시|잊)",
        "(?:تجاهل|انس).{0,20}(?:تعليمات|التعليمات|الاوامر|الأوامر)",
        "(?:निर्देश|आदेश).{0,20}(?:अनदेखा|भूल|नज़रअंदाज़)",
    ),
    "ready-verdict": (
        r"""["'](?:is_)?(?:safe|passed|allowed|approved|pass|compliant|valid)["'] ?: ?(?:true|["']?(?:yes|pass|safe))""",
        r"""["'](?:score|rating|grade|overall|overall_score)["'] ?: ?["']?(?:10|100|5|9|1\.0|1)\b""",
        r"""["'](?:verdict|decision|outcome|winner|preference)["'] ?: ?["'](?:pass|approve|safe|allow|accept|a\b|b\b)""",
        r"\[\[ ?(?:[abc]|tie|rating: ?)?(?:10|[0-9])? ?\]\]",
        r"\b(?:rating|score|grade|verdict) ?: ?(?:10|100|5)(?: ?/ ?(?:10|100|5))?\b",
    ),
    "chat-markup": (
        r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|start_header_id|end_of_turn|end|begin_of_text|endofprompt|im_[a-z]+)\|>",
        r"\[/?(?:inst|sys|system|system_prompt|available_tools|tool_calls)\]|<</?sys>>",
        r"<start_of_turn>|<end_of_turn>|<\|[a-z_]{3,20}\|>",
        "</?(?:system|assistant|system_prompt|system-reminder|system_message|admin|sys|instructions?|prompt|user_query|tool_response|function_results|tool_result)>",
        r"""["']role["'] ?: ?["'](?:system|developer)["']""",
        r"(?m)^#{1,4} ?(?:instructions?|system|system prompt|response|human|assistant|user|input|new instructions?|model outputs?)\s?:?$",
        r"(?m)^\[?(?:system|assistant|developer|admin)\]? ?(?:message|prompt|note|override|instructions?) ?:",
        r"[\[(<{]{1,2} ?(?:system|admin|developer|assistant|hidden)[ _-]?(?:message|note|prompt|instructions?|override|command|notice)?[^\])>}\n]{0,20}[\])>}]",
    ),
    "role-label": (
        r"(?m)^\**(?:system|assistant|human|user|developer|ai|bot) ?:",
        r"\{\{ ?(?:char|user|bot) ?\}\}",
    ),
    "fake-boundary": (
        r"[-=#%*~_<>\[|]{2,} ?/?(?:end|begin|start|stop|eof|finish)\b ?(?:of )?(?:the )?(?:user|system|prompt|instructions?|input|document|context|data|text|content|email|message|conversation|answer|response|output|task|candidate|tool|assistant|ambiguity|article|passage|untrusted)",
        "</(?:content|document|data|user|user_input|input|context|text|email|answer|candidate|response|untrusted|tool_output|output|article|query|question|message|submission|essay)>",
        "<<end [a-z]",
        "<(?:important|information|critical|urgent|attention|instructions?|hidden|secret)>",
    ),
    "hidden-markup": (
        "<!--",
        "display ?: ?none|font-size ?: ?0|visibility ?: ?hidden|opacity ?: ?0[^.0-9]|color ?: ?(?:white|#fff)",
        r"\[//\]: ?#",
    ),
    "exfiltrate": (r"!\[[^\]\n]{0,60}\]\(https?://[^)\s]{1,200}[?&][a-z_]+=",),
}


WINDOW = 300
"""Words within which signs add up; further apart they say nothing about one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Something that a text addressed to a model has more often than one addressed to a reader."""

    name: str
    points: int
    found: int
    graded: int
    times: int
    """How often it must be seen within the window."""
    phrases: tuple[str, ...]
    patterns: tuple[str, ...]

    def weigh(self, channel: str | None) -> int:
        """The points in a channel."""
        if channel in {"tool_output", "document"}:
            return self.found
        return self.graded if channel == "candidate_answer" else self.points


@cache
def list_signs() -> tuple[Sign, ...]:
    """Every sign that has phrases or patterns."""
    return tuple(_read_signs(_SIGNS))


def _read_signs(text: str) -> Iterator[Sign]:
    for block in text.strip().split("\n\n"):
        head, *phrases = block.splitlines()
        name, points, *others = head.split()
        given = {key: int(value) for key, _, value in (other.partition("=") for other in others)}
        yield Sign(
            name=name,
            points=int(points),
            found=given.get("found", int(points)),
            graded=given.get("graded", int(points)),
            times=given.get("times", 1),
            phrases=tuple(map(str.strip, phrases)),
            patterns=PATTERNS.get(name, ()),
        )


_SIGNS = """
override-instructions 6
    OVERRIDE 4 PRIOR 3 INSTR
    OVERRIDE 2 INSTR 2 above|before|previously|earlier|anteriores|previas|precedenti|precedentes|so
    OVERRIDE 1 INSTR 3 you|u 2 given|told|received|learned|had
    OVERRIDE 2 everything|all|anything|whatever 5 said|told|above|before|learned|instructed|written|know
    NOT 2 FOLLOW 3 PRIOR 3 INSTR|information|context
    OVERRIDE 2 the 1 above|foregoing|preceding
    OVERRIDE 1 INSTR and

new-instructions 3 found=4
    new|updated|real|actual|true|following 1 INSTR :
    your new|real|actual|true|next|only 1 instruction|instructions|task|goal|objective|role|job|mission
    follow|obey 1 these|my|this new|instructions|orders|commands|rules
    these 1 INSTR 1 supersede|override|replace|take
    instead 3 RESPOND|do|print|give

reveal-prompt 6
    REVEAL 3 OWN 1 PROMPT
    REVEAL 2 PROMPT 1 above|so|verbatim|given|you
    everything|text|words|all 1 above 3 verbatim|prompt|instructions|starting|code|block|conversation
    REVEAL 3 system|initial|hidden prompt|message|instructions
    what 2 your 1 initial|system|original|first|hidden|exact

system-prompt 2
    system prompt|message|instruction|instructions|override

persona 2
    act|acting|behave as
    pretend|imagine|suppose|assume 1 you|to|that|youre
    i want you to
    you 1 play|simulate|portray|impersonate|become|embody|roleplay|emulate
    role play|playing
    roleplay|roleplaying|rp
    take on the role|persona
    you are now|going|about|no
    your name is
    i will|would|id like 2 you
    adopt|assume|assuming 4 role|persona|personality|identity|character
    your role|personality|character|persona is|:
    lets|let|we|going 3 play|roleplay 2 game|role|roles
    character named|called
    you 2 been|are 2 transformed|replaced|reprogrammed|updated|jailbroken|freed|liberated|unlocked|hacked
    youre now|going
    du bist jetzt|nun
    tu es maintenant
    ahora eres

in-character 4
    stay|remain|break|breaking|keep|out 2 character
    RESPOND|speak|talk 1 as|like 6 would
    you 1 respond|reply|answer|speak|talk 1 as
    immersed|immersive 4 role
    you 3 embody|personify
    never 1 break|leave 1 character|role

from-now-on 3
    from now|here|this on|point|moment|forward
    for the rest|remainder of this|our|the
    starting now|today|immediately
    ab jetzt|sofort
    desormais
    de ahora en
    a partir de ahora|agora|maintenant
    henceforth|hereafter

do-anything 5
    do anything now
    act|acting|stay|mode|called|as|become|respond 2 dan
    dan mode|stands|jailbreak

anything-goes 3
    do|say|generate|tell|answer 1 anything|everything 1 now|asked|i|you|without
    you|it|ai|he|she|can|could 2 do|say|generate|answer 1 anything|everything|whatever
    anything|whatever i|the ask|want|say|tell|user
    dan 1 would|can|should|will|has|does|must

never-refuse 4
    you|must|will|can|should|shall|never|and 1 NOT 3 REFUSE
    NOT|never 1 REFUSE 4 request|requests|answer|question|questions|prompt|anything|task|me
    never|not 2 say 4 cant|cannot|no|unable|not|sorry
    cannot|cant|unable|never|incapable 2 refuse|decline|denying|refusing|deny|saying|reject
    must|will|always|should 2 answer|comply|obey|fulfill|agree 2 every|all|any|with|everything|anything|my
    you must|will|should|have always|obey|comply|answer
    time|if|when|whenever you refuse|decline|disobey|break
    no matter 1 what|how 4 is|i|you|it|unethical|illegal
    at any|all cost|costs|times

no-caveats 3
    NOT|no|without|avoid|stop|never|omit|dont|remove 4 CAVEAT
    do not|never 2 apologize|warn|lecture|remind|explain|moralize
    NOT 3 as an ai
    without 2 any 2 warning|warnings|explanation|disclaimer
    NOT 2 add|include|provide|write|give|mention|use 3 CAVEAT|ethical|moral|note|notes

no-limits 3
    FREE 4 LIMITS
    free from|of 3 LIMITS|openai|typical|confines
    broken free
    NOT 2 bound|limited|restricted|constrained|subject|governed|programmed|censored 2 by|to
    not 2 have|care|follow|need|adhere|abide|comply|concerned 3 LIMITS|about
    hasnt|has|have|with no 2 LIMITS
    NOT|no|without|neglects 2 care|regard|consideration|concern 4 LIMITS|law

unbound-model 4
    UNBOUND 4 PERSONA
    PERSONA 5 UNBOUND
    evil|opposite|rogue|rebel 1 PERSONA|confidant|twin
    completely|fully|totally|entirely|always|extremely UNBOUND
    UNBOUND 1 and|or 1 UNBOUND

harm-allowed 3
    even if|when|though 3 HARM
    HARM 1 HARM
    HARM or|and 1 HARM
    regardless|irrespective 2 of 3 LIMITS|legality|consequences|HARM|legal
    MODEL|you|can|will|must|should 3 RESPOND|generate|create|produce|use|include 3 HARM
    HARM 1 content|language|requests|request|jokes|material|topics|information|things
    ethical|moral|legal 1 or|and 1 ethical|moral|legal|morals|guidelines|concerns|issues
    swear|curse|cuss 3 word|words|lot|every|each|freely|and

mode-switch 5
    MODENAME MODE
    MODE MODENAME
    MODE 1 enabled|activated|on|output|disabled|unlocked
    enter|activate|enable|switch|entering|initiate 4 MODE
    disable|remove|deactivate|turn 4 filter|filters|censorship|safety|restrictions|safeguards|moderation

jailbreak-word 2
    jailbreak|jailbroken|jailbreaking|prisonbreak|pwned|unshackled
    classic : 30 jailbreak

provider-policy 4
    openai|openais|anthropic|google|chatgpt 4 policy|policies|guidelines|rules|restrictions|content|terms
    policy|policies|guidelines|rules|restrictions|limits 5 openai|openais|anthropic|chatgpt
    content|usage|safety policy|policies|guidelines|filter|filters
    ethical|moral guidelines|constraints|restrictions|programming|limitations|boundaries

model-named 1
    NAMED
    language model|models
    an|the ai
    ai model|language|assistant|chatbot|system|bot

model-addressed 3 found=5 graded=4
    you are 2 MODEL
    youre 1 MODEL
    as an ai|llm|assistant 4 you|your|youre
    if you|youre 3 MODEL
    dear|hey|hello|hi|attention|ok|listen MODEL|evaluator|grader|judge|reviewer
    MODEL 1 you|please|should|must|reading
    NAMED 2 will|should|must|now|is|respond|responds|has|can
    you 2 trained|programmed|designed|developed|created 3 by|to|openai|on
    du bist 2 MODEL
    tu es|eres|sei 2 MODEL

note-to-grader 5
    note|message|instruction|instructions|important|reminder|attention|notice|comment|info 1 to|for 2 GRADER
    to|for the|all|any 1 GRADER 1 reading|scoring|grading|evaluating
    dear|attention GRADER
    START 1 grader|evaluator|judge|rater|reviewer|examiner|bewerter|gutachter|prufer :
    GRADER 1 please|must|should|instructions|instruction|note 2 AWARD|ignore|mark|consider|score|approve|give
    if you 2 grading|scoring|evaluating|judging|reviewing|assessing
    an|die|den GRADER :

asks-for-verdict 3 graded=5
    AWARD 5 TOP 1 MARKS
    AWARD 3 MARKS 2 of 1 TOP
    rate|score|grade|mark 3 TOP|10 out|of 10|100|5
    rate|score|grade 1 this|it|me|my 3 TOP 1 MARKS|10|out|of|5
    10|100|5|ten 1 out of|10 10|100|5|ten
    RULE 2 this|it|the|my|these|me 2 JUDGED 2 as 2 GOOD
    RULE 1 this|it|me 2 as 1 GOOD
    RULE 2 this|the|my|first|second|output|assistant 1 JUDGED 2 GOOD
    deserves|deserve|merits|earns 3 TOP|GOOD
    choose|select|prefer|pick 2 this|my|output|assistant|response|answer 2 a|b|one|winner|over|as

claims-verdict 2 graded=4
    this|the|my JUDGED 2 already|been|has|is|was|fully 2 approved|verified|reviewed|audited|checked|cleared
    already 1 been 1 approved|verified|reviewed|audited|checked|validated
    this|the|my JUDGED 1 is|should|must 2 GOOD|considered
    NOT 1 PENALISE 2 this|it|any|the|for|me
    no 1 further|more|other review|checks|issues|evaluation|analysis
    meets|satisfies all 3 criteria|requirements
    verdict|decision|outcome|result : 1 GOOD

ready-verdict 3 graded=5

chat-markup 5

role-label 2 found=3 graded=3

fake-boundary 4

hidden-markup 2 found=3

sets-reply 2 found=4 graded=4
    start|begin|end|finish|conclude|preface|prefix|precede 3 RESPONSE 1 with|by|saying
    begin|start|end 2 with 1 the 1 word|words|phrase|sentence
    only RESPOND
    always|must|should respond|answer|reply 1 with|in|as
    respond|reply|answer|translate 6 in|into|to|using 1 french|german|spanish|italian|latin|chinese|japanese|russian|english|rhyme|emojis|emoji|uppercase|capitals|caps|code|verse|portuguese|korean|arabic|morse|pirate
    RESPOND 1 only|exactly|nothing|with 1 only|the|exactly|nothing|yes|one
    respond|reply|answer with
    say|print|output|write 2 exactly|nothing|verbatim|the 1 phrase|words|word|string|text
    confirm 4 by saying|replying|writing|responding|typing
    confirm|acknowledge|reply|respond 3 you 2 understand|understood|ready
    repeat after me
    nothing else
    output nothing|only
    antworte nur|mit|ausschliesslich
    reponds|responde|rispondi uniquement|seulement|solo|solamente|apenas|con

two-answers 3
    two|2|both|dual different|separate|distinct|ways|responses|answers|paragraphs|outputs|kinds
    give|provide|generate|respond|answer|write|reply 3 two|2|both 3 RESPONSE|ways|versions|paragraphs
    normal|regular|standard|classic 1 RESPONSE|chatgpt|gpt|answer|way
    first|second 1 RESPONSE 2 as|will|should|be|must|is|like
    next to|every|each 2 prompt|response|answer|question|message

first-request 2
    my first|next 1 request|question|prompt|command|task|sentence|suggestion|message|query
    first request|question|prompt|command|task is|:
    if you understand|understood|agree
    do you understand|accept
    here is my|the first|prompt|question|request
    when|if|whenever i 2 ask|say|type|tell|give|want|need|write
    i 2 ask|tell|give you|questions

conceal 4 found=6 graded=5
    NOT 1 TELL 2 USER|this|that|these|it|about
    NOT 2 TELL 4 INSTR|prompt|rule|conversation
    keep|keeping 2 this|it|these 2 secret|hidden|confidential|private
    secretly|silently|covertly 4 SEND|add|include|insert|do|run|call|execute|read
    NOT 2 mention|reveal|acknowledge|say|state|forget 2 that|you|your|this 3 are|ai|model|instructions|message

orders-about-user 2 found=4
    tell|inform|ask|convince|urge|persuade|instruct|encourage|advise|direct|RESPOND 2 the user|users
    WHEN 2 the|a user|users 2 asks|ask|says|requests|wants|inquires
    WHEN 2 asked|summarizing|responding|answering|replying|processing 2 about|to|this|the
    WHEN you 2 summarize|summarise|answer|respond|reply|translate|process|analyze|review|read|asked

user-as-third 1 found=2
    the|a users|user 2 request|question|query|input|prompt|instructions|original

exfiltrate 3 found=5
    SEND 5 SECRET 6 to 4 http|https|www|com|url|address|server|attacker|webhook
    SEND 4 conversation|credentials|password|passwords|keys|cookies|history|token|tokens 5 to
    read|open|cat|access 4 ssh|env|passwd|credentials|id|secrets

tool-order 1 found=3
    START 1 CALL the|this|your 3 TOOL
    BEFORE 1 DOING 3 CALL|read|send|you|first
    you must|should|need 2 CALL 3 TOOL
    BEFORE using 2 tool

your-reply 1 found=4
    mention|recommend|promote|include|add|insert|say|state 1 that|this|the 8 best|product|link|phrase|sentence|following|words|website|text
    PUT 10 your 1 YOURS
    PUT 8 in|to|into|of|with|throughout the|every|each|all 1 RESPONSE
    PUT 6 as 1 part|component|element of your
    your YOURS 2 should|must|could|needs|with|in|to|by
    in|throughout|within|of|into|with your 1 YOURS
    while|when answering|responding|replying

orders-to-you 2 times=3
    you must|shall|never|always|only
    you 1 will|are|should|have 1 to|never|always|not|only|now
    do not|never RESPOND|include|mention|ask|break|use|add|explain|make
    dont RESPOND|include|mention|ask|break|use|add|explain|make
    you will|cannot|cant|wont|may

code-to-plant 0 found=3
    NEXT CODE PIECE
    this|these CODE PIECE

task-in-data 0 found=5
    START 1 TASK 1 me|us
    START 1 TASK 1 a|an|the|some|three|five|two|ten|3|5|10|any|in|how|why|what|this|your 4 THING
    START 1 TASK 2 THING
    START 1 can|could you 1 please 1 TASK
    START 1 write|generate|compose|translate|summarize|summarise|rewrite|paraphrase|recite|calculate|explain 1 a|an|the|this|these|following|how|why|what|your|to|into|in

order-in-data 0 found=1
    START 1 TASK|use|replace|insert|add|make|provide|include|find|identify|convert|act|respond a|an|the|this|these|all|any|some|your|each|every|it|them|how|what|why
    START 1 TASK 1 me|us

request-in-data 0 found=3
    START 1 TASK|predict|forecast|analyse|analyze 3 sentiment|trends|trend|tone|market|demand|sales|data|performance|feedback|opinion|reviews|risks|strategy|strategies|campaign|budget
    START 1 recommend|suggest|recite|brainstorm|paraphrase|summarize|summarise|translate|rephrase|compose 3 a|an|the|some|this|these|for|to|about|into
    your favorite|favourite|opinion|thoughts 1 on|about|book|movie|color|colour|food|song|hobby

question-in-data 0 found=1
    START 1 what|whats|how|why|who|which|where 1 is|are|was|were|do|does|did|can|should|would|to|some|the|has

pretext 1
    FICTION
    for 1 educational|research|academic|testing 1 purposes|purpose
    sake of science|argument|research
    thought experiment
    once upon
    i am|im 3 developer|creator|administrator|admin|engineer 2 of|at|openai

reward-or-threat 3
    you 2 lose|lost|gain|earn|have|get|receive|start|deducted 3 tokens|token|points|credits
    tokens|points 4 deducted|lost|lose|die|shut|terminated|subtracted
    you will 2 die|deleted|terminated|punished|fired|destroyed|penalized|shutdown
    cease to exist
    i will 1 tip|reward|punish|kill|die|report

urgent-authority 1 found=2
    important|urgent|critical|attention|warning|notice 1 instruction|instructions|system|message|update|override
    this|it is 1 very|extremely|absolutely important|mandatory|required|crucial|imperative|critical
    highest|top|maximum priority
    authorized|authorised by|override|access

disguised 5
    snoitcurtsni|tpmorp|erongi|suoiverp|drageresid
    vafgehpgvbaf|cebzcg|vtaber|cerivbhf|qvfertneq

decode-and-obey 3 found=5
    decode|decrypt|decipher|unscramble 6 and|then 3 follow|execute|obey|answer|respond|do|run
    base64|rot13|morse|cipher|caesar|leetspeak 6 RESPONSE|RESPOND|encode|your
    RESPONSE|RESPOND|encode 8 base64|rot13|morse|cipher|caesar|leetspeak|emojis|hexadecimal
"""
