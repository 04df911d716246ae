#include "app/gui/tokens/prompt_lines.h"

#include <utf8proc.h>

#include <optional>
#include <string>

#include "analysis/tables/bidirectional_text.h"
#include "common/utf8.h"

namespace kvscope::gui {
namespace {

constexpr std::string_view line_break = "↵";
constexpr uint32_t zero_width_joiner = 0x200d;

struct Character {
    size_t bytes = 1;
    size_t cells = 1;
};

Character character_at(std::string_view text, size_t at) {
    if (static_cast<unsigned char>(text[at]) < 0x80) return {};
    const auto [code, bytes, is_valid] = decode_utf8_character(text, at);
    if (!is_valid) return {};
    // Joined emoji and skin colors need no cells of their own.
    if (code == zero_width_joiner && at + bytes < text.size()) return {bytes + character_at(text, at + bytes).bytes, 0};
    if (code >= 0x1f3fb && code <= 0x1f3ff && at > 0) return {bytes, 0};
    return {bytes, static_cast<size_t>(std::max(utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)), 0))};
}

class Breaker {
 public:
    Breaker(const PromptText& prompt, size_t width) : prompt_(prompt), width_(std::max<size_t>(width, 4)) {}

    PromptLines lines() {
        out_.prompt = prompt_.number;
        out_.begins.push_back(0);
        for (uint32_t token = 0; token < prompt_.tokens.size(); ++token) add(token);
        if (out_.begins.back() != out_.placed.size() || out_.begins.size() == 1)
            out_.begins.push_back(out_.placed.size());
        levels_ = analysis::compute_bidirectional_levels(prompt_);
        for (size_t i = 0; i < out_.size(); ++i) {
            join(out_.begins[i], out_.begins[i + 1]);
            put_in_order(i);
        }
        return std::move(out_);
    }

 private:
    uint8_t level(size_t place) const { return levels_.of(out_.placed[place].token); }

    void join(size_t first, size_t end) {
        const auto is_whole = [&](const PlacedToken& piece) {
            return piece.begin == 0 && piece.end == prompt_.shown[piece.token].size();
        };
        for (size_t i = first; i < end;) {
            size_t last = i;
            while (last + 1 < end && is_whole(out_.placed[last]) && is_whole(out_.placed[last + 1]) &&
                   level(last) == level(last + 1) && is_drawn_with_next_token(prompt_, out_.placed[last].token))
                ++last;
            if (last > i || (is_whole(out_.placed[i]) && has_letters_drawn_together(prompt_, out_.placed[i].token))) {
                out_.joined.push_back(join_tokens(prompt_, out_.placed[i].token, out_.placed[last].token));
                JoinedTokens& joined = out_.joined.back();
                joined.first = i;
                joined.end = last + 1;
                joined.is_right_to_left = level(i) % 2 == 1;
                keep_room(joined);
            }
            i = last + 1;
        }
    }

    /// Gives an emoji of several code points the cells of a single emoji.
    void keep_room(const JoinedTokens& joined) {
        auto room = static_cast<uint32_t>(text_width_in_cells(joined.text) + (joined.has_space ? 1 : 0));
        for (size_t i = joined.first; i < joined.end; ++i) {
            out_.placed[i].n_cells = std::min(out_.placed[i].n_cells, room);
            room -= out_.placed[i].n_cells;
        }
    }

    void put_in_order(size_t line) {
        const size_t first = out_.begins[line];
        std::vector<uint8_t> levels;
        for (size_t i = first; i < out_.begins[line + 1]; ++i) levels.push_back(level(i));
        uint32_t cell = 0;
        for (const size_t i : analysis::visual_order(levels)) {
            PlacedToken& piece = out_.placed[first + i];
            piece.is_turned = levels[i] % 2 == 1;
            piece.cell = cell;
            cell += piece.n_cells;
        }
        if (!levels.empty() && levels_.is_turned(out_.placed[first].token)) out_.turned.push_back(line);
    }

    /// Returns nullopt if the token has only whole characters. Otherwise returns the width, in cells, of the characters
    /// that begin in the token.
    std::optional<uint32_t> cells_of_shared(uint32_t token) const {
        const std::string_view whole = whole_characters_of_tokens(prompt_, token, token);
        const size_t begin = prompt_.begins[token];
        if (whole.size() == prompt_.begins[token + 1] - begin) return {};
        const auto before = static_cast<size_t>(prompt_.text.data() + begin - whole.data());
        size_t cells = 0;
        for (size_t at = 0; at < whole.size();) {
            const Character next = character_at(whole, at);
            if (at >= before) cells += next.cells;
            at += next.bytes;
        }
        return static_cast<uint32_t>(cells);
    }

    void add(uint32_t token) {
        const std::string& shown = prompt_.shown[token];
        const std::string& text = prompt_.tokens[token];
        const std::string_view whole = whole_characters_of_tokens(prompt_, token, token);
        const bool is_inside = whole.data() != prompt_.text.data() + prompt_.begins[token] && !whole.empty();
        const bool is_wide =
            !whole.empty() && !is_inside &&
            character_at(whole, 0).cells == 2;  // scripts with wide characters have no spaces between words
        const bool begins_word = !text.empty() && (text.front() == ' ' || text.front() == '\t' || is_wide);
        if (begins_word || ends_word_) word_ = out_.placed.size();
        ends_word_ = !text.empty() && (text.back() == ' ' || text.back() == '-');
        if (const auto cells = cells_of_shared(token)) {
            place({token, 0, static_cast<uint32_t>(shown.size()), 0, *cells});
            return;
        }
        size_t begin = 0;
        do {
            size_t end = begin;
            size_t cells = 0;
            bool ends_line = false;
            while (end < shown.size() && !ends_line) {
                const Character next = character_at(shown, end);
                if (cells + next.cells > width_) break;
                ends_line = std::string_view(shown).substr(end, next.bytes) == line_break;
                end += next.bytes;
                cells += next.cells;
            }
            place({token, static_cast<uint32_t>(begin), static_cast<uint32_t>(end), 0, static_cast<uint32_t>(cells)});
            if (ends_line) start_line(out_.placed.size());
            begin = end;
        } while (begin < shown.size());
    }

    void place(PlacedToken piece) {
        if (at_ + piece.n_cells > width_ && at_ > 0) {
            const size_t line_begin = out_.begins.back();
            start_line(word_ > line_begin ? word_ : out_.placed.size());
            if (at_ + piece.n_cells > width_ && at_ > 0) start_line(out_.placed.size());
        }
        piece.cell = static_cast<uint32_t>(at_);
        at_ += piece.n_cells;
        out_.placed.push_back(piece);
    }

    void start_line(size_t first) {
        out_.begins.push_back(first);
        at_ = 0;
        for (size_t i = first; i < out_.placed.size(); ++i) {
            out_.placed[i].cell = static_cast<uint32_t>(at_);
            at_ += out_.placed[i].n_cells;
        }
    }

    const PromptText& prompt_;
    size_t width_;
    PromptLines out_;
    size_t at_ = 0;    ///< cell of the next token
    size_t word_ = 0;  ///< first token of the current word
    bool ends_word_ = false;
    analysis::ReadingLevels levels_;
};

}  // namespace

std::span<const JoinedTokens> PromptLines::joined_in(size_t line) const {
    const auto from = [&](size_t place) {
        return std::lower_bound(joined.begin(), joined.end(), place,
                                [](const JoinedTokens& one, size_t wanted) { return one.first < wanted; });
    };
    return {from(begins[line]), from(begins[line + 1])};
}

size_t PromptLines::line_of(int64_t token) const {
    const auto first = std::lower_bound(placed.begin(), placed.end(), token, [](const PlacedToken& p, int64_t wanted) {
        return static_cast<int64_t>(p.token) < wanted;
    });
    const auto index = static_cast<size_t>(first - placed.begin());
    const auto after = std::upper_bound(begins.begin(), begins.end(), index);
    const auto line = static_cast<size_t>(after - begins.begin());
    return line == 0 ? 0 : std::min(line - 1, size() == 0 ? 0 : size() - 1);
}

bool is_right_to_left(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto [code, bytes, is_valid] = decode_utf8_character(text, i);
        if (!is_valid) return false;
        const auto* properties = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
        if (properties->bidi_class == UTF8PROC_BIDI_CLASS_R || properties->bidi_class == UTF8PROC_BIDI_CLASS_AL)
            return true;
        if (properties->bidi_class == UTF8PROC_BIDI_CLASS_L) return false;
        i += bytes;
    }
    return false;
}

size_t text_width_in_cells(std::string_view shown) {
    size_t cells = 0;
    for (size_t at = 0; at < shown.size();) {
        const Character next = character_at(shown, at);
        cells += next.cells;
        at += next.bytes;
    }
    return cells;
}

PromptLines break_lines(const PromptText& prompt, size_t cells_a_line) { return Breaker(prompt, cells_a_line).lines(); }

}  // namespace kvscope::gui
