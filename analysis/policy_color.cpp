#include "analysis/policy_color.h"

#include <array>
#include <cstdint>

namespace kvscope::analysis {
namespace {

struct Named {
    std::string_view policy;
    Rgb color;
};

/// The demonstration's dozen was sought by annealing among 1,100 colours: the largest least CIEDE2000 between any two
/// of them and black, as they are and as deuteranopes and protanopes see them, on white and on the window's dark
/// ground. The others that select entries were added one by one, each where it is farthest from those before. Those
/// that store something else than whole entries, and are drawn together, were sought in the same way as a group, with
/// those that they are mostly drawn beside. Tests hold what came of it.
constexpr std::array<Named, 27> kNamed = {
    {{"streaming-llm", {0xff, 0x96, 0x00}}, {"h2o", {0x5a, 0xa5, 0xff}},        {"snapkv", {0x00, 0xc3, 0x96}},
     {"pyramidkv", {0xf0, 0x5a, 0x5a}},     {"ada-snapkv", {0x2d, 0x3c, 0x87}}, {"aperturekv", {0xa5, 0x2d, 0xf0}},
     {"k-vec", {0x69, 0x78, 0x00}},         {"dapq", {0xa5, 0x2d, 0x5a}},       {"laq", {0x0f, 0x87, 0x96}},
     {"gemfilter", {0x5a, 0x3c, 0x00}},     {"random", {0xc3, 0xa5, 0xc3}},     {"oracle", {0x0f, 0x4b, 0x3c}},
     {"ada-pyramidkv", {0xd2, 0x69, 0xc3}}, {"headkv", {0xa5, 0x78, 0x78}},     {"lacache", {0x96, 0xd2, 0x78}},
     {"longcache", {0x00, 0x96, 0x4b}},     {"laq++", {0x69, 0xd2, 0xf0}},      {"cam", {0x87, 0x5a, 0x3c}},
     {"llmlingua-2", {0x1e, 0x69, 0x87}},   {"think", {0x00, 0x69, 0xd2}},      {"kvslimmer", {0xf0, 0x0f, 0x69}},
     {"asymkv", {0xff, 0x78, 0x69}},        {"echokv", {0x69, 0x1e, 0x5a}},     {"echokv-hybrid", {0xa5, 0x69, 0x96}},
     {"palu", {0x5a, 0x78, 0x69}},          {"commonkv", {0x00, 0x00, 0xd2}},   {"minicache", {0x96, 0x00, 0x0f}}}};

/// Of policies that are not in the list.
constexpr std::array<Rgb, 5> kOthers = {
    {{0xc3, 0x87, 0x00}, {0x87, 0x78, 0xff}, {0xf0, 0x96, 0x96}, {0x3c, 0x3c, 0x5a}, {0x87, 0xd2, 0xc3}}};

/// FNV-1a: the same on every machine.
uint64_t hash_of(std::string_view text) {
    uint64_t hash = 14695981039346656037U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return hash;
}

}  // namespace

Rgb policy_color(std::string_view policy) {
    for (const Named& named : kNamed) {
        if (named.policy == policy) return named.color;
    }
    return kOthers[hash_of(policy) % kOthers.size()];
}

}  // namespace kvscope::analysis
