#include "analysis/runs/answer_byte_ranges.h"

#include <algorithm>

namespace kvscope::analysis {
namespace {

constexpr size_t farthest_piece = 16;  // largest number of bytes that are searched per unknown token

bool is_white(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// Returns the byte offset of each word, including its preceding white space.
std::vector<size_t> blank_starts(std::string_view text) {
    std::vector<size_t> starts{0};
    for (size_t i = 1; i < text.size(); ++i) {
        if (is_white(text[i]) && !is_white(text[i - 1])) starts.push_back(i);
    }
    return starts;
}

void divide(std::string_view text, size_t begin, size_t end, size_t n, std::vector<StepPlace>& places) {
    const auto border = [&](size_t i) {
        size_t byte = begin + (end - begin) * i / n;
        while (byte < end && (static_cast<unsigned char>(text[byte]) & 0xc0) == 0x80) ++byte;
        return byte;
    };
    for (size_t i = 0; i < n; ++i) places.push_back({border(i), border(i + 1)});
}

/// Divides bytes [begin, end) among n unknown tokens at word boundaries, or evenly if there are more words than tokens.
std::vector<StepPlace> share_out(std::string_view text, size_t begin, size_t end, size_t n) {
    std::vector<StepPlace> places;
    std::vector<size_t> starts = blank_starts(text.substr(begin, end - begin));
    if (starts.size() > n || begin == end) {
        divide(text, begin, end, n, places);
        return places;
    }
    starts.push_back(end - begin);
    std::vector<size_t> tokens(starts.size() - 1, 1);
    for (size_t left = n - tokens.size(); left > 0; --left) {
        size_t longest = 0;
        const auto bytes_each = [&](size_t i) {
            return static_cast<double>(starts[i + 1] - starts[i]) / static_cast<double>(tokens[i]);
        };
        for (size_t i = 1; i < tokens.size(); ++i) {
            if (bytes_each(i) > bytes_each(longest)) longest = i;
        }
        ++tokens[longest];
    }
    for (size_t i = 0; i < tokens.size(); ++i)
        divide(text, begin + starts[i], begin + starts[i + 1], tokens[i], places);
    return places;
}

}  // namespace

std::vector<StepPlace> step_byte_ranges(std::string_view text, std::span<const int32_t> ids,
                                        const std::unordered_map<int32_t, std::string>& pieces) {
    std::vector<StepPlace> places(ids.size());
    size_t done = 0;      // number of steps whose place is known
    size_t position = 0;  // offset in the text after these steps
    const auto place_unknown = [&](size_t last, size_t end) {
        const auto shares = share_out(text, position, end, last - done);
        std::copy(shares.begin(), shares.end(), places.begin() + static_cast<std::ptrdiff_t>(done));
        done = last;
        position = end;
    };
    for (size_t step = 0; step < ids.size(); ++step) {
        const auto known = pieces.find(ids[step]);
        if (known == pieces.end() || known->second.empty()) continue;
        const size_t n_between = step - done;
        const size_t found = text.find(known->second, position + n_between);
        if (found == std::string_view::npos || found - position > n_between * farthest_piece) continue;
        if (step > done) place_unknown(step, found);
        places[step] = {found, found + known->second.size()};
        done = step + 1;
        position = found + known->second.size();
    }
    if (ids.size() > done) place_unknown(ids.size(), text.size());
    return places;
}

std::vector<StepPlace> answer_byte_ranges(const trace::Reader& reader, int prompt, std::string_view text,
                                          std::span<const int32_t> ids) {
    const auto& eos = reader.prompt(prompt).eos_ids;
    const bool has_end = !ids.empty() && std::find(eos.begin(), eos.end(), ids.back()) != eos.end();
    std::unordered_map<int32_t, std::string> pieces;
    const auto prompt_ids = reader.token_ids(prompt);
    const auto texts = reader.token_text(prompt);
    for (size_t i = 0; i < prompt_ids.size() && i < texts.size(); ++i) pieces.emplace(prompt_ids[i], texts[i]);
    auto places = step_byte_ranges(text, ids.first(ids.size() - (has_end ? 1 : 0)), pieces);
    if (has_end) places.push_back({text.size(), text.size()});
    return places;
}

}  // namespace kvscope::analysis
