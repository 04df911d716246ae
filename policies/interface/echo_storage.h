#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policies/interface/echo_maps.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

/// How EchoKV stores keys or values: the first layer of a group all D = G d numbers of a token, the others the first
/// D_local of theirs; the rest is a linear map of both. One object is for the keys or for the values of one run.
class EchoStorage {
 public:
    EchoStorage() = default;
    /// @param maps  read_echo_maps
    EchoStorage(const EchoMaps& maps, Projected which);

    /// What a layer stores of tokens, head by head; the numbers that heads share go into `layer`. The layers of a group
    /// have to be asked for in ascending order and for the same tokens, and the last one ends it.
    /// @param view   (G, n, d) keys before RoPE, or values
    /// @param tokens [first, end) of the n
    std::vector<StoredVectors> store(int layer_index, const EntriesView& view, int64_t first, int64_t end,
                                     StoredLayer& layer);

 private:
    /// A map's columns for each head: d of them, those that the head stores itself being zeros.
    struct HeadMaps {
        std::vector<std::shared_ptr<const Matrix>> of_first;  ///< (D, d)
        std::vector<std::shared_ptr<const Matrix>> of_local;  ///< (D_local, d); empty without
    };

    HeadMaps columns(const Matrix& map) const;
    std::shared_ptr<const StoredBlock> block_of(const EntriesView& view, int64_t first, int64_t end, int width) const;
    StoredVectors vectors(int head, const std::shared_ptr<const StoredBlock>& own, const HeadMaps* maps) const;

    EchoLayout layout_;
    std::map<int, HeadMaps> maps_;
    bool before_rope_ = false;
    std::shared_ptr<const StoredBlock> base_;  ///< of the group's first layer
};

/// Whether some layer's tokens are stored otherwise than whole: its group has a layer that is rebuilt.
bool echo_stores(const EchoLayout& layout, int layer);

/// The share of the full cache's bytes that the maps leave of long prompts; 1 where they cannot be read, for
/// `echo_maps_of` to say why.
double echo_share(const std::string& path);

/// The maps of a run's model.
/// @param policy what the policy is called in the messages
/// @throws EchoMapsError for a path that is empty or holds none, and for maps of another model
EchoMaps echo_maps_of(const std::string& policy, const std::string& path, const RunContext& context);

}  // namespace kvscope::policies
