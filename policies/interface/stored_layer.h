#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "policies/interface/observations.h"

namespace kvscope::policies {

/// A matrix in f32, row after row.
struct Matrix {
    int n_rows = 0;
    int n_columns = 0;
    std::vector<float> numbers;  ///< (n_rows, n_columns)
};

/// One of the parts whose sum is the key, or the value, of each of n entries. What is stored of it are `width` numbers
/// an entry, in the model's type.
struct StoredPart {
    int width = 0;
    /// (n, width). Empty: the prompt's own keys or values at the entries' positions, on `channels`.
    std::vector<float> numbers{};
    /// (width) the channels that the numbers are, ascending; empty without a map: all d.
    std::vector<uint16_t> channels{};
    /// (width, d) what an entry's numbers, as a row, are multiplied by to give d channels. It belongs to the model, not
    /// to the cache: its bytes are not counted. nullptr: the numbers are the channels themselves.
    std::shared_ptr<const Matrix> map{};
};

/// The keys or the values of some entries: the sum of the parts. Keys are post-RoPE.
struct StoredVectors {
    std::vector<StoredPart> parts{};
};

/// Entries of a row that are stored alike.
struct StoredEntries {
    /// (n) ascending; of an entry that several tokens went into, its last one's.
    std::vector<uint32_t> positions{};
    /// (n) tokens that an entry stands for, n_i in o = sum exp(e_i) v_i / sum n_i exp(e_i); empty: 1 each.
    std::vector<float> masses{};
    StoredVectors keys{}, values{};
};

/// What a layer's cache holds of a row: the entries of `stored`, then whole keys and values at the positions `plain`.
/// One after the other, their positions are the selection's row. Decoded tokens are stored whole, behind them.
struct StoredRow {
    std::vector<StoredEntries> stored{};
    std::vector<uint32_t> plain{};
};

/// What a layer's cache holds in place of whole keys and values of the kept positions: data, which the engine stores,
/// attends to, counts, copies and goes back in.
struct StoredLayer {
    std::vector<StoredRow> rows;
};

struct Selection;

/// The rows of the selection, each with positions that are the selection's, and parts whose sizes are those that
/// `StoredLayer` gives them; masses finite and above 0; at least one part for keys and one for values.
/// @param policy what the policy is called in the message
/// @throws SelectionError that names policy, layer, row, what was expected and what was found.
void require_stored(std::string_view policy, int layer, const ModelShape& shape, const Selection& selection,
                    const StoredLayer& stored);

/// Bytes that a row needs: numbers and whole entries of `element` bytes a number, masses in f32, each part's channels
/// in two bytes each.
size_t bytes_of(const StoredRow& row, int head_dim, size_t element);

}  // namespace kvscope::policies
