#pragma once

#include <map>
#include <string>

#include "policies/api/observations.h"
#include "policies/api/policy_errors.h"
#include "policies/api/stored_layer.h"

namespace kvscope::policies {

/// A file of EchoKV's maps is missing, damaged or made for another model.
class EchoMapsError : public BudgetError {
 public:
    using BudgetError::BudgetError;
};

/// The layout of EchoKV's storage. In each group of S layers, the first layer stores all D = G d numbers of a token's
/// keys (or values). The other layers store the first `local` numbers.
struct EchoLayout {
    int n_layers = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    int group = 2;  ///< S, the number of layers in a group
    int local = 0;  ///< D_local, the numbers that other layers store

    [[nodiscard]] int width() const { return n_kv_heads * head_dim; }  ///< D, the numbers of a token in one layer
    [[nodiscard]] bool is_first(int layer) const { return layer % group == 0; }
    [[nodiscard]] bool is_rebuilt(int layer) const { return !is_first(layer) && local < width(); }
    /// Returns the ratio of a complete group: (D + D_local (S - 1)) / (D S).
    [[nodiscard]] double ratio() const;
    /// Returns the ratio over all layers of the model, where the last group may be smaller.
    [[nodiscard]] double model_ratio() const;

    [[nodiscard]] friend bool operator==(const EchoLayout&, const EchoLayout&) = default;
};

/// Returns the layout for a share of the full cache's bytes, with the smallest possible S. D_local is a multiple of the
/// head size, or of 16, 8, 4, 2 or 1 if larger multiples miss the ratio by more than 1.5 % of the bytes.
/// @throws EchoMapsError if the ratio is outside (0, 1] or needs more layers per group than the model has
[[nodiscard]] EchoLayout echo_layout_for_ratio(double ratio, const ModelShape& shape);

/// Linear maps for a layer's keys (before RoPE) and values. They predict the D - D_local missing numbers from the D
/// numbers of the group's first layer and the D_local numbers of the layer.
struct EchoMaps {
    struct Layer {
        Matrix keys, values;  ///< shape (D + D_local, D - D_local)
    };
    EchoLayout layout;
    std::string model_fingerprint;
    std::map<int, Layer> layers;               ///< one for each rebuilt layer
    std::map<std::string, std::string> facts;  ///< training settings and results
};

std::string to_safetensors(const EchoMaps& maps);

/// Whether the file's metadata marks it as a file of EchoKV's maps, even if it is damaged.
[[nodiscard]] bool holds_echo_maps(const std::string& path);

/// @throws EchoMapsError that names the file, the expected content and the found content
[[nodiscard]] EchoMaps read_echo_maps(const std::string& path);

/// Reads only the header and leaves `layers` empty. @throws EchoMapsError
EchoMaps read_echo_header(const std::string& path);

}  // namespace kvscope::policies
