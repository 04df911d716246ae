#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Tokens in lines on a grid of character cells, as they are read: what is written from right to left stands so.
class BrokenText {
 public:
    /// A token, or what of it stands in one line.
    struct Piece {
        size_t token = 0;
        size_t line = 0;
        size_t cell = 0;  ///< from the line's left end
        size_t n_cells = 0;
        std::string text;               ///< a character that tokens share is whole in the first of them
        bool is_whole = true;           ///< the whole of its token
        bool is_right_to_left = false;  ///< is read so
        bool begins_line = false;
        bool joins_next = false;  ///< its letters join the next piece's: both are to be set together
    };

    /// Breaks between tokens, before a word where one begins, and inside a token only where it is wider than a line. A
    /// paragraph that is read from right to left stands at the right.
    /// @param tokens as whole_text() takes them @param n_tokens of them, from the first
    /// @param width of a line, in cells, at least 2
    BrokenText(std::span<const std::string> tokens, size_t n_tokens, size_t width);

    const std::vector<Piece>& pieces() const { return pieces_; }  ///< in the tokens' order
    size_t n_lines() const { return line_ + 1; }

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
