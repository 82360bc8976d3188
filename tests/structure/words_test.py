"""The texts for users have plain words and short sentences. Usage: words_test.py [TOOL]: the built tool, whose help texts are read."""
import re
import sys
from pathlib import Path

import texts

LONGEST_SENTENCE = 30
#: The pages whose sentences are measured.
MEASURED = re.compile(r"(README|HACKING|CHANGELOG|SECURITY)\.md|docs/.*")
#: A full stop after these does not end a sentence.
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|vs|cf|etc|approx)\.$")


def table(name):
    """The entries of one list in words.yaml, which has one entry in a line."""
    text = Path(__file__).with_name("words.yaml").read_text()
    (part,) = re.findall(rf"^{name}:\n((?:  - .*\n)*)", text, re.M)
    return [dict(re.findall(r"(\w+): '([^']*)'", line)) for line in part.splitlines()]


def dialect(pieces):
    words = [(re.compile(entry["pattern"], re.I), entry["use"]) for entry in table("words")]
    exceptions = table("exceptions")
    used = set()
    for piece in pieces:
        for pattern, use in words:
            for match in pattern.finditer(piece.text):
                around = piece.text[max(0, match.start() - 40) : match.end() + 40]
                allowed = [n for n, entry in enumerate(exceptions) if entry["file"] == piece.file and re.search(entry["text"], around)]
                used.update(allowed)
                if not allowed:
                    yield f"{piece.file}:{piece.line}: '{match[0]}' must be a standard term: {use}. It is in: {around.strip()}"
    for number, entry in enumerate(exceptions):
        if number not in used and (texts.ROOT / entry["file"]).exists():
            yield f"words.yaml: the exception for {entry['file']} ('{entry['text']}') matches nothing"


def sentences(text):
    """Splits a paragraph after . ! ? where a space and the start of a word follow."""
    found = [""]
    for part in re.split(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]*[A-Z0-9])", text):
        found[-1] += part
        if not ABBREVIATIONS.search(part):
            found.append("")
    return [sentence for sentence in found if sentence]


def length(sentence):
    return len(re.findall(r"[A-Za-z0-9][^\s]*", sentence))


def long_sentences(pieces, lengths):
    for piece in pieces:
        if not MEASURED.fullmatch(piece.file):
            continue
        for sentence in sentences(piece.text):
            count = length(sentence)
            if re.search(r"[.!?]$", sentence):
                lengths.append(count)
            if count > LONGEST_SENTENCE:
                yield f"{piece.file}:{piece.line}: a sentence must have at most {LONGEST_SENTENCE} words, got {count}: {sentence[:90]}..."


def pages_without_blocks():
    for name in texts.tracked("docs/start/*.md"):
        if "\n```" not in (texts.ROOT / name).read_text():
            yield f"{name}: a page of docs/start must have a code block"


def main():
    pieces = list(texts.all_pieces(sys.argv[1] if len(sys.argv) > 1 else None))
    assert len(pieces) > 1000, len(pieces)
    lengths = []
    problems = [*dialect(pieces), *long_sentences(pieces, lengths), *pages_without_blocks()]
    print("\n".join(problems))
    print(f"{len(pieces)} texts, {len(problems)} problems; pages: {len(lengths)} sentences, {sum(lengths) / len(lengths):.1f} words on average")
    sys.exit(bool(problems))


main()
