#include "analysis/policy_color.h"

#include <array>
#include <cstdint>

namespace kvscope::analysis {
namespace {

constexpr int usual_share = 40;

struct Named {
    std::string_view policy;
    Rgb color;
    int white = usual_share;  ///< per cent of it in the paler shade
    int black = usual_share;  ///< likewise
};

/// The demonstration's dozen was sought by annealing among 1,100 colours: the largest least CIEDE2000 between any two
/// of them and black, as they are and as deuteranopes and protanopes see them, on white and on the window's dark
/// ground. The others that select entries were added one by one, each where it is farthest from those before. Those
/// that store something else than whole entries, and are drawn together, were sought in the same way as a group, with
/// those that they are mostly drawn beside. The paler and the darker shade of each are
/// those mixtures, of 30 to 70 % white and of 25 to 60 % black, whose least CIEDE2000 to the other policies' colours,
/// black, white and the colour itself is largest: mixed alike, one of echokv would be echokv-hybrid's. Tests hold what
/// came of it.
constexpr std::array<Named, 27> kNamed = {
    {{"streaming-llm", {0xff, 0x96, 0x00}, 65, 30}, {"h2o", {0x5a, 0xa5, 0xff}, 65, 45},
     {"snapkv", {0x00, 0xc3, 0x96}, 70, 40},        {"pyramidkv", {0xf0, 0x5a, 0x5a}, 70, 25},
     {"ada-snapkv", {0x2d, 0x3c, 0x87}, 40, 60},    {"aperturekv", {0xa5, 0x2d, 0xf0}, 55, 40},
     {"k-vec", {0x69, 0x78, 0x00}, 30, 60},         {"dapq", {0xa5, 0x2d, 0x5a}, 40, 60},
     {"laq", {0x0f, 0x87, 0x96}, 30, 60},           {"gemfilter", {0x5a, 0x3c, 0x00}, 50, 55},
     {"random", {0xc3, 0xa5, 0xc3}, 50, 50},        {"oracle", {0x0f, 0x4b, 0x3c}, 55, 55},
     {"ada-pyramidkv", {0xd2, 0x69, 0xc3}, 70, 35}, {"headkv", {0xa5, 0x78, 0x78}, 60, 55},
     {"lacache", {0x96, 0xd2, 0x78}, 65, 55},       {"longcache", {0x00, 0x96, 0x4b}, 70, 30},
     {"laq++", {0x69, 0xd2, 0xf0}, 65, 25},         {"cam", {0x87, 0x5a, 0x3c}, 55, 60},
     {"llmlingua-2", {0x1e, 0x69, 0x87}, 70, 60},   {"think", {0x00, 0x69, 0xd2}, 70, 60},
     {"kvslimmer", {0xf0, 0x0f, 0x69}, 50, 60},     {"asymkv", {0xff, 0x78, 0x69}, 65, 30},
     {"echokv", {0x69, 0x1e, 0x5a}, 45, 60},        {"echokv-hybrid", {0xa5, 0x69, 0x96}, 70, 60},
     {"palu", {0x5a, 0x78, 0x69}, 45, 60},          {"commonkv", {0x00, 0x00, 0xd2}, 50, 60},
     {"minicache", {0x96, 0x00, 0x0f}, 60, 60}}};

/// Of policies that are not in the list.
constexpr std::array<Rgb, 5> kOthers = {
    {{0xc3, 0x87, 0x00}, {0x87, 0x78, 0xff}, {0xf0, 0x96, 0x96}, {0x3c, 0x3c, 0x5a}, {0x87, 0xd2, 0xc3}}};

/// FNV-1a: the same on every machine.
uint64_t hash_of(std::string_view text) {
    uint64_t hash = 14695981039346656037U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return hash;
}

/// A policy's own, else what is usual.
Named named_color(Rgb color) {
    for (const Named& named : kNamed) {
        if (named.color == color) return named;
    }
    return {"", color};
}

Rgb mixed(Rgb color, int other, int share) {
    const auto channel = [&](uint8_t of) {
        return static_cast<uint8_t>((of * (100 - share) + other * share + 50) / 100);
    };
    return {channel(color.r), channel(color.g), channel(color.b)};
}

}  // namespace

Rgb paler(Rgb color) { return mixed(color, 255, named_color(color).white); }

Rgb darker(Rgb color) { return mixed(color, 0, named_color(color).black); }

Rgb policy_color(std::string_view policy) {
    for (const Named& named : kNamed) {
        if (named.policy == policy) return named.color;
    }
    return kOthers[hash_of(policy) % kOthers.size()];
}

}  // namespace kvscope::analysis
