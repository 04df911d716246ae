// Perceived distance of two colors: CIEDE2000 in CIELAB, also for readers who lack one kind of cone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/drawing/color_map.h"

namespace kvscope::analysis::test {

using Triple = std::array<double, 3>;

[[nodiscard]] inline Triple times(const std::array<Triple, 3>& matrix, const Triple& v) {
    Triple out{};
    for (size_t i = 0; i < 3; ++i) out[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
    return out;
}

/// Converts sRGB from 0 to 1 to linear light.
[[nodiscard]] inline Triple linear(const Triple& color) {
    Triple out{};
    for (size_t i = 0; i < 3; ++i)
        out[i] = color[i] <= 0.04045 ? color[i] / 12.92 : std::pow((color[i] + 0.055) / 1.055, 2.4);
    return out;
}

/// Converts linear light from 0 to 1 to CIELAB under D65.
[[nodiscard]] inline Triple lab_of_light(const Triple& light) {
    constexpr std::array<Triple, 3> to_xyz = {
        {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
    const Triple xyz = times(to_xyz, light);
    const auto f = [](double t) {
        constexpr double d = 6.0 / 29;
        return t > d * d * d ? std::cbrt(t) : t / (3 * d * d) + 4.0 / 29;
    };
    const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

enum class Eyes { usual, deuteranope, protanope };

/// Color-blind vision by Machado, Oliveira and Fernandes (2009), severity 1.
[[nodiscard]] inline Triple seen_by(Eyes eyes, const Triple& light) {
    if (eyes == Eyes::usual) return light;
    constexpr std::array<Triple, 3> deuteranope = {
        {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
    constexpr std::array<Triple, 3> protanope = {
        {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
    Triple seen = times(eyes == Eyes::deuteranope ? deuteranope : protanope, light);
    for (double& channel : seen) channel = std::clamp(channel, 0.0, 1.0);
    return seen;
}

/// CIEDE2000 of two colors in CIELAB (Sharma, Wu and Dalal 2005).
[[nodiscard]] inline double ciede2000(const Triple& one, const Triple& two) {
    constexpr double pi = 3.14159265358979323846;
    const auto radians = [](double degrees) { return degrees * pi / 180; };
    const auto seventh = [](double c) { return std::sqrt(std::pow(c, 7) / (std::pow(c, 7) + std::pow(25.0, 7))); };
    const double mean_c = (std::hypot(one[1], one[2]) + std::hypot(two[1], two[2])) / 2;
    const double g = 0.5 * (1 - seventh(mean_c));
    const auto chroma_and_hue = [&](const Triple& lab) {
        const double a = (1 + g) * lab[1];
        const double hue = std::atan2(lab[2], a) * 180 / pi;
        return std::array<double, 2>{std::hypot(a, lab[2]), hue < 0 ? hue + 360 : hue};
    };
    const auto [c1, h1] = chroma_and_hue(one);
    const auto [c2, h2] = chroma_and_hue(two);
    const bool is_grey = c1 * c2 == 0;
    double dh = is_grey ? 0 : h2 - h1;
    if (dh > 180) dh -= 360;
    if (dh < -180) dh += 360;
    double h = (h1 + h2) / 2;
    if (is_grey)
        h = h1 + h2;
    else if (std::abs(h1 - h2) > 180)
        h += h1 + h2 < 360 ? 180 : -180;
    const double dl = two[0] - one[0], dc = c2 - c1, dhue = 2 * std::sqrt(c1 * c2) * std::sin(radians(dh / 2));
    const double l = (one[0] + two[0]) / 2 - 50, c = (c1 + c2) / 2;
    const double t = 1 - 0.17 * std::cos(radians(h - 30)) + 0.24 * std::cos(radians(2 * h)) +
                     0.32 * std::cos(radians(3 * h + 6)) - 0.2 * std::cos(radians(4 * h - 63));
    const double of_l = dl / (1 + 0.015 * l * l / std::sqrt(20 + l * l));
    const double of_c = dc / (1 + 0.045 * c);
    const double of_h = dhue / (1 + 0.015 * c * t);
    const double turn = -std::sin(radians(60 * std::exp(-std::pow((h - 275) / 25, 2)))) * 2 * seventh(c);
    return std::sqrt(of_l * of_l + of_c * of_c + of_h * of_h + turn * of_c * of_h);
}

/// Returns the distance of two sRGB colors from 0 to 1 for this kind of vision.
[[nodiscard]] inline double color_distance(const Triple& one, const Triple& two, Eyes eyes) {
    return ciede2000(lab_of_light(seen_by(eyes, linear(one))), lab_of_light(seen_by(eyes, linear(two))));
}

[[nodiscard]] inline Triple as_triple(Rgb color) { return {color.r / 255.0, color.g / 255.0, color.b / 255.0}; }

}  // namespace kvscope::analysis::test
