#pragma once

#include <map>
#include <memory>
#include <string>

#include "policies/interface/observations.h"
#include "policies/interface/policy_errors.h"
#include "policies/interface/stored_layer.h"

namespace kvscope::policies {

/// A file of EchoKV's maps is missing, damaged or made for another model.
class EchoMapsError : public BudgetError {
 public:
    using BudgetError::BudgetError;
};

/// The keys and values that EchoKV stores, D = G d numbers per token and layer. In each group of S layers, the first
/// layer stores all D numbers and each other layer the first `local` numbers.
struct EchoLayout {
    int n_layers = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    int group = 2;  ///< S, the number of layers in a group
    int local = 0;  ///< D_local, the numbers that other layers store

    int width() const { return n_kv_heads * head_dim; }  ///< D, the numbers of a token in one layer
    bool is_first(int layer) const { return layer % group == 0; }
    bool is_rebuilt(int layer) const { return !is_first(layer) && local < width(); }
    /// Ratio of a whole group: (D + D_local (S - 1)) / (D S).
    double ratio() const;
    /// Ratio of this model's layers; the last group may be smaller.
    double model_ratio() const;

    friend bool operator==(const EchoLayout&, const EchoLayout&) = default;
};

/// Returns the layout for a share of the full cache's bytes. S is the smallest group size whose first layers alone do
/// not exceed the ratio. D_local is the nearest multiple of the head size, else of 16, 8, 4, 2 or 1: the first of these
/// that misses the ratio by at most 1.5 % of the bytes.
/// @throws EchoMapsError if the ratio is outside (0, 1] or needs groups of more than all layers
EchoLayout echo_layout(double ratio, const ModelShape& shape);

/// Linear maps that predict a layer's D - D_local numbers that are not stored, for keys (before RoPE) and for values,
/// from the D numbers of the group's first layer and the layer's own D_local.
struct EchoMaps {
    struct Layer {
        Matrix keys, values;  ///< shape (D + D_local, D - D_local)
    };
    EchoLayout layout;
    std::string model_fingerprint;
    std::map<int, Layer> layers;               ///< one for each rebuilt layer
    std::map<std::string, std::string> facts;  ///< training settings and results
};

/// Returns a safetensors file: `layers.N.keys` and `layers.N.values` in F32, all other data in the metadata.
std::string to_safetensors(const EchoMaps& maps);

/// Whether a file is marked as one with EchoKV's maps, even if it is damaged.
bool holds_echo_maps(const std::string& path);

/// @throws EchoMapsError that names the file, the expected and the found content
EchoMaps read_echo_maps(const std::string& path);

/// Reads the file's header and leaves `layers` empty. @throws EchoMapsError
EchoMaps read_echo_header(const std::string& path);

}  // namespace kvscope::policies
