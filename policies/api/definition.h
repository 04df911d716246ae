#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/full_policy.h"
#include "policies/api/budget.h"
#include "policies/api/further_interfaces.h"
#include "policies/api/parameters.h"

namespace kvscope::policies {

/// Whether a policy's class implements only interfaces that can be combined.
template <class P>
[[nodiscard]] constexpr bool interfaces_agree() {
    constexpr bool own_cache = std::derived_from<P, ReadsThroughOwnCache>;
    constexpr bool filters = std::derived_from<P, FiltersPrompt>;
    constexpr bool parts = std::derived_from<P, StoresParts>;
    constexpr bool evicts = std::derived_from<P, EvictsWhileDecoding>;
    constexpr bool in_order = std::derived_from<P, DecidesInOrder>;
    constexpr bool looks_ahead = std::derived_from<P, LooksAhead>;
    constexpr int n_passes = own_cache + filters + std::derived_from<P, AppendsTokens> + looks_ahead;
    constexpr int n_layouts = own_cache + filters + parts + std::derived_from<P, MergesValues>;
    // The engine never calls Gathers::gather for ReadsThroughOwnCache and FiltersPrompt. The tokens that LooksAhead
    // generates are gone when DecidesInOrder decides late.
    constexpr int n_orders = own_cache + filters + in_order;
    constexpr int n_selections = own_cache + filters + std::derived_from<P, Gathers>;
    return n_passes <= 1 && n_layouts <= 1 && own_cache + parts + evicts <= 1 && n_orders <= 1 && n_selections <= 1 &&
           in_order + looks_ahead <= 1;
}

/// The policy of one run, with the interfaces that its class implements.
class CreatedPolicy {
 public:
    CreatedPolicy() = default;
    template <std::derived_from<Policy> P>
    explicit CreatedPolicy(std::unique_ptr<P> policy) {
        static_assert(!std::is_abstract_v<P>,
                      "pass the policy as a pointer to its own class, whose interfaces are then known");
        static_assert(interfaces_agree<P>(), "this policy implements interfaces that exclude each other");
        std::apply([&](auto*&... interfaces) { (set(interfaces, policy.get()), ...); }, interfaces_);
        policy_ = std::move(policy);
    }

    explicit operator bool() const { return policy_ != nullptr; }
    [[nodiscard]] Policy& operator*() const { return *policy_; }
    [[nodiscard]] Policy* operator->() const { return policy_.get(); }

    /// Returns one of the further interfaces, or nullptr if the policy does not implement the interface.
    template <class Interface>
    [[nodiscard]] Interface* as() const {
        return std::get<Interface*>(interfaces_);
    }

 private:
    template <class Interface, class P>
    static void set(Interface*& pointer, P* policy) {
        static_assert(std::is_base_of_v<Interface, P> == std::derived_from<P, Interface>,
                      "inherit each interface publicly and only once");
        if constexpr (std::derived_from<P, Interface>) pointer = policy;
    }

    std::unique_ptr<Policy> policy_;
    std::tuple<Gathers*, DecidesInOrder*, PreparesWeights*, AppendsTokens*, FiltersPrompt*, LooksAhead*,
               ReadsThroughOwnCache*, MergesValues*, EvictsWhileDecoding*, StoresParts*, StoresWhileDecoding*>
        interfaces_{};
};

template <class P>
[[nodiscard]] CreatedPolicy make_policy(const ParameterValues& values) {
    return CreatedPolicy(std::make_unique<P>(values));
}

struct CacheSize {
    ModelShape shape;
    int64_t n_tokens = 0;
    double bytes_per_number = 0;
};

/// Description of a policy, from which the command line, the app's form and the documentation are generated.
struct Definition {
    std::string name;  ///< "ada-snapkv", as on the command line
    std::string title;
    std::string paper{};  ///< citation with its identifier; empty for a policy without a paper
    std::string summary;  ///< one sentence that says which entries are kept
    std::vector<Parameter> parameters;
    CreatedPolicy (*create)(const ParameterValues&) = nullptr;  ///< usually make_policy
    /// Whether the scores depend on the budget.
    bool scores_follow_budget = false;
    BudgetOf budget_of = BudgetOf::entries;
    /// Returns the share of the full cache's bytes that the parameters set. nullptr if no parameter can set the share.
    std::optional<double> (*own_share)(const ParameterValues&) = nullptr;
    /// Returns the share of bytes that a run needs if `asked` is requested. nullptr if no run needs more than `asked`.
    double (*needed_share)(const ParameterValues&, double asked, const CacheSize&) = nullptr;
    bool needs_file = false;
    std::string remark{};

    [[nodiscard]] bool is_full() const { return name == full_policy; }
};

}  // namespace kvscope::policies
