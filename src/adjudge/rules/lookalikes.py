"""Letters of other scripts that look like one ASCII letter; written by ``scripts/lookalikes``, not by hand.

The source is confusables.txt of UTS #39 (Unicode licence), of which these are the single letters of six scripts that
are used to write Latin words with. Greek letters that mathematics uses are among them.
"""

_CODES = {
    "armenian": ("054D 054F 0555 0561 0563 0566 0570 0578 057C 057D 0581 0584 0585 "),
    "cherokee": (
        "13A0 13A1 13A2 13A5 13A9 13AA 13AB 13AC 13B3 13B7 13BB 13BD 13C0 13C2 13C3 13CF 13D2 13D4 13D5 13D9 "
        "13DA 13DE 13DF 13E2 13E6 13E7 13F3 13F4 AB75 AB81 AB83 AB93 ABA9 ABAA ABAF "
    ),
    "coptic": ("2C85 2C8E 2C92 2C94 2C98 2C9A 2C9E 2C9F 2CA2 2CA3 2CA4 2CA5 2CA6 2CA8 2CAC 2CD0 "),
    "cyrillic": (
        "0405 0406 0408 0410 0412 0415 041A 041C 041D 041E 0420 0421 0422 0423 0425 042C 0430 0433 0435 043E "
        "0440 0441 0443 0445 0455 0456 0458 0461 0474 0475 04AE 04AF 04BB 04BD 04C0 04CF 0501 050C 051B 051C "
        "051D A647 "
    ),
    "greek": (
        "037A 037F 0391 0392 0395 0396 0397 0399 039A 039C 039D 039F 03A1 03A4 03A5 03A7 03B1 03B3 03B9 03BD "
        "03BF 03C1 03C3 03C5 03D2 03DC 03F1 03F2 03F3 03F9 03FA 1D26 1FBE "
    ),
    "lisu": (
        "A4D0 A4D1 A4D2 A4D3 A4D4 A4D6 A4D7 A4D9 A4DA A4DC A4DD A4DF A4E0 A4E1 A4E2 A4E3 A4E6 A4E7 A4EA A4EB "
        "A4EC A4EE A4F0 A4F2 A4F3 A4F4 "
    ),
}


LOOKALIKES = {script: "".join(chr(int(code, 16)) for code in codes.split()) for script, codes in _CODES.items()}
"""The letters of each script, as one text."""
