#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/api/definition.h"
#include "policies/methods/echo_maps.h"

namespace kvscope::policies {

/// Base of policies that keep every token and use EchoKV's maps. The first `sinks` and last `recent` tokens stay exact.
class EchoPolicy : public Policy, public StoresWhileDecoding, public DecidesInOrder {
 public:
    void begin(const RunContext& context) final;
    [[nodiscard]] bool stores_parts() const final { return end_ > first_ && layout_.ratio() < 1.0; }
    [[nodiscard]] bool stores_while_decoding() const final { return layout_.ratio() < 1.0; }
    [[nodiscard]] std::optional<WholeTokens> whole_tokens(int layer) const final;
    [[nodiscard]] StorageSwitching switching() const final { return switching_; }

 protected:
    /// @param values of `maps`, `sinks`, `recent` and storage_switching_parameters()
    EchoPolicy(std::string name, const ParameterValues& values);

    virtual void take(const EchoMaps& maps) = 0;
    /// Whether the layer stores parts of keys or values.
    [[nodiscard]] virtual bool describes(int layer) const = 0;
    /// Returns the storage of the tokens at `positions`. Their entries start at index `first` of the views.
    [[nodiscard]] virtual StoredLayer described(int layer, const std::vector<uint32_t>& positions,
                                                const EntriesView& keys_before_rope, const EntriesView& values,
                                                int64_t first) = 0;

    /// Selects all tokens in each head, with described() storage for tokens that are not exact.
    [[nodiscard]] Selection all_tokens(LayerObservations& observations);

    [[nodiscard]] const EchoLayout& layout() const { return layout_; }

 private:
    std::string name_, path_;
    int64_t sinks_, recent_;
    std::string form_, switches_;
    StorageSwitching switching_;
    RunContext context_;
    EchoLayout layout_;
    int64_t first_ = 0, end_ = 0;  ///< range of prompt tokens that are not exact
};

[[nodiscard]] double echo_needed_share(const ParameterValues& values, double asked, const CacheSize& size);

}  // namespace kvscope::policies
