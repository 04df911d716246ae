#include "analysis/tables/broken_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analysis/tables/bidirectional_text.h"
#include "analysis/tables/letters_drawn_together.h"
#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

std::pair<size_t, size_t> character_at(const std::string& text, size_t at) {
    const auto [code, bytes, is_valid] = decode_utf8_character(text, at);
    return {bytes, static_cast<size_t>(std::max(utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)), 0))};
}

/// Whether a token ends inside a character that is drawn alone, such as an emoji.
bool shares_lone_character(const WholeText& whole, size_t token) {
    const size_t border = whole.begins[token + 1];
    const size_t begin = character_begin(whole.text, border);
    if (begin == border) return false;
    return !joins_neighbours(decode_utf8_character(whole.text, begin).code) ||
           character_at(whole.text, begin).second > 1;
}

std::string with_cells(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '\t')
            out += "    ";
        else if (c == '\r')
            out += "␍";
        else if ((code < 32 && c != '\n') || code == 127)
            out += fmt::format("⟨{:02X}⟩", code);
        else
            out += c;
    }
    return out;
}

}  // namespace

BrokenText::BrokenText(std::span<const std::string> tokens, size_t n_tokens, size_t width) : width_(width) {
    const WholeText whole = join_and_decode_tokens(tokens);
    const std::vector<std::string> read = tokens_with_whole_characters(whole);
    for (size_t token = 0; token < n_tokens; ++token) add(token, with_cells(read[token]));
    put_in_order(whole);
}

void BrokenText::add(size_t token, const std::string& text) {
    if (!text.empty() && text.front() == ' ') word_ = pieces_.size();
    const auto begin_piece = [&] { return Piece{.token = token, .line = line_, .cell = cell_, .text = ""}; };
    Piece piece = begin_piece();
    const size_t first = pieces_.size();
    for (size_t at = 0; at < text.size();) {
        const auto [bytes, cells] = character_at(text, at);
        if (text[at] == '\n') {
            put(piece);
            ++line_;
            cell_ = 0;
            word_ = pieces_.size();
            piece = begin_piece();
        } else {
            if (piece.n_cells + cells > width_) {
                put(piece);
                piece = begin_piece();
            }
            piece.text += text.substr(at, bytes);
            piece.n_cells += cells;
        }
        at += bytes;
    }
    put(piece);
    for (size_t i = first; i < pieces_.size(); ++i) pieces_[i].is_whole = pieces_[i].text.size() == text.size();
}

void BrokenText::put(Piece piece) {
    if (piece.text.empty()) return;
    if (cell_ + piece.n_cells > width_ && cell_ > 0) {
        ++line_;
        cell_ = 0;
        const bool is_word_in_line =
            word_ < pieces_.size() && pieces_[word_].line + 1 == line_ && pieces_[word_].cell > 0;
        for (size_t i = is_word_in_line ? word_ : pieces_.size(); i < pieces_.size(); ++i) {
            pieces_[i].line = line_;
            pieces_[i].cell = cell_;
            cell_ += pieces_[i].n_cells;
        }
        if (cell_ + piece.n_cells > width_ && cell_ > 0) {
            ++line_;
            cell_ = 0;
        }
    }
    piece.line = line_;
    piece.cell = cell_;
    cell_ += piece.n_cells;
    pieces_.push_back(std::move(piece));
}

void BrokenText::put_in_order(const WholeText& whole) {
    const ReadingLevels of_tokens = compute_bidirectional_levels(whole);
    for (size_t first = 0, end = 0; first < pieces_.size(); first = end) {
        end = first;
        std::vector<uint8_t> levels;
        size_t cells = 0;
        for (; end < pieces_.size() && pieces_[end].line == pieces_[first].line; ++end) {
            levels.push_back(of_tokens.of(pieces_[end].token));
            cells += pieces_[end].n_cells;
        }
        pieces_[first].begins_line = true;
        join(whole, first, end, levels);
        size_t cell = of_tokens.is_turned(pieces_[first].token) ? width_ - std::min(cells, width_) : 0;
        for (const size_t i : visual_order(levels)) {
            Piece& piece = pieces_[first + i];
            piece.is_right_to_left = levels[i] % 2 == 1;
            piece.cell = cell;
            cell += piece.n_cells;
        }
    }
}

void BrokenText::join(const WholeText& whole, size_t first, size_t end, const std::vector<uint8_t>& levels) {
    for (size_t i = first; i + 1 < end; ++i) {
        Piece& piece = pieces_[i];
        piece.joins_next = piece.is_whole && pieces_[i + 1].is_whole && levels[i - first] == levels[i + 1 - first] &&
                           pieces_[i + 1].token == piece.token + 1 && is_drawn_with_next_token(whole, piece.token) &&
                           !shares_lone_character(whole, piece.token);
    }
}

}  // namespace kvscope::analysis
