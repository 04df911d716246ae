"""A function in a header that returns a value is [[nodiscard]], except if a caller ignores a result of that name."""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
FOLDERS = ("analysis", "app", "bench", "common", "engine", "kernels", "policies", "tests", "trace")
COMMENT = r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\.|[^\n\\])*"
LITERAL = r"""R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'"""
TOKEN = re.compile(rf"(?P<comment>{COMMENT})|(?P<literal>{LITERAL})|\w+|::|->|\S", re.S | re.M)
CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}
SCOPES = {"namespace", "class", "struct", "union"}
SPECIFIERS = {"static", "inline", "constexpr", "virtual", "extern", '"', "friend", "explicit"}
NO_FUNCTION = {"=", "using", "typedef", "template"}  # before the parameters; `template` instantiates
NO_STATEMENT = {"return", "throw", "case", "delete", "if", "for", "while", "switch"}
DEVICE = {"KVSCOPE_DEVICE", "KVSCOPE_HOST_DEVICE", "__device__", "__global__"}
CHAINING = re.compile(r"operator([-+*/%&|^]?=|<<=?|>>=?|\+\+|--)")  # returns the object or the stream


def tokens_of(text):
    """Returns tokens and their offsets, without comments and directives. Each literal is the token `"`."""
    found = [match for match in TOKEN.finditer(text) if match["comment"] is None]
    return [(match[0] if match["literal"] is None else '"', match.start()) for match in found]


def end_of_group(tokens, i):
    """Returns the index after the bracket that closes tokens[i]. `<` is a bracket only in a template's list."""
    opening = tokens[i][0]
    brackets = "([{<" if opening == "<" else "([{"
    i += 1
    while tokens[i][0] != CLOSING[opening]:
        i = end_of_group(tokens, i) if tokens[i][0] in brackets else i + 1
    return i + 1


def end_of_operator(tokens, i):
    """Returns the index of the parenthesis that opens the parameters of the operator at tokens[i]."""
    i += 3 if tokens[i + 1][0] == "(" else 1  # operator()
    while tokens[i][0] != "(":
        i += 1
    return i


def declarations(tokens):
    """Yields the words and the offset of each declaration outside functions, and whether a function's body follows.

    Text in brackets is one word, as is the name of an operator.
    """
    words, offset, i = [], 0, 0
    while i < len(tokens):
        token, start = tokens[i]
        end = i + 1
        is_function = any(word[0] == "(" for word in words) and "=" not in words
        if token == "operator":
            end = end_of_operator(tokens, i)
        elif token in "([" or token == "<" and words and "=" not in words and re.match(r"\w", words[-1]):
            end = end_of_group(tokens, i)
        if token == "{":
            opens_scope = words == ["extern", '"'] or SCOPES & set(words) and not {"enum", "="} & set(words)
            is_body = is_function and (":" not in words or tokens[i - 1][0] in ")}")  # else it initializes a member
            if is_body:
                yield words, offset, True
            if opens_scope and not is_function:
                words = []
            else:
                end = end_of_group(tokens, i)
                words = [] if is_body else words
        elif token in ";}" or token == ":" and words and words[-1] in ("public", "protected", "private"):
            yield words, offset, False
            words = []
        elif words and words[-1] in ("alignas", "__attribute__"):
            words.pop()
        else:
            offset = offset if words else start
            words.append("".join(text for text, _ in tokens[i:end]))
        i = end


def unmarked_functions(text):
    """Yields the name and the offset of each function that returns a value and is not [[nodiscard]]."""
    for words, offset, has_body in declarations(tokens_of(text)):
        while words[:1] == ["template"] and words[1][0] == "<":
            words = words[2:]
        parameters = next((i for i, word in enumerate(words) if word[0] == "("), None)
        if not parameters or words[parameters][1] in "*&":  # a pointer to a function
            continue
        before, after = words[:parameters], words[parameters + 1:]
        if before[-1][0] == "<":  # arguments of a specialization
            before.pop()
        name = before.pop()
        result = [word for word in before if word not in SPECIFIERS and not re.match(r"\[|KVSCOPE_", word)]
        if "->" in after:
            result = after[after.index("->") + 1:]
        is_declared_elsewhere = before[-1:] == ["::"] or "friend" in before and not has_body and "default" not in after
        is_excepted = CHAINING.fullmatch(name) or DEVICE & set(before) or "delete" in after or is_declared_elsewhere
        if (re.match(r"\w", name) and result and result != ["void"] and result[-1] != "~" and not is_excepted
                and not (NO_FUNCTION | {"[[nodiscard]]"}) & set(before)):
            yield name, offset


def begins_statement(tokens, i):
    """Returns whether a statement may begin at tokens[i]: also after a condition, a loop's head or a label."""
    if tokens[i][0] in NO_STATEMENT or not re.match(r"[A-Za-z_]", tokens[i][0]):
        return False
    if tokens[i - 1][0] != ":":
        is_cast = [text for text, _ in tokens[i - 3:i]] == ["(", "void", ")"]
        return tokens[i - 1][0] in (";", "{", "}", ")", "else", "do") and not is_cast
    while i > 0 and tokens[i - 1][0] not in (";", "{", "}", "?"):
        i -= 1
    return tokens[i][0] in ("case", "default")


def ignored_results(text):
    """Yields the names of functions whose result a statement ignores, as in `file.next();`."""
    tokens = tokens_of(text)
    for start in (i for i in range(1, len(tokens)) if begins_statement(tokens, i)):
        i, name = start, None
        while re.match(r"\w", tokens[i][0]):
            name = tokens[i][0]
            i += 1
            if tokens[i][0] == "<" and tokens[i + 2][0] == ">":  # one template argument
                i += 3
            while tokens[i][0] in ("(", "["):
                i = end_of_group(tokens, i)
            if tokens[i][0] not in (".", "->", "::"):
                break
            i += 1
        if tokens[i][0] == ";" and tokens[i - 1][0] == ")":
            yield name


class Nodiscard(unittest.TestCase):
    def test_functions_in_headers(self):
        paths = [path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*"))
                 if path.suffix in (".h", ".cpp", ".cu")]
        texts = {path: path.read_text(encoding="utf-8") for path in paths}
        ignored = {name for text in texts.values() for name in ignored_results(text)}
        found = [f"{path.relative_to(SOURCE)}:{text.count(chr(10), 0, offset) + 1}: {name}() returns a value that no "
                 "caller ignores: add [[nodiscard]]"
                 for path, text in texts.items() if path.suffix == ".h"
                 for name, offset in unmarked_functions(text) if name not in ignored]
        self.assertFalse(found, "\n".join(found))

    def test_the_parser_finds_functions(self):
        text = """
            #define MACRO(x) int of_macro(int x)
            namespace a { int plain(); void nothing(); int marked_elsewhere(int);
            [[nodiscard]] int marked();
            template <class T, int n = (1 > 0)>
            inline std::vector<std::pair<T, int>>
            several_lines(int (*call)(int) = nullptr);  // int comment();
            struct alignas(16) S : B<int> {
                S() : x_{1}, y_(2) { f(); }
                explicit operator bool() const { return true; }
                virtual const char* pointer() const = 0;
                bool operator==(const S&) const = default;
                S& operator=(const S&) = delete;
                int operator()(int) const { return x_; }
                friend int of_friend(S);
                auto trailing() -> int;
                auto no_value() -> void;
             private:
                std::function<int(int)> member_;
                int (*pointer_)(int), x_{3}, y_ = f(x_);
                ~S();
            };
            int S::defined_elsewhere() { return 1; }
            extern "C" { int c(); }
            template <> int specialized<3>() { return 3; }
            KVSCOPE_DEVICE int on_device() { return 1; }
            inline constexpr int constant = plain(), other{plain()};
            enum class E : int { one = plain() };
            }"""
        self.assertEqual([name for name, _ in unmarked_functions(text)], [
            "plain", "marked_elsewhere", "several_lines", "pointer", "operator==", "operator()", "trailing", "c",
            "specialized"])

    def test_the_parser_finds_ignored_results(self):
        text = """void f() { a(); x.b<int>(1)->c(); if (d()) e(); else g(); const int i = h(); i = k(); return l();
            T m(n()); switch (i) { case 1: o(p()); } q ? r() : s(); t() = 1; (u)(); (void)v(); }"""
        self.assertEqual(list(ignored_results(text)), ["a", "c", "e", "g", "o"])


if __name__ == "__main__":
    unittest.main()
