"""Where the words that give a failure away stand in a text.

There are hundreds of such words, and a text may have ten megabytes. Many share a stem
("undefined symbol", "undefined reference"): each stem is searched for once, and the words are
compared only where their stem stands.
"""

from __future__ import annotations

from functools import lru_cache

#: How often one word is followed up.
PER_WORD = 1_000
#: A stem that stands once in so many characters or more often saves nothing: searching for each
#: of its words costs a nanosecond a character, looking at one place of the stem a few hundred.
PER_STEM = 400
#: Parts of many words; each at least five characters long, since short ones stand everywhere.
STEMS = (
    "version", "nvidia", "error", "torch", "build", "segment", "cannot ", "python", "valid",
    "compil", "flash", "argument", "failed", "kernel", "file ", "elfclass", "support", "found",
    "defined ", "signal ", "require", "format", "glibc", "exit code", "library", "load", "triton",
    "lnk", "xformers", "sglang", "driver", "exllama", "registered", "mamba", "conv1d", "module ",
    "cuda_", "winerror", "missing", "sparse", "cublas", "cudnn", "symbol", "import", "device",
    "is not", "member", "memory", "microsoft", "capabilit", "unknown", "could not", " fatal",
    "metadata", "conflict", "resol", "killed", "unable to", "attribute", "incompatible", "wheel",
    "nonetype", "install", "nvtools", "matching", "transfor", "binary", "availabl", "instruct",
    "ninja", "cxx11", "reloca",
)  # fmt: skip


#: From this length on (characters) it pays to look first whether a log repeats its lines.
LONG = 100_000
_NO_DIGITS = str.maketrans("", "", "0123456789")


def shapes(text: str) -> str | None:
    """The different lines of a text without their digits; None where they are not far fewer.

    The lines of a log differ by times, ranks and steps. A word that does not stand in these
    lines, its own digits left out too, does not stand in the text either.
    """
    if len(text) < LONG or not text.isascii():
        return None  # taking digits out of other scripts takes as long as it saves
    found = "\n".join(dict.fromkeys(text.translate(_NO_DIGITS).split("\n")))
    return found if len(found) * 4 < len(text) else None


class Places:
    """Where a small-letter word stands in a text, each looked up once."""

    __slots__ = ("_found", "_letters", "_shapes", "_stems", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, list[int]] = {}
        self._stems: dict[str, list[int] | None] = {}
        #: A word with another letter stands nowhere: foreign words, and most where a text repeats
        #: a few characters.
        self._letters = frozenset(text)
        self._shapes = shapes(text)

    def __call__(self, word: str) -> list[int]:
        """The first places of a word, in their order."""
        found = self._found.get(word)
        if found is None:
            found = self._look_up(word)
            self._found[word] = found
        return found

    def _look_up(self, word: str) -> list[int]:
        if not self._letters.issuperset(word):
            return []
        stem = stem_of(word)
        if stem:
            at = word.index(stem)
            stems = self._stem(stem)
            if stems is not None:
                text = self._text
                return [
                    place - at
                    for place in stems
                    if place >= at and text.startswith(word, place - at)
                ][:PER_WORD]
        return self._search(word, PER_WORD)

    def _stem(self, stem: str) -> list[int] | None:
        if stem not in self._stems:
            most = 200 + len(self._text) // PER_STEM
            found = self._search(stem, most)
            self._stems[stem] = found if len(found) < most else None
        return self._stems[stem]

    def _search(self, word: str, most: int) -> list[int]:
        found: list[int] = []
        if (
            self._shapes is not None
            and "\n" not in word
            and word.translate(_NO_DIGITS) not in self._shapes
        ):
            return found
        find = self._text.find
        at = find(word)
        while at >= 0 and len(found) < most:
            found.append(at)
            at = find(word, at + len(word))
        return found


@lru_cache(maxsize=4_096)
def stem_of(word: str) -> str:
    """The longest stem in a word, "" when it has none."""
    return max((stem for stem in STEMS if stem in word), key=len, default="")
