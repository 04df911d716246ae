// What a run's cache holds of the prompt, as a trace records it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace kvscope::trace {

/// What became of one token in one row.
struct TokenFate {
    enum class Kind {
        dropped,
        whole,    ///< its own key and value
        rebuilt,  ///< its own entry, stored otherwise than as a whole key and value
        merged    ///< an entry with other tokens
    };
    Kind kind = Kind::dropped;
    std::uint32_t entry = 0;     ///< position of the entry that it went into: its own, or its last token's
    std::uint32_t n_tokens = 1;  ///< how many tokens went into that entry
    float cardinality = 1;       ///< n of that entry as attention uses it, which a policy may cap
    /// Relative errors of the keys and values that the row's cache gives for its tokens; NaN where none are recorded.
    float key_error = std::numeric_limits<float>::quiet_NaN();
    float value_error = std::numeric_limits<float>::quiet_NaN();

    [[nodiscard]] bool is_held() const { return kind != Kind::dropped; }
};

/// The entries of a run, one row for each layer and head, and the tokens that went into them. Most runs have an entry
/// for each token that they hold; of those that merge, the further members say what is in which.
struct Kept {
    std::size_t n_layers = 0;
    std::size_t n_rows = 0;                ///< R, rows of one layer
    std::vector<std::uint64_t> offsets{};  ///< (L·R + 1)
    std::vector<std::uint32_t> indices{};  ///< (Σ) the entries' positions, ascending in each row

    std::vector<std::int32_t> token_entry{};    ///< (L, R, N) of a run that merges, else empty
    std::vector<float> cardinality{};           ///< (Σ) of a run that merges, else empty: 1 each
    std::vector<std::uint32_t> n_merged{};      ///< (Σ) of a run that merges: tokens that went into each entry
    std::vector<std::uint64_t> held_offsets{};  ///< (L·R + 1) of `held_tokens`
    std::vector<std::uint32_t> held_tokens{};   ///< of a run that merges: those with an entry, ascending in each row
    std::vector<std::uint32_t> held_with{};     ///< of each of these: how many tokens went into its entry
    /// (L, R) entries of a row that are stored in parts: its first ones, or those that `is_whole` says.
    std::vector<std::uint32_t> stored_entries{};
    std::vector<std::uint8_t> is_whole{};           ///< (Σ) or empty
    std::vector<float> key_error{}, value_error{};  ///< (L, R)

    [[nodiscard]] std::size_t count(std::size_t layer, std::size_t row) const {
        const std::size_t i = layer * n_rows + row;
        return static_cast<std::size_t>(offsets[i + 1] - offsets[i]);
    }
    /// Positions of the entries.
    [[nodiscard]] std::span<const std::uint32_t> row(std::size_t layer, std::size_t row) const {
        return {indices.data() + offsets[layer * n_rows + row], count(layer, row)};
    }
    [[nodiscard]] bool merges() const { return !token_entry.empty(); }
    /// Tokens that the row's cache holds something of: the entries' positions where nothing is merged.
    [[nodiscard]] std::span<const std::uint32_t> held(std::size_t layer, std::size_t row) const;

    /// Whether an entry, counted from the row's first, is stored in parts.
    [[nodiscard]] bool is_in_parts(std::size_t layer, std::size_t row, std::size_t entry) const;

    [[nodiscard]] TokenFate fate(std::size_t layer, std::size_t row, std::uint32_t token) const;

    /// Fills `n_merged`, `held_offsets`, `held_tokens` and `held_with` from `token_entry`.
    void find_held_tokens();
};

}  // namespace kvscope::trace
