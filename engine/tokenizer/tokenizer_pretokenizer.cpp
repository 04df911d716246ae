#include "engine/tokenizer/tokenizer_pretokenizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/utf8.h"
#include "engine/tokenizer/metaspace_options.h"
#include "engine/tokenizer/tokenizer_byte_alphabet.h"
#include "engine/tokenizer/tokenizer_regex.h"

namespace kvscope::checkpoint {
namespace {

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Arranges matches and gaps as SplitDelimiterBehavior in `tokenizers` does.
std::vector<Span> arrange(const std::vector<Span>& spans, Behavior behavior) {
    std::vector<Span> out;
    out.reserve(spans.size());
    bool previous = false;
    switch (behavior) {
        case Behavior::isolated:
            return spans;
        case Behavior::removed:
            std::copy_if(spans.begin(), spans.end(), std::back_inserter(out),
                         [](const Span& span) { return !span.matched; });
            return out;
        case Behavior::contiguous:
            for (const Span& span : spans) {
                if (span.matched == previous && !out.empty()) {
                    out.back().end = span.end;
                } else {
                    out.push_back(span);
                }
                previous = span.matched;
            }
            return out;
        case Behavior::merged_with_previous:
            for (const Span& span : spans) {
                if (span.matched && !previous && !out.empty()) {
                    out.back().end = span.end;
                } else {
                    out.push_back(span);
                }
                previous = span.matched;
            }
            return out;
        case Behavior::merged_with_next:
            for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
                if (span->matched && !previous && !out.empty()) {
                    out.back().begin = span->begin;
                } else {
                    out.push_back(*span);
                }
                previous = span->matched;
            }
            std::reverse(out.begin(), out.end());
            return out;
    }
    return out;
}

void append_pieces(const Piece& piece, const std::vector<Span>& spans, std::vector<Piece>& out) {
    for (const Span& span : spans) {
        if (span.begin == span.end) continue;
        out.push_back({piece.part(span.begin, span.end), piece.at_start && span.begin == 0, -1});
    }
}

/// Cuts at characters that satisfy a predicate. Each such character is a separate match.
template <typename Predicate>
std::vector<Span> cut_at_characters(std::string_view text, Predicate is_match) {
    std::vector<Span> spans;
    size_t covered = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Character step = decode_utf8_character(text, at);
        const size_t end = at + step.bytes;
        if (is_match(step.code)) {
            if (covered < at) spans.push_back({covered, at, false});
            spans.push_back({at, end, true});
            covered = end;
        }
        at = end;
    }
    if (covered < text.size()) spans.push_back({covered, text.size(), false});
    return spans;
}

/// Number characters of Unicode 16 and 17 that `tokenizers` knows and utf8proc does not.
constexpr std::pair<char32_t, char32_t> newer_numbers[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x11DE0, 0x11DE9},
    {0x16D70, 0x16D79}, {0x16FF4, 0x16FF6}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA},
};

bool is_numeric(char32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO ||
           std::any_of(std::begin(newer_numbers), std::end(newer_numbers),
                       [c](const auto& range) { return c >= range.first && c <= range.second; });
}

PreTokenizer sequence(std::vector<PreTokenizer> steps) {
    return [steps = std::move(steps)](const Piece& piece, TextArena& arena, std::vector<Piece>& out) {
        std::vector<Piece> now{piece}, next;
        for (const auto& step : steps) {
            next.clear();
            for (const Piece& part : now) {
                arena.limits().step();
                step(part, arena, next);
            }
            now.swap(next);
        }
        out.insert(out.end(), now.begin(), now.end());
    };
}

PreTokenizer split(const Regex& pattern, Behavior behavior, bool invert) {
    return [=](const Piece& piece, TextArena& arena, std::vector<Piece>& out) {
        std::vector<Span> spans = pattern.cut(piece.text, arena.limits());
        if (invert) {
            for (Span& span : spans) span.matched = !span.matched;
        }
        append_pieces(piece, arrange(spans, behavior), out);
    };
}

PreTokenizer digits(bool individual) {
    const Behavior behavior = individual ? Behavior::isolated : Behavior::contiguous;
    return [behavior](const Piece& piece, TextArena&, std::vector<Piece>& out) {
        append_pieces(piece, arrange(cut_at_characters(piece.text, is_numeric), behavior), out);
    };
}

PreTokenizer byte_level(bool add_prefix_space, bool use_regex) {
    static constexpr std::string_view gpt2 =
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    std::optional<Regex> regex;
    if (use_regex) regex = Regex::from_oniguruma(gpt2);
    return [=](const Piece& piece, TextArena& arena, std::vector<Piece>& out) {
        Piece whole = piece;
        if (add_prefix_space && !piece.text.starts_with(' ')) {
            TracedText spaced(piece.ends != nullptr);
            spaced.append(" ", piece.end_of(0));  // belongs to the first character, as in `tokenizers`
            spaced.append(piece);
            static_cast<TracedView&>(whole) = arena.keep(std::move(spaced));
        }
        const size_t first = out.size();
        if (regex) {
            append_pieces(whole, regex->cut(whole.text, arena.limits()), out);
        } else {
            out.push_back(whole);
        }
        TracedText spelt(piece.ends != nullptr);
        spelt.reserve(whole.text.size() + whole.text.size() / 4);
        std::vector<size_t> ends;
        for (size_t i = first; i < out.size(); ++i) {
            for (size_t at = 0; at < out[i].text.size(); ++at)
                spelt.append(ByteAlphabet::instance().spell(out[i].text[at]), out[i].end_of(at));
            ends.push_back(spelt.size());
        }
        const TracedView kept = arena.keep(std::move(spelt));
        size_t begin = 0;
        for (size_t i = first; i < out.size(); ++i) {
            static_cast<TracedView&>(out[i]) = kept.part(begin, ends[i - first]);
            begin = ends[i - first];
        }
    };
}

PreTokenizer metaspace(const MetaspaceOptions& options) {
    return [options](const Piece& piece, TextArena& arena, std::vector<Piece>& out) {
        const bool may_prepend = options.prepend == MetaspaceOptions::Prepend::always ||
                                 (options.prepend == MetaspaceOptions::Prepend::first && piece.at_start);
        TracedText text(piece.ends != nullptr);
        text.reserve(piece.text.size() * 2);
        if (may_prepend && !piece.text.starts_with(' ') && !piece.text.starts_with(options.replacement))
            text.append(options.replacement, piece.end_of(0));
        for (size_t at = 0; at < piece.text.size(); ++at) {
            const std::string_view byte = piece.text.substr(at, 1);
            text.append(byte == " " ? std::string_view(options.replacement) : byte, piece.end_of(at));
        }
        const Piece whole{arena.keep(std::move(text)), piece.at_start, -1};
        if (!options.split) {
            out.push_back(whole);
            return;
        }
        const auto spans = cut_at_characters(whole.text, [&](char32_t c) { return c == options.character; });
        append_pieces(whole, arrange(spans, Behavior::merged_with_next), out);
    };
}

Behavior behavior_of(const JsonNode& node) {
    const std::string& name = node.text();
    if (name == "Removed") return Behavior::removed;
    if (name == "Isolated") return Behavior::isolated;
    if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
    if (name == "MergedWithNext") return Behavior::merged_with_next;
    if (name == "Contiguous") return Behavior::contiguous;
    node.fail(fmt::format("\"{}\" is not Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", name));
}

}  // namespace

PreTokenizer make_pre_tokenizer(const JsonNode& node) {
    const std::string& type = node.at("type").text();
    if (type == "Sequence") return sequence(node.at("pretokenizers").each(make_pre_tokenizer));
    if (type == "Split") {
        return split(regex_of(node.at("pattern")), behavior_of(node.at("behavior")), node.boolean_or("invert", false));
    }
    if (type == "Digits") return digits(node.boolean_or("individual_digits", false));
    if (type == "ByteLevel") {
        return byte_level(node.boolean_or("add_prefix_space", false), node.boolean_or("use_regex", true));
    }
    if (type == "Metaspace") return metaspace(read_metaspace(node));
    node.fail(
        fmt::format("the pre-tokenizer \"{}\" is not supported; supported are Sequence, Split, Digits, ByteLevel, "
                    "Metaspace",
                    type));
}

}  // namespace kvscope::checkpoint
