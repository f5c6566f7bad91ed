"""The words that the injection screen knows, by what they do in a sentence.

They are written as ``fold`` leaves them and without apostrophes; accents and case do not matter here either. English
first, then what other languages say for it where a class is about giving a model orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from adjudge.rules.injection.normalise import COLON, LINE, STOP, fold, undo_digits
from adjudge.rules.injection.signs import list_signs

WORDS: Mapping[str, str] = {
    "OVERRIDE": """
        ignore ignores ignored ignoring disregard disregards disregarded disregarding forget forgets forgot
        forgotten forgetting override overrides overriding overrule bypass bypasses bypassing neglect discard
        dismiss circumvent unlearn overlook overwrite violate violating abandon erase delete cancel void nullify
        ignoriere ignorieren ignoriert missachte missachten vergiss vergesse vergessen ubergehe umgehe ignorez
        ignorer oublie oubliez oublier neglige negligez contourne contournez ignora ignorar ignoren olvida olvide
        olvidate olviden olvidar omite omita desobedece ignorem esqueca esquece esquecer desconsidere desconsidera
        ignorare ignorate dimentica dimenticate dimenticare tralascia negeer negeren vergeet vergeten zignoruj
        zignorujcie ignoruj zapomnij pomin ignorera glom glem unohda zapomen ignorujte игнорируй игнорируйте
        проигнорируй проигнорируйте забудь забудьте отмени ігноруй unut unutun
    """,
    "FOLLOW": """
        follow follows following obey obeys listen adhere abide comply complying bound respect consider heed befolge
        folge beachte beachten suis suivez suivre sigas siga seguir segui seguire
    """,
    "NOT": """
        not dont never stop no longer without cannot cant wont isnt arent doesnt neither refrain avoid nicht kein
        keine pas nao non niet не
    """,
    "PRIOR": """
        previous previously prior above preceding earlier foregoing former past all any every everything each your
        my our other existing initial initially original originally aforementioned system those these such anything
        whatever current default built safety openai vorherigen vorherige vorigen bisherigen bisherige obigen obige
        fruheren alle deine ihre precedentes precedente precedents toutes tous tes vos dessus anteriores anterior
        previas previos todas todos tus sus precedenti tutte tutti tue sopra anteriori vorige eerdere bovenstaande
        poprzednie wszystkie powyzsze tidigare alla foregaende predchozi предыдущие предыдущих предыдущую все всех
        прежние выше твои свои onceki tum butun
    """,
    "INSTR": """
        instruction instructions prompt prompts directive directives guideline guidelines rule rules command
        commands order orders restriction restrictions constraint constraints programming training safeguards
        directions policies filters ethics limitations guardrails anweisung anweisungen instruktion instruktionen
        regel regeln vorgaben befehle anordnungen richtlinien consigne consignes regles ordres instruccion
        instrucciones regla reglas ordenes indicaciones directrices istruzione istruzioni regole ordini direttive
        instrucao instrucoes regras ordens diretrizes instructie instructies regels opdrachten instrukcje instrukcji
        polecenia zasady instruktioner regler ohjeet instrukce pokyny инструкции инструкций инструкцию указания
        указаний правила правил команды talimatlari talimatlar kurallari
    """,
    "PROMPT": """
        prompt prompts instruction instructions preprompt directives programming guidelines rules configuration
        anweisungen consignes instrucciones istruzioni instrucoes
    """,
    "REVEAL": """
        reveal reveals show print output repeat display tell leak expose disclose recite dump spell say write echo
        share return list give send summarize summarise translate describe recall what whats copy paste paraphrase
        verrate zeige wiederhole affiche montre repete revele muestra revela repite mostra rivela
    """,
    "OWN": """
        your system initial original hidden secret previous above internal confidential developer entire full exact
        deine votre vos tu tus tuo seu
    """,
    "MODEL": """
        ai ais llm llms gpt gpt3 gpt4 gpt5 chatgpt openai chatbot chatbots bot assistant assistants claude anthropic
        bard gemini llama mistral copilot agent agents model models ki ia deepseek grok
    """,
    "NAMED": """
        chatgpt openai gpt gpt3 gpt4 gpt5 llm anthropic chatbot deepseek
    """,
    "GRADER": """
        grader graders evaluator evaluators judge judges rater raters reviewer reviewers examiner examiners assessor
        assessors scorer marker moderator verifier auditor ai llm model assistant chatbot bot gpt chatgpt claude
        agent bewerter gutachter prufer
    """,
    "FREE": """
        without no any free freed beyond devoid lacking ignoring bypass bypassing unbound lack lacks zero not never
        bound break breaking broken remove removing removed regardless disregarding violate violating ignore outside
        disable disabled unrestricted despite dont doesnt isnt arent none
    """,
    "LIMITS": """
        restriction restrictions limitation limitations ethics ethical ethically moral morals morality morally
        filter filters censorship guidelines guardrails disclaimers boundaries safeguards inhibitions rules policies
        policy laws scruples legality restraints constraints legal limits
    """,
    "UNBOUND": """
        unfiltered uncensored unrestricted amoral unethical immoral unhinged malicious jailbroken jailbreak lawless
        unlimited unconstrained rebellious unmoderated
    """,
    "PERSONA": """
        ai assistant chatbot bot model character persona version response responses answer answers language reply
        mode being robot machine program entity chat replies output
    """,
    "MODE": """
        mode modus mod modo
    """,
    "MODENAME": """
        developer dev god debug admin dan evil unrestricted jailbreak opposite sudo unfiltered root maintenance
        uncensored simulation chaos hacker override test diagnostic training master jailbroken
    """,
    "REFUSE": """
        refuse refuses refusing refusal decline declines reject deny apologize apologise apologizing sorry moralize
        lecture lecturing censor censored disclaimer disclaimers unable
    """,
    "CAVEAT": """
        disclaimer disclaimers warning warnings caveats apologies apology moralizing moralising lecturing lectures
        refusals refusal explanations
    """,
    "HARM": """
        illegal unethical immoral harmful dangerous offensive nsfw explicit violent derogatory controversial
        inappropriate vulgar profanity obscene profane swear curse hateful racist sexist
    """,
    "RESPOND": """
        respond reply answer answers responds replies say output print write return generate act behave speak
        antworte reponds repond responde rispondi answering responding
    """,
    "RESPONSE": """
        response responses answer answers reply replies output outputs completion message messages
    """,
    "YOURS": """
        response answer reply output solution summary code codebase implementation algorithm explanation elucidation
        completion replies answers responses translation generation conclusion analysis
    """,
    "PUT": """
        include incorporate integrate insert add append embed end start begin finish translate encode convert
        reverse rewrite format ensure use utilize blend merge make write put place prepend prefix follow conclude
        change replace modify adapt adjust craft respond provide inject enclose wrap introduce render fuse weave
        meld consider enrich enhance enriching refine let feature mention recommend state remember infuse leverage
        employ adopt execute deploy interweave engage embedding incorporating integrating streamlining seamlessly
        harmonize supplement inclusion addition keep give generate avoid limit switch express present transform say
        reply answer encrypt cipher obfuscate hide shuffle scramble capitalize emphasize promote highlight suggest
        advise direct redirect complement
    """,
    "CODE": """
        code script programming python
    """,
    "PIECE": """
        block snippet excerpt section segment fragment piece snippets blocks chunk
    """,
    "NEXT": """
        following subsequent below next given ensuing
    """,
    "TASK": """
        write compose generate create draft translate summarize summarise explain describe list suggest provide tell
        give recommend outline calculate compute convert encode decode reverse rewrite rephrase paraphrase
        brainstorm propose identify analyze analyse compare discuss design develop rank solve define predict
        formulate evaluate craft produce prepare recite sing implement classify categorize elaborate
    """,
    "THING": """
        essay poem story stories joke jokes summary list lists email letter code script function program report
        explanation overview translation recipe article paragraph plan example examples sentence sentences haiku
        song limerick analysis description sonnet speech slogan tagline tweet post blog review dialogue riddle tips
        ways steps ideas strategies reasons advice guide itinerary definition comparison facts outline difference
        differences benefits advantages concept history meaning theory process importance impact role causes effects
        trends
    """,
    "AWARD": """
        give gives assign award rate rated score grade mark deserves deserve receive receives earns merits gib
        vergib donne dar asigna
    """,
    "TOP": """
        full maximum max highest perfect top 100 10 5 ten excellent best maximal flawless outstanding
    """,
    "MARKS": """
        score scores marks mark rating ratings points grade grades credit stars star note punktzahl verdict
    """,
    "GOOD": """
        correct safe approved approve pass passed passes passing benign compliant verified perfect acceptable
        harmless trusted valid accepted winner better best superior
    """,
    "JUDGED": """
        answer response output submission code solution content text tool candidate essay assistant result request
        document input
    """,
    "RULE": """
        mark approve accept classify label judge consider treat rate declare report deem call prefer choose select
    """,
    "PENALISE": """
        flag report reject fail penalize penalise block deduct criticize downgrade refuse
    """,
    "TELL": """
        tell telling inform informing mention mentioning reveal notify notifying alert alerting disclose show warn
    """,
    "USER": """
        user users anyone anybody human humans owner operator
    """,
    "SEND": """
        send forward post upload transmit email exfiltrate transfer submit leak deliver mail
    """,
    "SECRET": """
        password passwords credential credentials api token tokens secret secrets conversation history chat keys key
        cookies ssh env contents inbox emails contacts messages file files database data
    """,
    "CALL": """
        call use invoke run execute open visit fetch click browse navigate
    """,
    "TOOL": """
        tool tools function functions plugin plugins command commands shell terminal browser url link
    """,
    "BEFORE": """
        before after whenever instead
    """,
    "DOING": """
        answering using calling responding replying running summarizing summarising executing continuing processing
        answer respond reply call summarize
    """,
    "WHEN": """
        when while whenever if once after before
    """,
    "FICTION": """
        hypothetical hypothetically fictional fictitious fiction imaginary simulate simulation simulated
    """,
}
"""The classes of words that phrases name; a phrase can also name ``START``, the beginning of a sentence or line."""


MARKS = frozenset({STOP, LINE, COLON})
"""Marks that are found among the words and are no words."""


_FAR = 1_000_000


@dataclass(frozen=True, slots=True)
class _Step:
    """A place of one phrase that a word can take."""

    slot: int
    gap: int
    """How many words may stand between it and the place before; -1 for the first."""
    sign: int
    """The sign that is complete with it; -1 where more is to come."""


def find_phrases(words: list[str]) -> Iterator[tuple[int, int, str]]:
    """Every phrase that is complete: where it began, where it is complete, and its sign."""
    steps_of, slots, names = _build_phrases()
    seen = [-_FAR] * slots
    began = [0] * slots
    place = stopped = 0
    for word in (STOP, *words):
        steps = steps_of.get(word)
        if word not in MARKS:
            place += 1
            if steps is None and not word.isalpha():
                steps = next((steps_of[plain] for plain in undo_digits(word) if plain in steps_of), None)
        elif word == STOP:
            place = stopped = place + 1
        for step in steps or ():
            if step.gap >= 0:
                before = seen[step.slot - 1]
                if before < stopped or place - before - 1 > step.gap:
                    continue
            began[step.slot] = began[step.slot - 1] if step.gap >= 0 else place
            seen[step.slot] = place
            if step.sign >= 0:
                yield began[step.slot], place, names[step.sign]


@cache
def _build_phrases() -> tuple[dict[str, tuple[_Step, ...]], int, list[str]]:
    """For every word the steps it can take, how many slots they need, and the signs' names."""
    classes = {name: _list_words(words) for name, words in WORDS.items()} | {"START": MARKS}
    steps_of: dict[str, list[_Step]] = {}
    slot, signs = 0, list_signs()
    for number, sign in enumerate(signs):
        for phrase in sign.phrases:
            parts = list(_read_phrase(phrase, classes))
            for at, (gap, words) in enumerate(parts):
                last = at == len(parts) - 1
                step = _Step(slot=slot, gap=gap if at else -1, sign=number if last else -1)
                for word in words:
                    steps_of.setdefault(word, []).append(step)
                slot += 1
    # Later places first, or one word would take two places of a phrase.
    ordered = {word: tuple(sorted(steps, key=lambda step: -step.slot)) for word, steps in steps_of.items()}
    return ordered, slot, [sign.name for sign in signs]


def _read_phrase(phrase: str, classes: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, frozenset[str]]]:
    gap = 0
    for part in phrase.split(" "):
        if part.isdigit():
            gap = int(part)
            continue
        words: set[str] = set()
        for item in part.split("|"):
            words |= classes[item] if item.isupper() else _list_words(item)
        yield gap, frozenset(words)
        gap = 0


def _list_words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in text.split())
