#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policies/api/policy.h"
#include "policies/methods/echo_maps.h"

namespace kvscope::policies {

class EchoEncoder {
 public:
    EchoEncoder() = default;
    EchoEncoder(const EchoMaps& maps, Projected which);

    /// Returns the storage of tokens [first, end) for each head, and adds shared blocks to `layer`. The layers of a
    /// group must be stored in ascending order and with the same tokens.
    /// @param view (G, n, d) keys before RoPE, or values
    [[nodiscard]] std::vector<StoredVectors> store(int layer_index, const EntriesView& view, int64_t first, int64_t end,
                                                   StoredLayer& layer);

 private:
    /// For each head, the d columns of a map that rebuild the head. Columns of numbers that the layer stores are 0.
    struct HeadMaps {
        std::vector<std::shared_ptr<const Matrix>> of_first;  ///< shape (D, d)
        std::vector<std::shared_ptr<const Matrix>> of_local;  ///< (D_local, d); empty if D_local = 0
    };

    [[nodiscard]] HeadMaps columns(const Matrix& map) const;
    [[nodiscard]] std::shared_ptr<const StoredBlock> stored_block_of(const EntriesView& view, int64_t first,
                                                                     int64_t end, int width) const;
    [[nodiscard]] StoredVectors vectors(int head, const std::shared_ptr<const StoredBlock>& own,
                                        const HeadMaps* maps) const;

    EchoLayout layout_;
    std::map<int, HeadMaps> maps_;
    bool before_rope_ = false;
    std::shared_ptr<const StoredBlock> base_;  ///< block of the group's first layer
};

/// Whether the layer's group has a rebuilt layer, so that the layer stores tokens in parts.
[[nodiscard]] bool is_layer_stored_in_parts(const EchoLayout& layout, int layer);

/// Returns the share of the full cache's bytes that a long prompt needs, or 1 if the maps cannot be read.
[[nodiscard]] double cache_share_with_echo_maps(const std::string& path);

/// Reads the maps for a run's model. @throws EchoMapsError if they are missing or made for another model
[[nodiscard]] EchoMaps read_echo_maps_for_model(const std::string& policy, const std::string& path,
                                                const RunContext& context);

}  // namespace kvscope::policies
