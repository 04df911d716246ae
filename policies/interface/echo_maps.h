#pragma once

#include <map>
#include <memory>
#include <string>

#include "policies/interface/observations.h"
#include "policies/interface/policy_errors.h"
#include "policies/interface/stored_layer.h"

namespace kvscope::policies {

/// A file of EchoKV's maps that is missing, damaged, or made for another model.
class EchoMapsError : public BudgetError {
 public:
    using BudgetError::BudgetError;
};

/// What of keys and values EchoKV stores, D = G d numbers of a token and layer each: layers go in groups of S, of which
/// the first one stores all D and each other one the first `local` ones.
struct EchoLayout {
    int n_layers = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    int group = 2;  ///< S
    int local = 0;  ///< D_local

    int width() const { return n_kv_heads * head_dim; }  ///< D
    bool is_first(int layer) const { return layer % group == 0; }
    /// Whether the layer stores fewer than D numbers; the first of a group never does.
    bool is_rebuilt(int layer) const { return !is_first(layer) && local < width(); }
    /// Of a whole group: (D + D_local (S - 1)) / (D S).
    double ratio() const;
    /// Of this model's layers, whose last group may be a smaller one.
    double model_ratio() const;

    friend bool operator==(const EchoLayout&, const EchoLayout&) = default;
};

/// The layout for a share of the full cache's bytes, over all layers of the model: the smallest S with 1 / S <= ratio
/// whose first layers alone are not above it, and the D_local that comes nearest among the multiples of the head size,
/// else of 16, 8, 4, 2 or 1: the first of these that misses the ratio by at most 1.5 % of the bytes, as the paper's do.
/// @throws EchoMapsError for a ratio that is not between 0 and 1, or that would take groups of more than all layers
EchoLayout echo_layout(double ratio, const ModelShape& shape);

/// Linear maps without bias that predict what is not stored of a layer's keys (before RoPE) and values, D - D_local
/// numbers, from the D of the group's first layer and the layer's own D_local.
struct EchoMaps {
    struct Layer {
        Matrix keys, values;  ///< (D + D_local, D - D_local)
    };
    EchoLayout layout;
    std::string model_fingerprint;
    std::map<int, Layer> layers;               ///< of every layer that is rebuilt
    std::map<std::string, std::string> facts;  ///< how they were made
};

/// A safetensors file: `layers.N.keys` and `layers.N.values` in F32, the rest in its metadata.
std::string to_safetensors(const EchoMaps& maps);

/// Whether a file says of itself that it is one, damaged or not.
bool holds_echo_maps(const std::string& path);

/// @throws EchoMapsError, which names the file, what was expected and what was found
EchoMaps read_echo_maps(const std::string& path);

/// Everything but the maps themselves, from the file's header: `layers` stays empty. @throws EchoMapsError
EchoMaps read_echo_header(const std::string& path);

}  // namespace kvscope::policies
