"""What the injection screen looks for with its punctuation: RE2 over the folded text, by sign."""

from __future__ import annotations

from collections.abc import Mapping

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
