#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// The text of tokens, broken into lines on a grid of character cells. Right-to-left text is placed from the right.
class BrokenText {
 public:
    /// A token, or the part of it that fits on one line.
    struct Piece {
        size_t token = 0;
        size_t line = 0;
        size_t cell = 0;  ///< from the left end of the line
        size_t n_cells = 0;
        std::string text;      ///< If several tokens share a character, only the first token contains it.
        bool is_whole = true;  ///< The piece contains the whole token.
        bool is_right_to_left = false;
        bool begins_line = false;
        bool joins_next = false;  ///< Its letters join those of the next piece, so both must be drawn together.
    };

    /// Breaks lines before words if possible. Only a token that is wider than a line is split.
    /// @param width of a line in cells, at least 2
    BrokenText(std::span<const std::string> tokens, size_t n_tokens, size_t width);

    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }  ///< in the order of the tokens
    [[nodiscard]] size_t n_lines() const { return line_ + 1; }

 private:
    void add(size_t token, const std::string& text);
    void put(Piece piece);
    void put_in_order(const WholeText& whole);
    void join(const WholeText& whole, size_t first, size_t end, const std::vector<uint8_t>& levels);

    size_t width_;
    std::vector<Piece> pieces_;
    size_t line_ = 0;
    size_t cell_ = 0;
    size_t word_ = 0;  ///< first piece of the current word
};

}  // namespace kvscope::analysis
