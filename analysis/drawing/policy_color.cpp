#include "analysis/drawing/policy_color.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace kvscope::analysis {
namespace {

struct Named {
    std::string_view policy;
    struct {
        Rgb color;
        int white;  ///< per cent of white in the paler shade
        int black;  ///< per cent of black in the darker shade
    } on_paper;
    struct {
        Rgb color;
        int white;  ///< per cent of white in the paler shade
        int third;  ///< per cent of white, or of black if negative, in the shade that replaces the darker one
    } on_dark;
};

/// Simulated annealing maximized the smallest CIEDE2000 distance between the demo's twelve policies for normal,
/// deuteranope and protanope vision. Replacements on dark backgrounds differ by at most 14 degrees in hue. Their
/// contrast is at least 3, and at least 2.2 for shades. Tests check the distances.
constexpr std::array<Named, 27> named_colors = {
    {{"streaming-llm", {{0xff, 0x96, 0x00}, 65, 30}, {{0xff, 0xb4, 0x00}, 60, -30}},
     {"h2o", {{0x5a, 0xa5, 0xff}, 65, 45}, {{0x87, 0xb4, 0xff}, 50, -55}},
     {"snapkv", {{0x00, 0xc3, 0x96}, 70, 40}, {{0x78, 0xe1, 0xb4}, 60, -60}},
     {"pyramidkv", {{0xf0, 0x5a, 0x5a}, 70, 25}, {{0xff, 0x87, 0x78}, 45, -25}},
     {"ada-snapkv", {{0x2d, 0x3c, 0x87}, 40, 60}, {{0x5a, 0x5a, 0xb4}, 30, 60}},
     {"aperturekv", {{0xa5, 0x2d, 0xf0}, 55, 40}, {{0xc3, 0x4b, 0xff}, 50, -35}},
     {"k-vec", {{0x69, 0x78, 0x00}, 30, 60}, {{0x78, 0x96, 0x00}, 75, -30}},
     {"dapq", {{0xa5, 0x2d, 0x5a}, 40, 60}, {{0xd2, 0x3c, 0x69}, 75, -30}},
     {"laq", {{0x0f, 0x87, 0x96}, 30, 60}, {{0x3c, 0x87, 0x96}, 50, -35}},
     {"gemfilter", {{0x5a, 0x3c, 0x00}, 50, 55}, {{0x87, 0x5a, 0x0f}, 30, 65}},
     {"random", {{0xc3, 0xa5, 0xc3}, 50, 50}, {{0xd2, 0xa5, 0xc3}, 50, -40}},
     {"oracle", {{0x0f, 0x4b, 0x3c}, 55, 55}, {{0x00, 0x78, 0x5a}, 50, 75}},
     {"ada-pyramidkv", {{0xd2, 0x69, 0xc3}, 70, 35}, {{0xe1, 0x78, 0xc3}, 60, -45}},
     {"headkv", {{0xa5, 0x78, 0x78}, 60, 55}, {{0xb4, 0x87, 0x87}, 50, -25}},
     {"lacache", {{0x96, 0xd2, 0x78}, 65, 55}, {{0xc3, 0xf0, 0x78}, 75, -60}},
     {"longcache", {{0x00, 0x96, 0x4b}, 70, 30}, {{0x0f, 0xb4, 0x5a}, 75, -20}},
     {"laq++", {{0x69, 0xd2, 0xf0}, 65, 25}, {{0x5a, 0xc3, 0xe1}, 45, -55}},
     {"cam", {{0x87, 0x5a, 0x3c}, 55, 60}, {{0x96, 0x5a, 0x3c}, 45, 70}},
     {"llmlingua-2", {{0x1e, 0x69, 0x87}, 70, 60}, {{0x2d, 0x69, 0x87}, 35, 60}},
     {"think", {{0x00, 0x69, 0xd2}, 70, 60}, {{0x00, 0x87, 0xe1}, 30, -35}},
     {"kvslimmer", {{0xf0, 0x0f, 0x69}, 50, 60}, {{0xff, 0x5a, 0x87}, 35, -45}},
     {"asymkv", {{0xff, 0x78, 0x69}, 65, 30}, {{0xf0, 0x69, 0x3c}, 45, -45}},
     {"echokv", {{0x69, 0x1e, 0x5a}, 45, 60}, {{0xa5, 0x3c, 0x78}, 35, -20}},
     {"echokv-hybrid", {{0xa5, 0x69, 0x96}, 70, 60}, {{0xa5, 0x78, 0xa5}, 60, -25}},
     {"palu", {{0x5a, 0x78, 0x69}, 45, 60}, {{0x3c, 0x96, 0x78}, 30, -40}},
     {"commonkv", {{0x00, 0x00, 0xd2}, 50, 60}, {{0x5a, 0x3c, 0xff}, 40, 75}},
     {"minicache", {{0x96, 0x00, 0x0f}, 60, 60}, {{0xd2, 0x0f, 0x2d}, 55, 75}}}};

/// Colors of policies that are not in the list.
constexpr std::array<Rgb, 5> other_colors = {
    {{0xc3, 0x87, 0x00}, {0x87, 0x78, 0xff}, {0xf0, 0x96, 0x96}, {0x3c, 0x3c, 0x5a}, {0x87, 0xd2, 0xc3}}};

/// FNV-1a, which gives equal results on all machines.
uint64_t hash_of(std::string_view text) {
    uint64_t hash = 14695981039346656037U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return hash;
}

Rgb mixed(Rgb color, int other, int share) {
    const auto channel = [&](uint8_t of) {
        return static_cast<uint8_t>((of * (100 - share) + other * share + 50) / 100);
    };
    return {channel(color.r), channel(color.g), channel(color.b)};
}

Rgb other_shade(Rgb color, Shade shade) {
    constexpr int share = 40;
    return shade == Shade::usual ? color : mixed(color, shade == Shade::paler ? 255 : 0, share);
}

MarkColor shade_of(const Named& named, Shade shade) {
    const auto& [color, white, black] = named.on_paper;
    const auto& [dark, dark_white, third] = named.on_dark;
    if (shade == Shade::usual) return {color, dark};
    if (shade == Shade::paler) return {mixed(color, 255, white), mixed(dark, 255, dark_white)};
    return {mixed(color, 0, black), mixed(dark, third > 0 ? 255 : 0, std::abs(third))};
}

}  // namespace

MarkColor policy_color(std::string_view policy, Shade shade, Shade second) {
    if (shade == Shade::usual) std::swap(shade, second);
    for (const Named& named : named_colors) {
        if (named.policy != policy) continue;
        const MarkColor color = shade_of(named, shade);
        return second == Shade::usual ? color : MarkColor(other_shade(color, second));
    }
    return other_shade(other_shade(other_colors[hash_of(policy) % other_colors.size()], shade), second);
}

}  // namespace kvscope::analysis
