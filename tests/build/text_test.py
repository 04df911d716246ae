"""The text of the project follows docs/style.md: lengths of pages and lines, and phrases that the guide bans."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
GENERATED = {"docs/policies.md"}
README_WORDS = 900
PAGE_WORDS = 2500
ALL_PAGES_WORDS = 27600
STYLE_WORDS = 700
LINE = 130  # characters, of a page's paragraphs
BANNED = {  # pattern: what to write
    r"\b(is|are|was|were|be|been) told\b": "reports, prints, says",
    r"\bsomebody\b|\bsomeone\b": "a user, a person, a caller",
    r"\bstands? (there|in it|behind)\b": "is listed, contains, follows",
    r"\bbehind (the|a|each|every|its|their|all) (prompt|question|answer|last|first|token|tokens|entries|entry|row|rows)\b":
        "after",
    r"\bwhat (it|they|there) (is|are)\b": "name the thing",
    r"\bof what\b": "name the thing",
    r"\bpart(s)? first from\b": "differs first from",
    r"\bis (there|not there)\b(?! (a|an|no|any|some|enough|room)\b)": "exists, is missing, is present",
    r"\bcomes? along\b": "is included, comes with",
    r"\bgoes on\b|\bgo on\b": "continues",
    r"\bbeside (the|one|each)( other| another)? ?(frames|drawing)\b": "in the background",
}
COMMENT_OR_STRING = re.compile(
    r"""//[/!]?<?(?P<comment>[^\n]*)|R"([^(\s]*)\(.*?\)\2"|"(?P<string>(?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)+'""", re.DOTALL)


def tracked(*patterns):
    names = subprocess.run(["git", "-C", str(SOURCE), "ls-files", *patterns], capture_output=True, text=True, check=True)
    return [name for name in names.stdout.splitlines() if (SOURCE / name).is_file()]


def pages():
    return [name for name in tracked("README.md", "docs/*.md") if name not in GENERATED]


def without_code(text):
    """The same lines; those of code blocks and comments are empty."""
    blank = lambda match: "\n" * match.group(0).count("\n")
    return re.sub(r"```.*?```|<!--.*?-->", blank, text, flags=re.DOTALL)


def texts(name):
    """(line, text) of whatever a reader reads in a file."""
    content = (SOURCE / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        prose = re.sub(r"`[^`\n]*`", "``", without_code(content))
        return list(enumerate(prose.splitlines(), 1))
    if name.endswith((".py", ".cmake", ".txt")):
        return [(i, line) for i, line in enumerate(content.splitlines(), 1) if '"' in line or "#" in line]
    found = []
    for match in COMMENT_OR_STRING.finditer(content):
        text = match.group("comment") or match.group("string") or ""
        found.append((content.count("\n", 0, match.start()) + 1, text))
    return found


class Text(unittest.TestCase):
    def test_pages_are_short(self):
        # The bars of tables are not words.
        words = {name: len(re.findall(r"\S*\w\S*", (SOURCE / name).read_text(encoding="utf-8"))) for name in pages()}
        limits = {"README.md": README_WORDS, "docs/style.md": STYLE_WORDS}
        for name, count in words.items():
            with self.subTest(name):
                self.assertLessEqual(count, limits.get(name, PAGE_WORDS), f"{name}: words")
        self.assertLessEqual(sum(words.values()), ALL_PAGES_WORDS + README_WORDS,
                             "words of README.md and docs/ without policies.md: shorten a page")

    def test_lines_are_short(self):
        for name in pages():
            for number, line in enumerate(without_code((SOURCE / name).read_text(encoding="utf-8")).splitlines(), 1):
                is_one_link = re.fullmatch(r"[-*\s]*!?\[.*\]\(\S+\)[.,]?", line)
                if not line.startswith("|") and not is_one_link:
                    self.assertLessEqual(len(line), LINE, f"{name}:{number}: characters in a line")

    def test_no_banned_phrase(self):
        faults = []
        for name in [*pages(), *tracked("*.h", "*.cpp", "*.cu", "*.py", "*.cmake", "*CMakeLists.txt")]:
            if name.startswith(("tests/", "scripts/golden/")):
                continue
            for number, text in texts(name):
                for pattern, instead in BANNED.items():
                    found = re.search(pattern, text)
                    if found:
                        faults.append(f"{name}:{number}: “{found.group(0)}”; write: {instead}")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_banned_phrases_are_found(self):
        for phrase in ("The user is told that", "behind the prompt", "Of what the head keeps: of what", "the run goes on"):
            self.assertTrue(any(re.search(pattern, phrase) for pattern in BANNED), phrase)

    def test_declarations_have_one_dialect(self):
        """`///` above declarations, never `/** */`, `//!` or `/*!`."""
        for name in tracked("*.h", "*.cpp", "*.cu"):
            content = (SOURCE / name).read_text(encoding="utf-8")
            self.assertIsNone(re.search(r"^\s*(/\*\*|/\*!|//!)", content, re.MULTILINE), name)


if __name__ == "__main__":
    unittest.main()
