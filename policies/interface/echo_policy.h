#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/interface/echo_maps.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

/// What the policies on EchoKV's maps have in common: every token is kept; the first `sinks` and the last `recent` of
/// the prompt and of what is decoded stay exact; those between are stored as the policy describes them.
class EchoPolicy : public Policy {
 public:
    /// @throws what echo_maps_of() does
    void begin(const RunContext& context) final;
    bool stores_parts() const final { return end_ > first_ && layout_.ratio() < 1.0; }
    bool stores_while_decoding() const final { return layout_.ratio() < 1.0; }
    bool decides_in_order() const final { return true; }
    std::optional<WholeTokens> whole_tokens(int layer) const final;
    Switching switching() const final { return switching_; }

 protected:
    /// @param name   of the policy, for what is wrong with the maps
    /// @param values of `maps`, `sinks`, `recent` and switching_parameters()
    EchoPolicy(std::string name, const ParameterValues& values);

    /// The run's maps; layout() is known.
    virtual void take(const EchoMaps& maps) = 0;
    /// Whether a layer stores anything else than whole keys and values.
    virtual bool describes(int layer) const = 0;
    /// Of tokens at these positions, which are those from `first` on of the views.
    virtual StoredLayer described(int layer, const std::vector<uint32_t>& positions,
                                  const EntriesView& keys_before_rope, const EntriesView& values, int64_t first) = 0;

    /// Every token in each head, and those that are not exact as they are described.
    Selection all_tokens(LayerObservations& observations);

    const EchoLayout& layout() const { return layout_; }

 private:
    std::string name_, path_;
    int64_t sinks_, recent_;
    std::string form_, switches_;
    Switching switching_;
    int64_t n_tokens_ = 0;
    EchoLayout layout_;
    int64_t first_ = 0, end_ = 0;  ///< tokens of the prompt that are not exact
};

/// Definition::needed_share: the first and the last tokens stay exact.
double echo_needed_share(const ParameterValues& values, double asked, const CacheSize& size);

}  // namespace kvscope::policies
