#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "policies/api/observations.h"

namespace kvscope::policies {

struct Matrix {
    int n_rows = 0;
    int n_columns = 0;
    std::vector<float> numbers;  ///< shape (n_rows, n_columns)
    /// Whether the matrix was computed from the prompt and its bytes count as part of the cache.
    bool is_of_prompt = false;
    [[nodiscard]] size_t prompt_bytes() const { return is_of_prompt ? numbers.size() * sizeof(float) : 0; }
};

/// Numbers of n entries, stored once for several heads or layers, or for keys and values.
struct StoredBlock {
    int width = 0;
    std::vector<float> numbers{};  ///< shape (n, width)
};

/// One term of the sum that gives n keys or values. A term has `width` numbers per entry, in the model's type.
struct StoredPart {
    int width = 0;
    /// (n, width). If `numbers` and `block` are empty, the part consists of the prompt's keys or values in `channels`.
    std::vector<float> numbers{};
    /// Contains the part's numbers if `numbers` is empty. The block belongs to this or an earlier layer.
    std::shared_ptr<const StoredBlock> block{};
    int first_column = 0;
    /// (width) channels of the numbers, ascending. Empty if the numbers cover all d channels or if there is a map.
    std::vector<uint16_t> channels{};
    /// (width, d) matrix that maps an entry's numbers to d channels, or nullptr if the numbers are channels.
    std::shared_ptr<const Matrix> map{};
    /// (n) factors that multiply the entries' numbers, in the model's type. Empty if all factors are 1.
    std::vector<float> scales{};
};

struct StoredVectors {
    std::vector<StoredPart> parts{};
    /// (d) vector that is added to each sum, such as a projection's bias. May be empty. Its bytes do not count.
    std::vector<float> offset{};
    /// Whether the sum is a key before RoPE. Such a key is rotated whenever it is read.
    bool before_rope = false;
};

struct StoredEntries {
    /// (n) ascending positions. A merged entry has the position of its last token.
    std::vector<uint32_t> positions{};
    /// (n) Number of tokens n_i in each entry, or empty if all are 1. Output: o = sum exp(e_i) v_i / sum n_i exp(e_i).
    std::vector<float> masses{};
    StoredVectors keys{}, values{};
};

/// Storage of one row. `stored` describes entries, and `plain` lists the positions whose keys and values are whole.
struct StoredRow {
    std::vector<StoredEntries> stored{};
    std::vector<uint32_t> plain{};
    /// (N) entry of each token in the row, or -1. Empty if each entry holds only the token at its position.
    std::vector<int32_t> token_entry{};
};

struct StoredLayer {
    std::vector<StoredRow> rows;
    std::vector<std::shared_ptr<const StoredBlock>> blocks{};
};

struct Selection;

/// @throws SelectionError with the policy, layer and row if the selection's `stored` is set and invalid
void require_valid_storage(std::string_view policy, int layer, const ModelShape& shape, const Selection& selection);

/// Bytes by content. A mass takes four bytes, and a channel index takes two.
struct StoredBytes {
    size_t whole = 0;     ///< keys and values of d numbers each
    size_t channels = 0;  ///< subsets of key or value channels, with the channel indices
    size_t mapped = 0;    ///< numbers that maps expand to keys or values, and maps computed from the prompt
    size_t masses = 0;
    [[nodiscard]] size_t total() const { return whole + channels + mapped + masses; }
};

/// Splits bytes that a layer stores once among its rows, and returns one row's part. Parts differ by at most one byte.
[[nodiscard]] size_t row_share_of_layer_bytes(size_t bytes, size_t row, size_t n_rows);

/// Returns the bytes of each row (R), including the row's share of data that the layer stores once.
[[nodiscard]] std::vector<size_t> row_bytes_of(const Selection& selection, int head_dim, size_t element);

/// A layer's storage as the trace records it, for R rows and N tokens. Arrays of entries are sorted by row.
struct StoredSummary {
    std::vector<uint8_t> key_channels;  ///< (R, d) 1 if every entry of the row has this channel of the key
    std::vector<int32_t> token_entry;   ///< (R, N) entry of each token within the row, or -1
    std::vector<float> masses;          ///< mass of each entry
    std::vector<uint8_t> whole;         ///< 1 for each entry whose key and value are whole
    std::vector<uint32_t> n_entries;    ///< (R) number of entries
    std::vector<uint32_t> n_stored;     ///< (R) number of entries that are not whole
    /// (R) mean count of numbers per entry that is not whole, or d if all entries are whole. Columns of a block that
    /// hold no whole keys or values are divided evenly among the other keys and values.
    std::vector<float> key_width, value_width;
    StoredBytes bytes;
    bool drops_channels = false;  ///< whether `key_channels` contains a 0
    bool merges = false;          ///< whether some entry has a mass or a number of tokens other than 1
};

/// Summarizes a valid selection. @throws SelectionError if `token_entry` does not have N tokens.
[[nodiscard]] StoredSummary summarize_storage(std::string_view policy, int layer, const ModelShape& shape,
                                              int64_t n_tokens, const Selection& selection, size_t element);

}  // namespace kvscope::policies
