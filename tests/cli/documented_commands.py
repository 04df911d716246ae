"""Extracts the commands of README.md and docs/, and which of them are marked as not run.

A command is a line of a shell block, or an inline code span in a paragraph that begins with `kvscope COMMAND` and has arguments.
Spans with an ellipsis, or with a word in capitals that stands for a value, are not commands.

`<!-- not run: REASON -->` above a block, or in the paragraph of an inline command, marks a command that the tests do not run.
`<!-- not run: `kvscope view`: REASON -->` marks the commands that begin with these words. Readers do not see the marks.
"""

import dataclasses
import pathlib
import re

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (?:`([^`]+)`: )?([^>]*?) -->", re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
INLINE = re.compile(r"kvscope [a-z-]+ \S")
INCOMPLETE = re.compile(r"…|(?<![\w./-])[A-Z]{2,}(?:\.h5)?(?![\w./=-])")
COMMENT = re.compile(r"^((?:[^\"'#]|\"[^\"]*\"|'[^']*'|(?<!\s)#)*)\s#.*$")  # a # a quoted # does not begin a comment
SHELLS = ("sh", "bash", "console")


@dataclasses.dataclass
class Command:
    page: str
    line: int
    text: str
    not_run: str  # the reason; empty if the command is run
    inline: bool = False


def reason_not_to_run(text, marks):
    for prefix, reason in marks:
        if not prefix or re.match(re.escape(prefix) + r"(?!\w)", text):
            return reason
    return ""


def lines_of_block(block):
    """Returns (line from 0, command), with continued lines joined and without comments."""
    number, joined = 0, ""
    for i, line in enumerate(block.splitlines()):
        if not joined:
            number = i
        line = COMMENT.sub(r"\1", line).strip()
        if line.endswith("\\"):
            joined += line[:-1].strip() + " "
            continue
        if joined or line:
            yield number, joined + line
        joined = ""


def commands_of_blocks(page, text):
    for block in FENCE.finditer(text):
        if block.group(1) not in SHELLS:
            continue
        above = re.search(r"((?:<!--[^>]*-->\s*)*)\Z", text[:block.start()]).group(1)
        marks = NOT_RUN.findall(above)
        first = text[:block.start()].count("\n") + 2
        for number, command in lines_of_block(block.group(2)):
            yield Command(page, first + number, command, reason_not_to_run(command, marks))


def inline_commands(page, text):
    text = FENCE.sub(lambda block: "\n" * block.group(0).count("\n"), text)
    for paragraph in re.finditer(r"(?:^.*\S.*$\n?)+", text, re.MULTILINE):
        marks = NOT_RUN.findall(paragraph.group(0))
        shown = NOT_RUN.sub(lambda mark: re.sub("[^\n]", " ", mark.group(0)), paragraph.group(0))
        for span in SPAN.finditer(shown):
            command = " ".join(span.group(1).split())
            if INLINE.match(command) and not INCOMPLETE.search(command):
                line = text[:paragraph.start() + span.start()].count("\n") + 1
                yield Command(page, line, command, reason_not_to_run(command, marks), True)


def commands_of_page(path: pathlib.Path):
    """Returns the commands in the order of the page."""
    text = path.read_text(encoding="utf-8")
    found = [*commands_of_blocks(path.name, text), *inline_commands(path.name, text)]
    return sorted(found, key=lambda command: command.line)
